"""What a task stages: batches of each topic-partition, from rows in any order."""

from __future__ import annotations

import os
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import pylog
from pylog.errors import (
    InvalidRecordError,
    InvalidTimestampError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    RecordValidationError,
    UnknownTopicOrPartitionError,
)
from tests.support.registry_records import ORDER
from tests.unit.writing.staged_jobs import NOW_MS, job_files, job_in, stage, values_in

if TYPE_CHECKING:
    from pathlib import Path


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


def test_the_block_of_a_stage_ends_well_before_it_can_be_committed(tmp_path: Path) -> None:
    attempt = job_in(tmp_path).stage("attempt")
    with pytest.raises(ValueError, match="nothing was staged by attempt 'attempt'"):
        _ = attempt.staged


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


def test_values_are_encoded_by_a_schema(tmp_path: Path) -> None:
    file = tmp_path / "order.avsc"
    file.write_text(ORDER)
    logs = tmp_path / "logs"
    encoders = pylog.jobs.register_schemas(logs, "orders", {"value": file})
    job = job_in(logs, encoders=encoders)

    job.commit([stage(job, {"value": [{"id": 1}, None]}, {"value": [{"id": 2}]})])

    typed = pylog.scan(logs, topics="orders", value_format="auto").to_table()
    assert typed.column("value").to_pylist() == [{"id": 1}, None, {"id": 2}]
    with pytest.raises(
        ValueError, match="row 3: the value cannot be encoded by schema 1: id: null"
    ):
        stage(job, {"value": [{"id": 1}] * 3}, {"value": [{"id": None}]})
    with pytest.raises(ValueError, match="encoded by the schemas of one topic: name it"):
        job_in(logs, topic=None, encoders=encoders)
