"""A child that was forked from an owner of logs has no lock: it may read, and changes nothing.

Each test runs a process of its own, which forks once; the child tries all there is to try.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pylog

if TYPE_CHECKING:
    from pathlib import Path

PREPARATION = """
import os, pathlib, sys, threading, traceback
import pylog
from pylog import TopicPartition
from pylog.logs import LogManager, RecordBatchBuilder
from pylog.errors import LogLockedError

DIRECTORY = sys.argv[1]
ORDERS, EVENTS = TopicPartition("orders", 0), TopicPartition("events", 0)

def batch(value):
    builder = RecordBatchBuilder()
    builder.append(1, None, value)
    return builder.build()

def content():
    # Not the lock file: it is free as soon as its owner closes any descriptor of it.
    paths = [path for path in pathlib.Path(DIRECTORY).rglob("*") if path.name != ".lock"]
    return {str(path): path.read_bytes() if path.is_file() else None for path in paths}

def forked(task):
    # Returns how a child that runs the task ends.
    child = os.fork()
    if child == 0:
        code = 1
        try:
            task()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def is_refused(attempt):
    before = content()
    try:
        attempt()
    except LogLockedError as error:
        assert error.process_id == os.getppid(), error
    else:
        raise AssertionError("was let")
    assert content() == before
    assert os.path.exists(DIRECTORY + "/.lock")

def try_everything():
    for number, attempt in enumerate(ATTEMPTS):
        try:
            is_refused(attempt)
        except BaseException as error:
            raise AssertionError(f"attempt {number}") from error

manager = LogManager([DIRECTORY]).startup()
log = manager.get_or_create_log(ORDERS)
log.append_as_leader(batch(b"first"))
log.append_as_leader(batch(b"second"))
ATTEMPTS = [
    lambda: log.append_as_leader(batch(b"child")),
    lambda: log.append_as_follower(batch(b"child")),
    lambda: log.roll(),
    lambda: log.flush(),
    lambda: log.truncate_to(1),
    lambda: log.truncate_fully_and_start_at(5),
    lambda: log.delete_records(1),
    lambda: log.close(),
    lambda: manager.checkpoint_log_recovery_offsets(),
    lambda: manager.checkpoint_log_start_offsets(),
    lambda: manager.checkpoint_high_watermarks(),
    lambda: manager.delete_log(ORDERS),
    lambda: manager.get_or_create_log(EVENTS),
    lambda: manager.store_topic_config("orders", {"cleanup.policy": "compact"}),
    lambda: manager.shutdown(),
    lambda: manager.__exit__(None, None, None),
]
"""
END = """
log.append_as_leader(batch(b"third"))
manager.shutdown()
"""
HOLD_ALL_LOCKS = """
is_held, is_forked = threading.Event(), threading.Event()

def hold():
    with (
        manager._creation_or_deletion_lock,
        log._flusher._flush_lock,
        log._state.lock,
        manager._directories[0]._checkpoint_lock,
        manager._logs._lock,
    ):
        is_held.set()
        is_forked.wait(60)

holder = threading.Thread(target=hold, daemon=True)
holder.start()
assert is_held.wait(60)
"""


def run(directory: Path, program: str) -> None:
    """Run a program in a process of its own; then look at what it left."""
    done = subprocess.run(
        [sys.executable, "-c", PREPARATION + program + END, str(directory)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = pylog.scan(directory, columns=["offset", "value"]).to_table().to_pylist()
    assert [(each["offset"], each["value"]) for each in found] == [
        (0, b"first"),
        (1, b"second"),
        (2, b"third"),
    ]
    assert (directory / ".kafka_cleanshutdown").exists()
    assert not (directory / ".lock").exists()


def test_a_forked_child_changes_nothing_through_what_it_inherited(tmp_path: Path) -> None:
    run(tmp_path, "assert forked(try_everything) == 0")


def test_a_forked_child_is_refused_before_it_waits_for_a_lock_that_was_held(
    tmp_path: Path,
) -> None:
    program = """
assert forked(try_everything) == 0
is_forked.set()
holder.join()
"""
    run(tmp_path, HOLD_ALL_LOCKS + program)


def test_a_forked_child_does_not_wait_for_a_cleaner_that_it_does_not_have(tmp_path: Path) -> None:
    program = """
log.roll()
cleaner = pylog.logs.LogCleaner(manager).startup()
cleaner._manager.states.begin([ORDERS])  # as if a thread were at work on it
ATTEMPTS = [
    lambda: log.truncate_to(0),
    lambda: log.truncate_fully_and_start_at(5),
    lambda: manager.delete_log(ORDERS),
    lambda: manager.store_topic_config("orders", {"cleanup.policy": "delete"}),
]

def try_everything_and_end():
    try_everything()
    cleaner.shutdown()

assert forked(try_everything_and_end) == 0
assert cleaner.metrics().dead_thread_count == 0
cleaner._manager.states.finish(ORDERS)
cleaner.shutdown()
"""
    run(tmp_path, program)


def test_a_forked_child_cannot_open_the_directory_either(tmp_path: Path) -> None:
    program = """
ATTEMPTS = [lambda: manager.startup(), lambda: LogManager([DIRECTORY]).startup()]
assert forked(try_everything) == 0
"""
    run(tmp_path, program)


def test_a_forked_child_may_read_and_let_go(tmp_path: Path) -> None:
    program = """
def read_and_let_go():
    before = content()
    assert len(log.read(0, 1000).records) == 2 * len(batch(b"first")) + 1
    assert pylog.scan(DIRECTORY).to_table().num_rows == 2
    manager.abandon()
    assert content() == before
    assert os.path.exists(DIRECTORY + "/.lock")

assert forked(read_and_let_go) == 0
"""
    run(tmp_path, program)


def test_a_manager_that_was_not_started_yet_can_be_started_in_a_forked_child(
    tmp_path: Path,
) -> None:
    program = """
fresh = LogManager([DIRECTORY + "/../other"])

def own():
    with fresh:
        fresh.get_or_create_log(EVENTS)

assert forked(own) == 0
"""
    run(tmp_path / "logs", program)
    assert (tmp_path / "other" / "events-0" / f"{0:020d}.log").exists()
    assert (tmp_path / "other" / ".kafka_cleanshutdown").exists()
