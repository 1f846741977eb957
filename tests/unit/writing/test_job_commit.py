"""The commit of a write job: once, under the lock, and nothing is left."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pylog
from pylog.errors import (
    CorruptCheckpointError,
    CorruptRecordError,
    KafkaStorageError,
    LogLockedError,
    LogStorageError,
    SegmentVanishedError,
)
from pylog.files.directory_lock import DirectoryLock
from pylog.testing import ManualClock
from tests.support.recording_io import Fault, FaultyIO, Kind
from tests.unit.writing.staged_jobs import NOW_MS, job_files, job_in, stage, values_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_a_topic_with_append_time_is_stamped_by_the_commit(tmp_path: Path) -> None:
    pylog.create_topic(
        tmp_path, "orders", 1, properties={"message.timestamp.type": "LogAppendTime"}
    )
    job = job_in(tmp_path)
    times = pa.array([7] * 4_000, pa.timestamp("ms"))
    staged = stage(job, {"value": ["a"] * 4_000, "timestamp": times})
    job.commit([staged], context=pylog.logs.LogContext(clock=ManualClock(NOW_MS + 9)))
    batches = pylog.read_table(tmp_path, "batches", check_crc=True).to_pylist()
    assert len(batches) > 1
    assert {each["max_timestamp"].timestamp() * 1_000 for each in batches} == {NOW_MS + 9}
    assert pylog.scan(tmp_path).count() == 4_000
    assert pylog.read_table(tmp_path, "findings").num_rows == 0


def test_files_of_a_few_mib_become_segments_of_a_partition_that_has_few(tmp_path: Path) -> None:
    pylog.write_topic(tmp_path, "orders", [(None, "old")])
    job = job_in(tmp_path)
    large, small = {"value": ["x" * (9 << 20)]}, {"value": ["x" * (7 << 20)]}
    with pylog.logs.LogManager([tmp_path]) as manager:
        manager.store_topic_config("orders", {"max.message.bytes": str(16 << 20)})
    staged = [stage(job, each) for each in (large, small, large)]
    sizes = [each.size_bytes for each in staged]
    job.commit(staged)
    segments = pylog.read_table(tmp_path, "segments").to_pylist()
    assert [each["base_offset"] for each in segments] == [0, 1, 3]
    assert [each["size_in_bytes"] for each in segments][1:] == [sizes[0] + sizes[1], sizes[2]]
    lengths = [len(each) for each in values_in(tmp_path)["orders", 0]]
    assert lengths == [3, 9 << 20, 7 << 20, 9 << 20]
    assert pylog.read_table(tmp_path, "findings").num_rows == 0


def test_a_job_is_written_once(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    job.commit([stage(job, {"value": ["a"]})])
    again = job.commit([stage(job, {"value": ["a"]})])
    assert again.already_committed
    assert again.records == 0
    assert values_in(tmp_path) == {("orders", 0): ["a"]}
    assert not job_files(tmp_path)


def test_batches_of_a_query_are_jobs_of_their_own(tmp_path: Path) -> None:
    for batch_id in (0, 1, 1, 0, 2):
        job = job_in(tmp_path, "query", batch_id=batch_id)
        job.commit([stage(job, {"value": [f"batch {batch_id}"]})])
    assert values_in(tmp_path) == {("orders", 0): ["batch 0", "batch 1", "batch 2"]}


def test_a_job_without_rows_is_in_the_ledger(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    staged = stage(job, {"value": pa.array([], pa.string())})
    assert staged.files == ()
    assert job.commit([staged]).records == 0
    assert job.is_committed()


def test_what_was_staged_for_another_job_is_refused(tmp_path: Path) -> None:
    one, other = job_in(tmp_path, "one"), job_in(tmp_path, "other")
    staged = stage(one, {"value": ["a"]})
    with pytest.raises(ValueError, match="staged for job 'one', not for job 'other'"):
        other.commit([staged])
    with pytest.raises(ValueError, match="staged for job 'one', not for job 'other'"):
        other.abort([staged])
    one.commit([staged])
    assert values_in(tmp_path) == {("orders", 0): ["a"]}


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("harm", "suffix", "error", "text"),
    [
        (os.unlink, ".batches", SegmentVanishedError, "have to share the file system"),
        (os.unlink, ".entries", SegmentVanishedError, "have to share the file system"),
        (cut, ".batches", CorruptRecordError, "staged file has"),
        (cut, ".entries", CorruptRecordError, "staged entries have"),
        (flip, ".batches", CorruptRecordError, "batch CRC stored"),
        (flip, ".entries", CorruptRecordError, "checksum"),
    ],
)
def test_a_staged_file_that_is_gone_or_damaged_fails_the_job_before_anything_is_written(
    tmp_path: Path,
    harm: Callable[[Path], None],
    suffix: str,
    error: type[Exception],
    text: str,
) -> None:
    job = job_in(tmp_path, topic=None)
    staged = stage(job, {"topic": ["a", "b"], "value": ["1", "2"]})
    [path] = list(tmp_path.glob(f"*-1{suffix}"))
    harm(path)
    with pytest.raises(error, match=text):
        job.commit([staged])
    assert not job.is_committed()
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]
    job.abort([staged])
    assert not job_files(tmp_path)


def test_a_topic_that_has_changed_since_fails_the_job(tmp_path: Path) -> None:
    pylog.create_topic(tmp_path, "orders", 1)
    job = job_in(tmp_path)
    staged = stage(job, {"value": ["a"]})
    with pylog.logs.LogManager([tmp_path]) as manager:
        manager.store_topic_config("orders", {"cleanup.policy": "compact"})
    with pytest.raises(LogStorageError, match=r"cleanup\.policy was delete, is compact"):
        job.commit([staged])
    assert values_in(tmp_path) == {}
    job.abort([staged])
    assert not job_files(tmp_path)


def test_two_jobs_may_make_the_same_topic(tmp_path: Path) -> None:
    one, other = job_in(tmp_path, "one"), job_in(tmp_path, "other")
    staged = [stage(one, {"value": ["a"]}), stage(other, {"value": ["b"]})]
    one.commit(staged[:1])
    other.commit(staged[1:])
    assert values_in(tmp_path) == {("orders", 0): ["a", "b"]}


def test_a_commit_waits_for_the_directory_and_then_names_its_owner(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    staged = stage(job, {"value": ["a"]})
    with DirectoryLock(tmp_path), pytest.raises(LogLockedError) as raised:
        job.commit([staged], timeout=0.1)
    assert "locked by this process" in str(raised.value)
    assert "nothing was written, after waiting for 0.1 s" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert job.commit([staged]).records == 1


def test_another_process_is_named(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    staged = stage(job, {"value": ["a"]})
    program = (
        "import sys; from pylog.files.directory_lock import DirectoryLock\n"
        "with DirectoryLock(sys.argv[1]): print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        with pytest.raises(LogLockedError, match=f"process {owner.pid} is python") as raised:
            job.commit([staged], timeout=0.1)
        assert raised.value.process_id == owner.pid
        owner.communicate(b"")
    assert job.commit([staged]).records == 1


def test_a_commit_goes_on_as_soon_as_the_directory_is_free(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    staged = stage(job, {"value": ["a"]})
    lock = DirectoryLock(tmp_path)
    lock.try_lock()
    is_free = threading.Event()

    def unlock() -> None:
        is_free.set()
        lock.unlock()

    threading.Timer(0.2, unlock).start()
    assert job.commit([staged]).records == 1
    assert is_free.is_set()


def test_an_abort_removes_what_was_staged_also_by_attempts_that_nobody_names(
    tmp_path: Path,
) -> None:
    job, other = job_in(tmp_path), job_in(tmp_path, "other")
    stage(job, {"value": ["a"]})
    kept = stage(other, {"value": ["b"]})
    job.abort([None])
    job.abort([])
    assert len(job_files(tmp_path)) == 2
    other.commit([kept])
    job.abort([None])
    other.abort([kept])
    assert values_in(tmp_path) == {("orders", 0): ["b"]}


def test_an_abort_where_nothing_is_does_nothing(tmp_path: Path) -> None:
    job_in(tmp_path / "nowhere").abort([])
    assert not (tmp_path / "nowhere").exists()


def test_a_commit_removes_what_failed_attempts_of_its_job_have_left(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    stage(job, {"value": ["an attempt that failed later"]})
    job.commit([stage(job, {"value": ["a"]})])
    assert not job_files(tmp_path)
    assert values_in(tmp_path) == {("orders", 0): ["a"]}


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
