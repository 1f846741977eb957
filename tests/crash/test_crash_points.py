"""A crash after every single thing that is done to the disk, and what is there afterwards."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pytest

import pylog
from pylog.errors import LogStorageError
from pylog.testing import ManualClock
from tests.crash.script import (
    NOW_MS,
    PARTITION,
    Batch,
    Script,
    batch_bytes,
    committed_values,
    ensure_refused_below,
    expected_values,
    manager_of,
    read_all,
    timestamp_of,
)
from tests.support.crash_replay import Kind, Names, Operation, replay
from tests.support.recording_io import ForgetfulIO, RecordingIO

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pylog.log.unified_log import UnifiedLog
    from pylog.model import IsolationName
    from tests.conftest import Counted, SomeOf
    from tests.crash.script import Step

NEW_VALUE = b"appended after the crash 999999"


class Loss(NamedTuple):
    """What a crash takes with it; see `replay`."""

    lose_unsynced: bool = False
    names: Names = Names.ALL
    keep_lengths: bool = False
    is_torn: bool = False


LOSSES = {
    "process death": Loss(),
    "process death in a write": Loss(is_torn=True),
    "unsynced content lost": Loss(lose_unsynced=True),
    "unsynced content reads as zeros": Loss(lose_unsynced=True, keep_lengths=True),
    "unsynced names lost": Loss(names=Names.NONE),
    "of the unsynced names the last one kept": Loss(names=Names.LAST),
    "unsynced content and names lost": Loss(lose_unsynced=True, names=Names.NONE),
    "unsynced names lost, content reads as zeros": Loss(
        lose_unsynced=True, names=Names.NONE, keep_lengths=True
    ),
}


class Recovered(NamedTuple):
    """What the next owner of a directory found."""

    batches: list[Batch]
    log_start_offset: int


@dataclass
class Recording:
    """A script that has been run, and every operation that it made."""

    steps: list[Step]
    operations: list[Operation]

    def durable_after(self, count: int) -> tuple[list[Batch], int]:
        """Return what no crash after ``count`` operations may take, and the step it is from."""
        done = [step for step in self.steps if step.operations.stop <= count]
        if not done:
            return [], 0
        last = done[-1]
        limit = last.recovery_point
        under_way = self.steps[len(done)] if len(done) < len(self.steps) else None
        if under_way is not None and under_way.truncated_to is not None:
            limit = min(limit, under_way.truncated_to)
        return [batch for batch in last.batches if batch.last_offset < limit], len(done) - 1

    def states_until(self, count: int) -> list[Step]:
        """Return the steps that had begun when the crash came."""
        return [step for step in self.steps if step.operations.start <= count]


@pytest.fixture(scope="module", params=[False, True], ids=["", "preallocated"])
def recording(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Recording:
    root = tmp_path_factory.mktemp("recorded")
    io = RecordingIO(root)
    script = Script(root / "logs", io, preallocate=request.param, count=lambda: len(io.operations))
    script.run()
    return Recording(script.steps, io.operations)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES.values(), ids=list(LOSSES))
@pytest.mark.thorough(one_in=3)
def test_a_crash_at_any_point_leaves_what_was_flushed_and_a_prefix_of_the_rest(
    recording: Recording, loss: Loss, tmp_path: Path, some_of: SomeOf, counted: Counted
) -> None:
    known: dict[bytes, Recovered] = {}
    failures: list[str] = []
    points = some_of(range(len(recording.operations) + 1), one_in=19)
    for count in points:
        operations = recording.operations[:count]
        if loss.is_torn:
            if not operations or operations[-1].kind is not Kind.WRITE:
                continue
            operations = [*operations[:-1], operations[-1].torn(len(operations[-1].data) // 2)]
        where = f"crash after {count} operations: {[str(each) for each in operations[-3:]]}"
        root = tmp_path / "crashed"
        root.mkdir()
        replay(
            operations,
            root,
            lose_unsynced=loss.lose_unsynced,
            names=loss.names,
            keep_lengths=loss.keep_lengths,
        )
        fingerprint = fingerprint_of(root)
        try:
            if fingerprint not in known:
                known[fingerprint] = recover(root / "logs", where)
            check_recovered(recording, count - loss.is_torn, known[fingerprint], where)
        except (AssertionError, LogStorageError) as error:
            failures.append(f"{where}: {type(error).__name__} {error}")
        shutil.rmtree(root)
    assert not failures, f"{len(failures)} of {len(points)}; the first:\n" + "\n".join(failures[:3])
    counted("crash points", {"survived": len(points), "different directories": len(known)})


def fingerprint_of(root: Path) -> bytes:
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        digest.update(str(path.relative_to(root)).encode() + b"\0")
        if path.is_file():
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.digest()


def recover(directory: Path, where: str) -> Recovered:
    """Open what a crash left, use it, close it, and read the files once more."""
    clock = ManualClock(NOW_MS)
    manager, _ = manager_of(directory, ForgetfulIO(), clock)
    with manager:
        log = manager.get_or_create_log(PARTITION)
        found = Recovered(read_all(log), log.log_start_offset)
        everything, committed = expected_values(found.batches, log.log_start_offset)
        assert committed_values(log) == committed, where
        ensure_refused_below(log)
        check_producers(log, found, where)
        check_indexes(log, found, where)
        if log.last_stable_offset == log.log_end_offset:
            committed.append(NEW_VALUE)
        everything.append(NEW_VALUE)
        append_and_read_back(log, where)
    for isolation, values in (("read_uncommitted", everything), ("read_committed", committed)):
        assert scanned_values(directory, isolation) == values, (where, isolation)  # type: ignore[arg-type]
    with manager_of(directory, ForgetfulIO(), clock)[0] as reopened:
        again = read_all(reopened.get_log(PARTITION))
        assert again[:-1] == found.batches, where
        assert again[-1].values == (NEW_VALUE,), where
    return found


def append_and_read_back(log: UnifiedLog, where: str) -> None:
    end = log.log_end_offset
    info = log.append_as_leader(batch_bytes((NEW_VALUE,)))
    assert (info.first_offset, log.log_end_offset) == (end, end + 1), where
    assert read_all(log)[-1] == Batch(end, end, values=(NEW_VALUE,)), where


def check_producers(log: UnifiedLog, found: Recovered, where: str) -> None:
    """Check that the newest batch of every producer is known again, by repeating it."""
    newest = {each.producer_id: each for each in found.batches if each.kind == "data"}
    for producer_id, batch in newest.items():
        if producer_id >= 0:
            entry = log.producer_state.last_entry(producer_id)
            assert entry is not None, where
            assert entry.last_data_offset == batch.last_offset, where


def check_indexes(log: UnifiedLog, found: Recovered, where: str) -> None:
    """Check every index, and that records are found by their timestamps, which increase."""
    for segment in log.segments:
        segment.offset_index.sanity_check()
        segment.time_index.sanity_check()
    for batch in found.batches:
        if batch.kind == "data" and batch.first_offset >= log.log_start_offset:
            answer = log.fetch_offset_by_timestamp(timestamp_of(batch.values[0]))
            assert answer is not None, (where, batch)
            assert answer.offset == batch.first_offset, (where, answer, batch)


def scanned_values(directory: Path, isolation: IsolationName) -> list[bytes]:
    scan = pylog.scan(directory, columns=["value"], isolation=isolation)
    return [value for batch in scan.to_batches() for value in batch.column(0).to_pylist()]


def check_recovered(recording: Recording, count: int, found: Recovered, where: str) -> None:
    """Compare what was found with what the script had done before the crash."""
    durable, first_state = recording.durable_after(count)
    states = recording.states_until(count)
    start = found.log_start_offset
    assert start in {0, *(state.log_start_offset for state in states)}, where
    missing = [
        batch for batch in durable if batch.last_offset >= start and batch not in found.batches
    ]
    assert not missing, f"{where}: lost {missing}, acknowledged by {recording.steps[first_state]}"
    assert is_prefix_of_any(found.batches, [served(state, start) for state in states]), (
        f"{where}: never was there {found}"
    )


def served(state: Step, log_start_offset: int) -> list[Batch]:
    return [batch for batch in state.batches if batch.last_offset >= log_start_offset]


def is_prefix_of_any(found: Sequence[Batch], states: Sequence[Sequence[Batch]]) -> bool:
    return not found or any(list(found) == list(state[: len(found)]) for state in states)
