"""A crash after every single thing that commits do whose ledger merges archives: none is lost."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pytest

import pylog
from pylog.files.ledger import read_ledger
from tests.crash.job_script import context_of, leftovers
from tests.crash.test_crash_points import LOSSES
from tests.crash.test_job_commit import Recording, check_all
from tests.support.recording_io import ForgetfulIO, Kind, RecordingIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pylog.files.durable_io import DurableIO
    from tests.conftest import Counted, SomeOf

LONG = "rows that the next run knows " * 60


class Run(NamedTuple):
    """One run of a job, which writes its own name."""

    job_id: str
    batch_id: int | None = None

    def job_in(self, directory: Path) -> pylog.jobs.WriteJob:
        """Return the job."""
        bookmark = f"{LONG}{self.batch_id}" if self.job_id == "hourly" else None
        return pylog.jobs.WriteJob(
            str(directory), self.job_id, self.batch_id, topic="orders", bookmark=bookmark
        )

    def run(self, directory: Path, io: DurableIO) -> bool:
        """Write the row, as a scheduler does that knows no earlier run; return whether it did."""
        job = self.job_in(directory)
        job.abort(context=context_of(io))
        with job.stage("task", context=context_of(io)) as attempt:
            attempt.append(pa.record_batch({"value": [str(self)]}))
        return not job.commit([attempt.staged], context=context_of(io)).already_committed


BEFORE = [
    *(Run(f"window {each}") for each in range(3)),
    *(Run("query", each) for each in range(2)),
    Run("hourly", 0),
    *(Run(f"window {each}") for each in range(3, 5)),
]
WATCHED = [
    Run("hourly", 1),
    Run("window 5"),  # merges archives
    Run("query", 2),
    Run("window 6"),
    Run("window 7"),  # writes an archive
    Run("hourly", 2),
]


@pytest.fixture(autouse=True, scope="module")
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pylog.files.ledger.MOST_RECENT", 3)
        patch.setattr("pylog.files.ledger.KEPT_RECENT", 1)
        patch.setattr("pylog.files.job_archive.MOST_ARCHIVED", 8)
        yield


class Recorded(NamedTuple):
    """A recording, and at which operation each of the watched runs had come to its end."""

    recording: Recording
    ends: list[int]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    root = tmp_path_factory.mktemp("recorded")
    io, directory, ends = RecordingIO(root), root / "logs", []
    io.make_directory(directory)
    io.sync_directory(root)
    for each in BEFORE:
        assert each.run(directory, io)
    begun = len(io.operations)
    for each in WATCHED:
        assert each.run(directory, io)
        ends.append(len(io.operations))
    removed = Counter(
        each.path.rpartition("-")[0] for each in io.operations[begun:] if each.kind is Kind.REMOVE
    )
    assert removed["logs/.pylog-ledger"] >= 1
    assert removed["logs/.pylog-bookmark"] == 2
    return Recorded(Recording(io.operations, begun, len(io.operations)), ends)


def written_in(directory: Path) -> Counter[str]:
    values = pylog.scan(directory, columns=["value"]).to_table()["value"].to_pylist()
    return Counter(each.decode() for each in values)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.thorough(one_in=3)
def test_a_crash_neither_loses_nor_doubles_a_job(
    recorded: Recorded, loss: str, tmp_path: Path, some_of: SomeOf, counted: Counted
) -> None:
    def check(directory: Path, count: int, where: str) -> None:
        done = sum(end <= count for end in recorded.ends)
        seen = written_in(directory)
        sure = Counter(map(str, [*BEFORE, *WATCHED[:done]]))
        possible = Counter(map(str, [*BEFORE, *WATCHED[: done + 1]]))
        assert seen in (sure, possible), where
        for each in [*BEFORE, *WATCHED[:done]]:
            assert each.job_in(directory).is_committed(), f"{where}: {each}"
        for each in [BEFORE[0], *WATCHED]:
            has_written = each.run(directory, ForgetfulIO())
            assert not (has_written and seen[str(each)]), f"{where}: {each}"
        assert written_in(directory) == Counter(map(str, [*BEFORE, *WATCHED])), where
        newest = WATCHED[-1].job_in(directory).newest_run()
        assert newest is not None, where
        assert (newest.batch_id, newest.bookmark) == (2, f"{LONG}2"), where
        assert Run("window 8").run(directory, ForgetfulIO()), where  # sweeps what a crash has left
        assert {*leftovers(directory)} == read_ledger(str(directory)).file_names, where

    root = tmp_path / "crashed"
    check_all(recorded.recording, LOSSES[loss], root, check, some_of, counted)
