from __future__ import annotations

import errno
import fcntl
import os
import pickle
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from pylog.errors import KafkaStorageError, LogLockedError, UnreadableFileError
from pylog.files.directory_lock import DirectoryLock, ensure_not_in_use, is_in_use

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# What a JVM's FileChannel.tryLock does, and our own lock; both wait for a line, then go.
SYSTEM_LOCK = """
import fcntl, sys
file = open(sys.argv[1] + "/.lock", "w")
fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("locked", flush=True)
sys.stdin.readline()
"""
OUR_LOCK = """
import sys
from pylog.files.directory_lock import DirectoryLock
with DirectoryLock(sys.argv[1]):
    print("locked", flush=True)
    sys.stdin.readline()
"""
TRY_LOCK = """
import sys
from pylog.errors import LogLockedError
from pylog.files.directory_lock import DirectoryLock
try:
    DirectoryLock(sys.argv[1]).try_lock()
except LogLockedError as error:
    print(error.process_id)
else:
    print("free")
"""


@contextmanager
def held_by_another_process(directory: Path, program: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", program, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "locked\n"
            yield process
        finally:
            process.kill()


def try_from_another_process(directory: Path) -> str:
    """Return ``free``, or the process that another one is told to hold the lock."""
    command = [sys.executable, "-c", TRY_LOCK, str(directory)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("program", [SYSTEM_LOCK, OUR_LOCK], ids=["as a JVM", "ours"])
def test_directory_of_another_process_is_refused_and_the_process_named(
    tmp_path: Path, program: str
) -> None:
    lock = DirectoryLock(tmp_path)
    with held_by_another_process(tmp_path, program) as process:
        with pytest.raises(LogLockedError) as caught:
            lock.try_lock()
        assert caught.value.process_id == process.pid
        assert str(caught.value) == (
            f"{tmp_path}/.lock: log directory is locked by process {process.pid}: stop it, or give "
            "another directory (deleting the file would not free this one)"
        )
        assert not lock.is_locked
        assert (tmp_path / ".lock").exists()
        assert pickle.loads(pickle.dumps(caught.value)).process_id == process.pid  # noqa: S301 - our own


def test_lock_goes_with_the_process_that_held_it(tmp_path: Path) -> None:
    with held_by_another_process(tmp_path, OUR_LOCK) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert (tmp_path / ".lock").exists()
        with DirectoryLock(tmp_path) as lock:
            assert lock.is_locked


def test_lock_that_is_given_back_is_free_and_its_file_is_gone(tmp_path: Path) -> None:
    with held_by_another_process(tmp_path, OUR_LOCK) as process:
        process.communicate("\n")
        assert process.returncode == 0
        assert not (tmp_path / ".lock").exists()
    lock = DirectoryLock(tmp_path)
    lock.try_lock()
    lock.unlock()
    assert try_from_another_process(tmp_path) == "free"


def test_other_processes_are_kept_out(tmp_path: Path) -> None:
    with DirectoryLock(tmp_path):
        assert try_from_another_process(tmp_path) == str(os.getpid())
    assert try_from_another_process(tmp_path) == "free"


def test_second_lock_of_one_process_is_refused_and_the_first_one_stays(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "logs")
    with DirectoryLock(tmp_path / "logs") as first:
        for second in (DirectoryLock(tmp_path / "logs"), DirectoryLock(tmp_path / "alias"), first):
            with pytest.raises(LogLockedError, match=r"by this process \(pid \d+\)") as caught:
                second.try_lock()
            assert caught.value.process_id == os.getpid()
        assert first.is_locked
        # The system drops a process's lock when it closes any descriptor of the file.
        assert try_from_another_process(tmp_path / "logs") == str(os.getpid())


def test_unlocking_a_lock_that_was_refused_leaves_the_holder_its_own(tmp_path: Path) -> None:
    refused = DirectoryLock(tmp_path)
    with DirectoryLock(tmp_path):
        with pytest.raises(LogLockedError):
            refused.try_lock()
        refused.unlock()
        assert (tmp_path / ".lock").exists()
        assert try_from_another_process(tmp_path) == str(os.getpid())


def test_unlocking_in_one_thread_leaves_the_locks_of_others(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with DirectoryLock(tmp_path / "a"):

        def lock_and_unlock() -> None:
            for _ in range(50):
                with DirectoryLock(tmp_path / "b"), pytest.raises(LogLockedError):
                    DirectoryLock(tmp_path / "a").try_lock()

        thread = threading.Thread(target=lock_and_unlock)
        thread.start()
        thread.join()
        assert try_from_another_process(tmp_path / "a") == str(os.getpid())
        assert try_from_another_process(tmp_path / "b") == "free"


def test_one_of_many_threads_gets_the_lock(tmp_path: Path) -> None:
    barrier = threading.Barrier(8)
    outcomes = []

    def compete(lock: DirectoryLock) -> None:
        barrier.wait()
        try:
            lock.try_lock()
            outcomes.append("locked")
        except LogLockedError:
            outcomes.append("refused")

    locks = [DirectoryLock(tmp_path) for _ in range(8)]
    threads = [threading.Thread(target=compete, args=[lock]) for lock in locks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["locked"] + ["refused"] * 7
    assert [lock.is_locked for lock in locks].count(True) == 1
    for lock in locks:
        lock.unlock()


def test_unlocking_twice_does_nothing(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    lock.unlock()
    lock.try_lock()
    lock.unlock()
    with DirectoryLock(tmp_path):
        lock.unlock()
        assert try_from_another_process(tmp_path) == str(os.getpid())


def test_file_that_is_gone_already_does_not_hinder_unlocking(tmp_path: Path) -> None:
    with DirectoryLock(tmp_path) as lock:
        (tmp_path / ".lock").unlink()
    assert not lock.is_locked
    with DirectoryLock(tmp_path):
        pass


def test_lock_of_a_file_that_its_last_holder_deleted_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system_lock = fcntl.lockf
    deleted: list[int] = []

    def delete_before_locking(descriptor: int, operation: int) -> None:
        if not deleted:
            deleted.append(os.fstat(descriptor).st_ino)
            (tmp_path / ".lock").rename(tmp_path / "deleted")
        system_lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "lockf", delete_before_locking)
    with DirectoryLock(tmp_path):
        assert (tmp_path / ".lock").stat().st_ino not in deleted
        assert try_from_another_process(tmp_path) == str(os.getpid())


def test_child_of_a_fork_neither_has_the_lock_nor_gives_it_back(tmp_path: Path) -> None:
    program = """
import os, sys
from pylog.errors import LogLockedError
from pylog.files.directory_lock import DirectoryLock
lock = DirectoryLock(sys.argv[1])
lock.try_lock()
child = os.fork()
if child == 0:
    held = lock.is_locked
    lock.unlock()
    try:
        DirectoryLock(sys.argv[1]).try_lock()
    except LogLockedError as error:
        os._exit(1 if held or error.process_id != os.getppid() else 0)
    os._exit(2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert lock.is_locked and os.path.exists(sys.argv[1] + "/.lock")
print("locked", flush=True)
sys.stdin.readline()
"""
    with held_by_another_process(tmp_path, program) as process:
        assert try_from_another_process(tmp_path) == str(process.pid)


def test_child_of_a_fork_can_have_the_lock_once_its_parent_gave_it_back(tmp_path: Path) -> None:
    program = """
import os, sys
from pylog.files.directory_lock import DirectoryLock
lock = DirectoryLock(sys.argv[1])
lock.try_lock()
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    os.read(reader, 1)
    mine = DirectoryLock(sys.argv[1])
    mine.try_lock()
    os._exit(0 if mine.is_locked and not lock.is_locked else 1)
lock.unlock()
os.write(writer, b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)


@pytest.mark.parametrize(("name", "number"), [("missing", errno.ENOENT), ("file", errno.ENOTDIR)])
def test_what_is_not_a_directory_cannot_be_locked(tmp_path: Path, name: str, number: int) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(KafkaStorageError, match="cannot lock the log directory") as caught:
        DirectoryLock(tmp_path / name).try_lock()
    assert caught.value.errno == number


def test_system_that_cannot_lock_is_an_error_and_leaves_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []

    def no_locks(descriptor: int, _operation: int) -> None:
        opened.append(descriptor)
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "lockf", no_locks)
    lock = DirectoryLock(tmp_path)
    with pytest.raises(KafkaStorageError, match="No locks available"):
        lock.try_lock()
    assert not lock.is_locked
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened[0])


def test_file_that_cannot_be_deleted_is_an_error_but_the_lock_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(path: str) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    lock = DirectoryLock(tmp_path)
    lock.try_lock()
    monkeypatch.setattr(os, "unlink", read_only)
    with pytest.raises(KafkaStorageError, match="cannot delete the lock file: Read-only"):
        lock.unlock()
    assert not lock.is_locked
    assert try_from_another_process(tmp_path) == "free"


@pytest.mark.parametrize("program", [SYSTEM_LOCK, OUR_LOCK], ids=["as a JVM", "ours"])
def test_to_look_who_uses_a_directory_takes_nothing_and_gives_nothing_back(
    tmp_path: Path, program: str
) -> None:
    assert not is_in_use(str(tmp_path))
    ensure_not_in_use(str(tmp_path))
    assert not (tmp_path / ".lock").exists()
    with held_by_another_process(tmp_path, program):
        assert is_in_use(str(tmp_path))
        with pytest.raises(LogLockedError, match="locked by process"):
            ensure_not_in_use(str(tmp_path))
    assert not is_in_use(str(tmp_path))  # what was killed leaves the file, not the lock
    ensure_not_in_use(str(tmp_path))
    with DirectoryLock(tmp_path):
        assert is_in_use(str(tmp_path))
        with pytest.raises(LogLockedError, match="locked by this process"):
            ensure_not_in_use(str(tmp_path))
        assert try_from_another_process(tmp_path) == str(os.getpid())


def test_what_is_no_lock_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".lock")
    assert not is_in_use(str(tmp_path))
    with pytest.raises(UnreadableFileError, match="not a regular file but a FIFO"):
        ensure_not_in_use(str(tmp_path))
    assert not is_in_use(str(tmp_path / "missing"))
