"""Jobs that are staged by many and committed by one."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import pylog
from pylog.errors import (
    CorruptRecordError,
    InvalidRecordError,
    InvalidTimestampError,
    LogLockedError,
    LogStorageError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    RecordValidationError,
    SegmentVanishedError,
    UnknownTopicOrPartitionError,
)
from pylog.files.directory_lock import DirectoryLock
from pylog.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOW_MS = 1_700_000_000_000


def job_in(directory: Path, job_id: str = "nightly", **options: object) -> pylog.jobs.WriteJob:
    options.setdefault("topic", "orders")
    return pylog.jobs.WriteJob(str(directory), job_id, **options)  # type: ignore[arg-type]


def stage(
    job: pylog.jobs.WriteJob, *columns: dict[str, Any], now_ms: int = NOW_MS
) -> pylog.jobs.StagedRecords:
    context = pylog.logs.LogContext(clock=ManualClock(now_ms))
    with job.stage("attempt", context=context) as attempt:
        for each in columns:
            attempt.append(pa.record_batch(each))
    return attempt.staged


def values_in(directory: Path) -> dict[tuple[str, int], list[str]]:
    found = defaultdict(list)
    table = pylog.scan(directory, columns=["topic", "partition", "value"]).to_table()
    for row in table.to_pylist():
        found[row["topic"], row["partition"]].append(row["value"].decode())
    return dict(found)


def job_files(directory: Path) -> list[str]:
    names = {path.name for path in directory.iterdir() if path.name.startswith(".pylog-")}
    return sorted(names - {".pylog-ledger", ".pylog-only-replica"})


def test_what_was_staged_is_there_once_it_is_committed(tmp_path: Path) -> None:
    job = job_in(tmp_path, topic=None)
    first = stage(job, {"topic": ["a", "b", "a"], "value": ["1", "2", "3"]})
    second = stage(job, {"topic": ["a"], "value": ["4"]}, {"topic": ["a"], "value": ["5"]})
    assert not job.is_committed()
    assert first.record_count == 3
    summary = job.commit([first, second])
    assert job.is_committed()
    assert values_in(tmp_path) == {("a", 0): ["1", "3", "4", "5"], ("b", 0): ["2"]}
    assert not job_files(tmp_path)
    assert (summary.records, summary.already_committed) == (5, False)
    assert [each.end_offset for each in summary.partitions] == [4, 1]


def test_rows_lie_as_write_topic_puts_them(tmp_path: Path) -> None:
    columns = {
        "key": [f"key {each}" for each in range(500)],
        "value": pa.array([f"value {each}".encode() for each in range(500)], pa.large_binary()),
        "timestamp": pa.array([NOW_MS + each for each in range(500)], pa.timestamp("ms", "UTC")),
        "headers": pa.array(
            [[{"key": "h", "value": b"%d" % each}] for each in range(500)],
            pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
        ),
    }
    job = job_in(tmp_path / "job", partitions=3)
    (tmp_path / "job").mkdir()
    job.commit([stage(job, columns)])
    pylog.write_topic(tmp_path / "direct", "orders", pa.table(columns), partitions=3)
    one, other = (
        pylog.scan(tmp_path / name, include_headers=True).to_table() for name in ("job", "direct")
    )
    assert one == other


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_batches_are_compressed(tmp_path: Path, compression: str) -> None:
    job = job_in(tmp_path, compression=compression)
    job.commit([stage(job, {"value": ["x" * 100] * 50})])
    batches = pylog.read_table(tmp_path, "batches", check_crc=True).to_pylist()
    assert {each["codec"] for each in batches} == {compression}
    assert values_in(tmp_path) == {("orders", 0): ["x" * 100] * 50}


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_rows_that_cannot_be_compressed_fit_batches_of_the_largest_size(
    tmp_path: Path, compression: str
) -> None:
    job = job_in(tmp_path, compression=compression, batch_size_bytes=1 << 21)
    rows = [os.urandom(1_000) for _ in range(3_000)]
    job.commit([stage(job, {"value": rows})])
    assert pylog.scan(tmp_path).count() == 3_000


def test_a_topic_that_demands_a_codec_gets_it(tmp_path: Path) -> None:
    pylog.create_topic(tmp_path, "orders", 1, properties={"compression.type": "zstd"})
    job = job_in(tmp_path, compression="gzip")
    job.commit([stage(job, {"value": ["x"]})])
    [batch] = pylog.read_table(tmp_path, "batches").to_pylist()
    assert batch["codec"] == "zstd"


def test_an_existing_topic_keeps_its_partitions_and_a_new_one_gets_those_asked_for(
    tmp_path: Path,
) -> None:
    pylog.create_topic(tmp_path, "old", 2)
    job = job_in(tmp_path, topic=None, partitions=3, config={"retention.ms": "-1"})
    job.commit([stage(job, {"topic": ["old", "new"], "value": ["1", "2"]})])
    assert len(pylog.open_directory(tmp_path).topics["old"]) == 2
    assert len(pylog.open_directory(tmp_path).topics["new"]) == 3
    with pylog.logs.LogManager([tmp_path]) as manager:
        assert manager.config_of("new").retention_ms == -1
        assert manager.config_of("old").retention_ms == 604_800_000


@pytest.mark.parametrize(("partitioner", "expected"), [("round_robin", 3), ("integer_key", 2)])
def test_the_partitioner_is_chosen_by_name(tmp_path: Path, partitioner: str, expected: int) -> None:
    job = job_in(tmp_path, partitions=3, partitioner=partitioner)
    job.commit([stage(job, {"key": ["0", "3", "1"], "value": ["a", "b", "c"]})])
    assert len(values_in(tmp_path)) == expected


def test_a_row_may_name_its_partition_and_null_leaves_it_to_the_partitioner(
    tmp_path: Path,
) -> None:
    job = job_in(tmp_path, partitions=2, partitioner="round_robin")
    numbers = pa.array([1, None, 1], pa.int32())
    job.commit([stage(job, {"value": ["a", "b", "c"], "partition": numbers})])
    assert values_in(tmp_path) == {("orders", 0): ["b"], ("orders", 1): ["a", "c"]}


def test_rows_without_a_timestamp_get_the_time_of_writing(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    times = pa.array([None, 5], pa.timestamp("ms"))
    job.commit([stage(job, {"value": ["a", "b"], "timestamp": times}, {"value": ["c"]})])
    stored = pylog.scan(tmp_path, columns="timestamp", timestamp_unit="ms").to_table()
    assert stored["timestamp"].cast(pa.int64()).to_pylist() == [NOW_MS, 5, NOW_MS]


def test_record_batches_of_one_attempt_may_have_columns_of_other_types(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    staged = stage(
        job,
        {"value": ["a"]},
        {"key": ["k"], "value": [b"b"]},
        {"value": pa.array(["c"], pa.large_string()), "key": pa.array([None], pa.string())},
        {"value": ["d"], "other": [1.5]},
    )
    job.commit([staged])
    rows = pylog.scan(tmp_path, columns=["key", "value"]).to_table().to_pylist()
    assert [row["value"] for row in rows] == [b"a", b"b", b"c", b"d"]
    assert [row["key"] for row in rows] == [None, b"k", None, None]


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


def batch_sizes(directory: Path) -> dict[int, list[int]]:
    found = defaultdict(list)
    for row in pylog.read_table(directory, "batches").to_pylist():
        found[row["partition"]].append(row["size_in_bytes"])
    return dict(found)


@pytest.mark.parametrize("rows", [7, 1_000, 40_000])
def test_batches_are_filled_from_many_record_batches(tmp_path: Path, rows: int) -> None:
    job = job_in(tmp_path, partitions=2, batch_size_bytes=700_000)
    values = [f"{each:06}" + "x" * 94 for each in range(40_000 if rows > 7 else 140)]
    parts = [values[start : start + rows] for start in range(0, len(values), rows)]
    numbered = [
        {"value": part, "partition": [int(each[:6]) % 2 for each in part]} for part in parts
    ]
    job.commit([stage(job, *numbered)])
    sizes = batch_sizes(tmp_path)
    assert all(size > 700_000 - 200 for each in sizes.values() for size in each[:-1])
    assert [len(sizes[number]) for number in range(2)] == ([1, 1] if rows == 7 else [4, 4])
    assert values_in(tmp_path)["orders", 1] == values[1::2]


@pytest.mark.parametrize("large", [0, 5, 14])
def test_a_batch_above_the_limit_is_named_by_its_first_row_wherever_that_came(
    tmp_path: Path, large: int
) -> None:
    config = {"max.message.bytes": "1000"}
    values = [["x" * (2_000 if row == large else 10)] for row in range(15)]
    job = job_in(tmp_path, config=config)
    with pytest.raises(RecordTooLargeError, match=rf"^.*row {large} makes a batch of 20\d\d bytes"):
        stage(job, *({"value": each} for each in values))
    assert job_files(tmp_path) == []


def test_a_new_file_is_begun_where_a_segment_ends(tmp_path: Path) -> None:
    job = job_in(tmp_path, config={"segment.bytes": "20000"}, batch_size_bytes=1_000)
    staged = stage(job, {"value": [f"{each:05}" + "x" * 95 for each in range(1_000)]})
    sizes = [each.size_bytes for each in staged.files]
    assert len(sizes) > 5
    assert max(sizes) <= 20_000
    assert min(sizes[:-1]) > 20_000 - 1_000
    job.commit([staged])
    segments = pylog.read_table(tmp_path, "segments").to_pylist()
    assert [each["size_in_bytes"] for each in segments] == sizes
    assert values_in(tmp_path)["orders", 0][::500] == ["00000" + "x" * 95, "00500" + "x" * 95]
    assert pylog.read_table(tmp_path, "findings").num_rows == 0
    # Indexes are those of appends: look-ups find every offset.
    assert pylog.scan(tmp_path, start=777, end=778).to_table()["value"][0].as_py()[:5] == b"00777"
    pylog.write_topic(tmp_path, "orders", [(None, "later")])
    assert values_in(tmp_path)["orders", 0][-1] == "later"


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


def _without_path(directory: Path, name: str) -> pa.Table:
    table = pylog.read_table(directory, name)
    return table.select([each for each in table.column_names if each != "path"])


def test_indexes_are_those_of_appends(tmp_path: Path) -> None:
    config = {"segment.bytes": "20000", "index.interval.bytes": "1500"}
    rows = {"value": [f"{each:05}" + "x" * 95 for each in range(1_000)]}
    rows["timestamp"] = pa.array([NOW_MS + each * 7 % 31 for each in range(1_000)], pa.int64())
    job = job_in(tmp_path / "job", config=config, batch_size_bytes=1_000)
    (tmp_path / "job").mkdir()
    job.commit([stage(job, rows)])
    table = pa.table(rows)
    pylog.write_topic(tmp_path / "direct", "orders", table, config=config, batch_size=1_000)
    for name in ("segments", "index_entries", "leader_epochs"):
        one, other = (_without_path(tmp_path / each, name) for each in ("job", "direct"))
        assert one == other, name


# ---- rows that cannot be written


@pytest.mark.parametrize(
    ("properties", "columns", "error", "text"),
    [
        (
            {"cleanup.policy": "compact"},
            {"key": ["k", None], "value": ["a", "b"]},
            RecordValidationError,
            "row 4 has no key, and topic 'orders' is compacted",
        ),
        (
            {"message.timestamp.after.max.ms": "10"},
            {"value": ["a", "b"], "timestamp": pa.array([NOW_MS, NOW_MS + 11], pa.int64())},
            InvalidTimestampError,
            (
                f"row 4 for topic 'orders' has timestamp {NOW_MS + 11} ms, the time is {NOW_MS}: "
                "message.timestamp.after.max.ms of the topic is 10"
            ),
        ),
        (
            {"message.timestamp.before.max.ms": "10"},
            {"value": ["a", "b"], "timestamp": pa.array([NOW_MS, NOW_MS - 11], pa.int64())},
            InvalidTimestampError,
            "row 4 for topic 'orders' has timestamp",
        ),
        (
            {"max.decompressed.message.bytes": "1000", "compression.type": "lz4"},
            {"key": ["k", "k"], "value": ["a", "x" * 1_000]},
            InvalidRecordError,
            (
                "row 4 is a record of 1008 bytes for partition orders-0, "
                "max.decompressed.message.bytes of the topic is 1000"
            ),
        ),
        (
            {"max.message.bytes": "1000"},
            {"key": ["k", "k"], "value": ["a", "x" * 1_000]},
            RecordTooLargeError,
            "row 4 makes a batch of 107",
        ),
        (
            {"segment.bytes": "1000"},
            {"key": ["k", "k"], "value": ["a", "x" * 1_000]},
            RecordBatchTooLargeError,
            "row 4 makes a batch of 107",
        ),
        (
            {},
            {"value": ["a", "b"], "partition": pa.array([0, 3], pa.int32())},
            ValueError,
            "row 4 goes to partition 3 of topic 'orders'; partitions that are there: 0, 1",
        ),
        (
            {},
            {"value": ["a", "b"], "partition": pa.array([0, -1], pa.int32())},
            ValueError,
            "row 4 names partition -1",
        ),
        (
            {},
            {"value": ["a", "b"], "timestamp": pa.array([0, -2], pa.int64())},
            ValueError,
            "row 4: timestamp -2 ms is below 0",
        ),
        ({}, {"key": ["a", "b"]}, ValueError, "no column 'value'"),
        ({}, {"value": [1, 2]}, ValueError, "column 'value' is of type int64"),
    ],
)
def test_a_row_that_cannot_be_written_is_named_and_nothing_is_left(
    tmp_path: Path,
    properties: dict[str, str],
    columns: dict[str, Any],
    error: type[Exception],
    text: str,
) -> None:
    pylog.create_topic(tmp_path, "orders", 2, properties=properties)
    job = job_in(tmp_path, batch_size_bytes=200)
    with pytest.raises(error) as raised:
        stage(job, {"key": ["k"] * 3, "value": ["a"] * 3}, columns)
    assert text in str(raised.value)
    assert not job_files(tmp_path)


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"topic": ["a", None], "value": ["1", "2"]}, "row 1 has no topic"),
        ({"topic": ["a", "b/c"], "value": ["1", "2"]}, "'b/c' is not a topic name"),
        ({"topic": [1, 2], "value": ["1", "2"]}, "column 'topic' is of type int64"),
        ({"value": ["1", "2"]}, "nor is there one column 'topic'; columns: value"),
    ],
)
def test_rows_name_their_topic_unless_the_job_does(
    tmp_path: Path, columns: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        stage(job_in(tmp_path, topic=None), columns)
    assert not job_files(tmp_path)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"job_id": ""}, "job id is ''"),
        ({"batch_id": -1}, "batch_id is -1"),
        ({"topic": "a/b"}, "'a/b' is not a topic name"),
        ({"partitions": 0}, "a topic has 1 to 100000 partitions, not 0"),
        ({"partitions": 100_001}, "a topic has 1 to 100000 partitions, not 100001"),
        ({"compression": "zstd", "level": 99}, "zstd level is 99, expected "),
        ({"compression": "none", "level": 3}, "compression none has no levels, 3 was given"),
        ({"batch_size_bytes": 0}, "batch_size_bytes is 0"),
        ({"fingerprint": "f" * 4_001}, "the fingerprint has 4001 characters, the limit is 4000"),
        ({"bookmark": "up to 1"}, "a bookmark is for a job with a batch_id"),
        ({"topic": "__consumer_offsets"}, "'__consumer_offsets' is one that Kafka keeps for itse"),
    ],
)
def test_an_option_that_is_wrong_is_an_error_at_once(
    tmp_path: Path, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        job_in(tmp_path, **options)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"partitioner": "hash"}, "partitioner 'hash' is neither"),
        ({"compression": "brotli"}, "compression 'brotli' is not one of"),
        ({"config": {"retention.sm": "1"}}, "retention.sm"),
        ({"compression": "gzip", "level": 77}, "77"),
    ],
)
def test_an_option_that_is_wrong_is_an_error_of_the_first_task(
    tmp_path: Path, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        stage(job_in(tmp_path, **options), {"value": ["a"]})


@pytest.mark.parametrize(
    "topic",
    [
        "__consumer_offsets",
        "__transaction_state",
        "__share_group_state",
        "__cluster_metadata",
        "__remote_log_metadata",
    ],
)
def test_a_column_names_internal_topics_only_if_that_is_said(tmp_path: Path, topic: str) -> None:
    columns = {"topic": ["orders", topic], "value": ["a", "b"]}
    with pytest.raises(ValueError, match=f"'{topic}' is one .*writes_internal_topics=True"):
        stage(job_in(tmp_path, topic=None), columns)
    assert not job_files(tmp_path)
    job = job_in(tmp_path, topic=None, writes_internal_topics=True)
    assert job.commit([stage(job, columns)]).records == 2
    assert job_in(tmp_path, topic=topic, writes_internal_topics=True).topic == topic


# ---- once


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


# ---- the lock


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
    threading.Timer(0.2, lock.unlock).start()
    begun = time.monotonic()
    assert job.commit([staged]).records == 1
    assert 0.15 < time.monotonic() - begun < 10


# ---- what is left


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


def test_files_of_jobs_that_died_are_swept_after_a_week_and_not_before(tmp_path: Path) -> None:
    day = 86_400
    now = time.time()
    for job_id, days in (("dead", 8), ("late", 6), ("half", 8)):
        stage(job_in(tmp_path, job_id), {"value": ["a"]})
        for name in job_files(tmp_path):
            if (tmp_path / name).stat().st_mtime > now - day:
                os.utime(tmp_path / name, (now - days * day,) * 2)
    half = job_in(tmp_path, "half")
    stage(half, {"value": ["b"]})  # another task of it is at work
    assert len(job_files(tmp_path)) == 8
    job = job_in(tmp_path)
    job.commit([stage(job, {"value": ["a"]}, now_ms=int(now * 1_000))])
    assert len(job_files(tmp_path)) == 6
    prefixes = {name[:30] for name in job_files(tmp_path)}
    assert prefixes == {job_in(tmp_path, each).key.file_prefix[:30] for each in ("late", "half")}


def test_the_block_of_a_stage_ends_well_before_it_can_be_committed(tmp_path: Path) -> None:
    attempt = job_in(tmp_path).stage("attempt")
    with pytest.raises(ValueError, match="nothing was staged by attempt 'attempt'"):
        _ = attempt.staged


def test_a_job_and_what_was_staged_can_be_pickled(tmp_path: Path) -> None:
    job = job_in(tmp_path, config={"retention.ms": "-1"})
    job = pickle.loads(pickle.dumps(job))  # noqa: S301 - our own
    staged = pickle.loads(pickle.dumps(stage(job, {"value": ["a"]})))  # noqa: S301 - our own
    assert job.commit([staged]).records == 1


def test_a_job_loads_neither_arrow_nor_numba() -> None:
    code = (
        "import pylog, sys\n"
        "job = pylog.jobs.WriteJob('/nowhere', 'job', topic='orders')\n"
        "assert not {'pyarrow', 'numba', 'numpy'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_topic_that_looks_like_a_typing_error_is_staged_if_that_is_said(tmp_path: Path) -> None:
    pylog.create_topic(tmp_path, "orders", 1)
    job = job_in(tmp_path, topic="ordes")
    for look in (job.ensure_topic_is_meant, lambda: stage(job, {"value": ["a"]})):
        with pytest.raises(UnknownTopicOrPartitionError, match="did you mean 'orders'"):
            look()
    assert job_files(tmp_path) == []
    meant = job_in(tmp_path, topic="ordes", creates_similar_topic=True)
    meant.commit([stage(meant, {"value": ["a"]})])
    assert values_in(tmp_path)["ordes", 0] == ["a"]
    job_in(tmp_path, topic="ordes").ensure_topic_is_meant()


def test_a_topic_whose_metrics_would_be_those_of_another_is_refused(tmp_path: Path) -> None:
    pylog.create_topic(tmp_path, "orders.eu", 1)
    named = job_in(tmp_path, topic="orders_eu", creates_similar_topic=True)
    of_rows = job_in(tmp_path, topic=None)
    for look in (
        named.ensure_topic_is_meant,
        lambda: stage(named, {"value": ["a"]}),
        lambda: stage(of_rows, {"topic": ["orders_eu"], "value": ["a"]}),
    ):
        with pytest.raises(ValueError, match=r"'orders_eu' would collide with 'orders\.eu'"):
            look()
    assert job_files(tmp_path) == []


def test_a_similar_topic_that_rows_name_is_made(tmp_path: Path) -> None:
    pylog.create_topic(tmp_path, "orders", 1)
    job = job_in(tmp_path, topic=None)
    job.ensure_topic_is_meant()
    job.commit([stage(job, {"topic": ["ordes"], "value": ["a"]})])
    assert values_in(tmp_path)["ordes", 0] == ["a"]
