"""Runs of a job that leave a bookmark: of any length, read while others write, begun by others."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pylog
from pylog.errors import CorruptCheckpointError, KafkaStorageError
from tests.support.recording_io import Fault, FaultyIO, Kind

if TYPE_CHECKING:
    from pathlib import Path

IN_THE_LEDGER = Fault(kinds=frozenset({Kind.REPLACE}), path_end=".pylog-ledger.tmp")
PENDING_OF_VERSION_1 = """\
{
 "version": 1,
 "id": "8dd4261704b2433cb38423ea8d64f7bd",
 "job_id": "hourly",
 "batch_id": 2,
 "fingerprint": "f",
 "bookmark": "BOOKMARK",
 "time_ms": 1795895694362,
 "new_topics": [],
 "partitions": []
}
"""


def run_in(
    directory: Path, number: int | None = None, bookmark: str | None = None
) -> pylog.jobs.WriteJob:
    return pylog.jobs.WriteJob(
        str(directory), "hourly", number, topic="orders", bookmark=bookmark, fingerprint="f"
    )


def run(directory: Path, number: int, bookmark: str | None) -> pylog.jobs.WriteJob:
    """Commit a run without rows."""
    job = run_in(directory, number, bookmark)
    job.commit([])
    return job


def newest(job: pylog.jobs.WriteJob, *, with_bookmark: bool = True) -> pylog.results.CommittedRun:
    found = job.newest_run(with_bookmark=with_bookmark)
    assert found is not None
    return found


def bookmark_files(directory: Path) -> list[Path]:
    return sorted(directory.glob(".pylog-bookmark-*"))


def test_the_newest_run_has_its_bookmark_whatever_the_length(tmp_path: Path) -> None:
    assert run_in(tmp_path).newest_run() is None
    for number, bookmark in enumerate(["short", "long " * 2_000_000, "grüße " * 500, None]):
        job = run(tmp_path, number, bookmark)
        for with_bookmark in (True, False):
            found = newest(job, with_bookmark=with_bookmark)
            assert (found.batch_id, found.records, found.fingerprint) == (number, 0, "f")
            assert found.bookmark == (bookmark if with_bookmark else None)
        assert len(bookmark_files(tmp_path)) == (len(bookmark or "") > 1_000)


def test_a_bookmark_that_is_gone_leaves_the_number_of_the_run(tmp_path: Path) -> None:
    job = run(tmp_path, 7, "long " * 1_000)
    [path] = bookmark_files(tmp_path)
    path.unlink()
    with pytest.raises(CorruptCheckpointError, match=f"{path.name}: file is gone .* start over"):
        job.newest_run()
    assert newest(job, with_bookmark=False).batch_id == 7
    assert newest(run(tmp_path, 8, "again")).bookmark == "again"


def test_who_reads_a_bookmark_while_runs_replace_it_gets_that_of_the_run(tmp_path: Path) -> None:
    bookmarks = [f"{each} " * 1_000 for each in range(30)]
    job = run(tmp_path, 0, bookmarks[0])
    seen: list[pylog.results.CommittedRun] = []
    is_done = threading.Event()

    def read() -> None:
        while not is_done.is_set():
            seen.append(newest(job))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(1, 30):
        run(tmp_path, number, bookmarks[number])
    is_done.set()
    reader.join()
    assert len({each.batch_id for each in seen}) > 1
    assert all(each.bookmark == bookmarks[each.batch_id] for each in seen)
    assert [each.batch_id for each in seen] == sorted(each.batch_id for each in seen)


@pytest.mark.parametrize("bookmark", ["up to 2", "long " * 1_000])
def test_a_commit_that_an_older_version_has_begun_is_completed_with_its_bookmark(
    tmp_path: Path, bookmark: str
) -> None:
    run(tmp_path, 1, "up to 1")
    text = PENDING_OF_VERSION_1.replace("BOOKMARK", bookmark)
    (tmp_path / ".pylog-manifest").write_text(text)
    with pylog.logs.LogManager([tmp_path]):
        pass
    assert not (tmp_path / ".pylog-manifest").exists()
    found = newest(run_in(tmp_path))
    assert (found.batch_id, found.fingerprint, found.bookmark) == (2, "f", bookmark)


def interrupt(job: pylog.jobs.WriteJob) -> None:
    """Let a commit of one row fail before it is in the ledger."""
    with job.stage("task") as attempt:
        attempt.append(pa.record_batch({"value": ["a"]}))
    with pytest.raises(KafkaStorageError):
        job.commit([attempt.staged], context=pylog.logs.LogContext(io=FaultyIO(IN_THE_LEDGER)))


def open_and_close(directory: Path) -> None:
    with pylog.logs.LogManager([directory]):
        pass


def test_an_interrupted_commit_is_completed_with_its_long_bookmark(tmp_path: Path) -> None:
    job = run_in(tmp_path, 0, "long " * 1_000)
    interrupt(job)
    assert job.newest_run() is None
    open_and_close(tmp_path)
    assert newest(job).bookmark == "long " * 1_000


def test_a_manifest_of_a_job_that_has_been_committed_writes_nothing(tmp_path: Path) -> None:
    job = run_in(tmp_path, 0)
    interrupt(job)
    manifest = (tmp_path / ".pylog-manifest").read_text()
    open_and_close(tmp_path)
    run(tmp_path, 1, None)
    (tmp_path / ".pylog-manifest").write_text(manifest)  # restored by somebody
    open_and_close(tmp_path)
    assert not (tmp_path / ".pylog-manifest").exists()
    assert pylog.scan(tmp_path, columns=["value"]).to_table()["value"].to_pylist() == [b"a"]
