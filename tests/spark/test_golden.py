"""What real brokers wrote, read by Spark, is what Kafka's own consumer returned: 0 differences.

Partition folders of many cases are read by one ``load([…])``: few queries, all partitions.
"""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.testing import assertDataFrameEqual

from tests.support.golden import (
    Holds,
    Isolation,
    differences,
    golden_partitions,
    read_expected,
)
from tests.support.spark_session import NEEDS_SPARK, last_line, load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from tests.support.golden import GoldenPartition, GoldenRoot

pytestmark = NEEDS_SPARK

Rows = list[dict[str, Any]]

ISOLATIONS: tuple[Isolation, ...] = ("uncommitted", "committed")
EXTREMES = "4.3.0/extremes:extremes-0"
MOST_MICROSECONDS = 2**63 - 1
PARTITIONS = [
    each for each in golden_partitions(Holds.EXACTLY, Holds.MORE_AT_THE_START) if each != EXTREMES
]


def folder_name(partition_id: str) -> str:
    return partition_id.rpartition(":")[2].rpartition("/")[2]


def in_loads(partition_ids: Sequence[str]) -> list[list[str]]:
    """Return the partitions in as few lists as go: none holds a topic of two log directories."""
    loads: list[tuple[dict[str, str], list[str]]] = []
    for each in partition_ids:
        topic = folder_name(each).rpartition("-")[0]
        directory = each.removesuffix(folder_name(each))
        fitting = (load for load in loads if load[0].get(topic, directory) == directory)
        load = next(fitting, None)
        if load is None:
            load = ({}, [])
            loads.append(load)
        load[0][topic] = directory
        load[1].append(each)
    return [partitions for _, partitions in loads]


LOADS = in_loads(PARTITIONS)
LOAD_OF = {each: number for number, partitions in enumerate(LOADS) for each in partitions}

READ_COLUMNS = (
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestampType",
    "headers",
    "batch.leaderEpoch AS leaderEpoch",
)


def options_for(partitions: Sequence[GoldenPartition], isolation: Isolation) -> dict[str, str]:
    return {
        "isolationLevel": f"read_{isolation}",
        "subscribe": ",".join(sorted({each.topic for each in partitions})),  # internal ones, too
        "includeHeaders": "true",
        "includeBatchMetadata": "true",
    }


def rows_by_partition(frame: DataFrame, *, timestamp: bool = True) -> dict[tuple[str, int], Rows]:
    """Return the rows as lines of an expected file, in the order read."""
    # Microseconds: Python's own datetime ends in the year 9999.
    columns = [*READ_COLUMNS, *(["unix_micros(timestamp) AS micros"] if timestamp else [])]
    found: dict[tuple[str, int], Rows] = defaultdict(list)
    for row in frame.selectExpr(*columns).toArrow().to_pylist():
        found[row["topic"], row["partition"]].append(as_line(row))
    return found


def as_line(row: dict[str, Any]) -> dict[str, Any]:
    line = {name: row[name] for name in ("offset", "timestampType", "leaderEpoch")}
    line |= {name: encoded(row[name]) for name in ("key", "value")}
    assert row["headers"] != [], "a record without headers has null"
    line["headers"] = [[each["key"], encoded(each["value"])] for each in row["headers"] or ()]
    if "micros" in row:
        line["timestamp"], rest = divmod(row["micros"], 1000)
        assert rest == 0
    return line


def encoded(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()


def decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def expected_lines(partition: GoldenPartition, isolation: Isolation) -> Rows:
    path = partition.expected_path(isolation)
    assert path is not None
    return read_expected(path)


@pytest.fixture(scope="module")
def read_by_spark(
    spark: SparkSession, golden_root: GoldenRoot
) -> Callable[[str, Isolation], tuple[GoldenPartition, Rows]]:
    """Give a partition's rows; all of a load are read when the first of them is asked for."""
    read: dict[tuple[int, Isolation], dict[tuple[str, int], Rows]] = {}

    def rows(partition_id: str, isolation: Isolation) -> tuple[GoldenPartition, Rows]:
        number = LOAD_OF[partition_id]
        if (number, isolation) not in read:
            partitions = [golden_root.partition(each) for each in LOADS[number]]
            directories = [each.directory for each in partitions]
            frame = load(spark, directories, **options_for(partitions, isolation))
            read[number, isolation] = rows_by_partition(frame)
        partition = golden_root.partition(partition_id)
        return partition, read[number, isolation][partition.topic, partition.partition]

    return rows


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("partition_id", PARTITIONS)
def test_spark_reads_exactly_what_kafka_s_consumer_returned(
    read_by_spark: Callable[[str, Isolation], tuple[GoldenPartition, Rows]],
    partition_id: str,
    isolation: Isolation,
) -> None:
    partition, rows = read_by_spark(partition_id, isolation)
    assert differences(expected_lines(partition, isolation), rows) == []


@pytest.mark.parametrize("number", range(len(LOADS)))
def test_a_starting_timestamp_leads_spark_to_the_offset_that_kafka_gave(
    spark: SparkSession, golden_root: GoldenRoot, number: int
) -> None:
    partitions = [golden_root.partition(each) for each in LOADS[number]]
    asked = [(each, answer) for each in partitions if (answer := middle_time(each)) is not None]
    starting: dict[str, dict[str, int]] = defaultdict(dict)
    for each, (time, _) in asked:
        starting[each.topic][str(each.partition)] = time
    chosen = [each for each, _ in asked]
    frame = load(
        spark,
        [each.directory for each in chosen],
        startingOffsetsByTimestamp=json.dumps(starting),
        startingOffsets='{"of lower precedence": 0}',
        **options_for(chosen, "uncommitted"),
    )
    found = rows_by_partition(frame)
    for each, (_, start) in asked:
        lines = [line for line in expected_lines(each, "uncommitted") if line["offset"] >= start]
        assert differences(lines, found[each.topic, each.partition]) == [], each


def middle_time(partition: GoldenPartition) -> tuple[int, int] | None:
    """Return a time that Kafka was asked for with an answer, and the offset; None without one."""
    if partition.offsets is None or partition.scenario.startswith(("mixed-", "message-format")):
        return None  # there Kafka's answer depends on the modification times of lost files
    answers = sorted(
        (int(time), answer["offset"])
        for time, answer in (partition.offsets["offsetsForTimes"] or {}).items()
        if answer is not None and "offset" in answer
    )
    return answers[len(answers) // 2] if answers else None


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("case_id", ["4.3.0/internal-logdir", "2.8.2/internal-logdir"])
def test_a_whole_log_directory_gives_the_records_of_its_topics_but_internal_ones(
    spark: SparkSession, golden_root: GoldenRoot, case_id: str, isolation: Isolation
) -> None:
    partitions = [
        golden_root.partition(each)
        for each in golden_partitions(Holds.EXACTLY)
        if each.startswith(f"{case_id}:") and not folder_name(each).startswith("__")
    ]
    expected = [
        (
            decoded(line["key"]),
            decoded(line["value"]),
            each.topic,
            each.partition,
            line["offset"],
            line["timestamp"],
            line["timestampType"],
            [(name, decoded(value)) for name, value in line["headers"]] or None,
        )
        for each in partitions
        for line in expected_lines(each, isolation)
    ]
    frame = load(
        spark, golden_root.case(case_id), isolationLevel=f"read_{isolation}", includeHeaders=True
    )
    in_milliseconds = frame.selectExpr(
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "unix_millis(timestamp) AS timestamp",
        "timestampType",
        "headers",
    )
    assert len(expected) > 0
    assertDataFrameEqual(
        in_milliseconds, spark.createDataFrame(expected, schema=in_milliseconds.schema)
    )


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_timestamps_beyond_64_bit_microseconds_can_be_left_out(
    spark: SparkSession, golden_root: GoldenRoot, isolation: Isolation
) -> None:
    partition = golden_root.partition(EXTREMES)
    frame = load(
        spark,
        partition.directory,
        isolationLevel=f"read_{isolation}",
        columns="key,value,topic,partition,offset,timestampType,headers,batch",
    )
    expected = expected_lines(partition, isolation)
    for line in expected:
        del line["timestamp"]
    [rows] = rows_by_partition(frame, timestamp=False).values()
    assert differences(expected, rows) == []


def test_timestamps_beyond_64_bit_microseconds_stop_a_read_that_asks_for_them(
    spark: SparkSession, golden_root: GoldenRoot
) -> None:
    partition = golden_root.partition(EXTREMES)
    frame = load(spark, partition.directory)
    message = last_line(frame.collect)
    assert message.startswith("pylog.errors.TimestampOverflowError: ")
    assert ": the timestamp of the record " in message
    assert "does not fit into 64-bit microseconds; leave the column 'timestamp' out" in message
    assert str(partition.directory) in message


def test_timestamps_up_to_the_end_of_64_bit_microseconds_are_exact(
    spark: SparkSession, golden_root: GoldenRoot
) -> None:
    partition = golden_root.partition(EXTREMES)
    lines = expected_lines(partition, "uncommitted")
    spans = spans_that_fit(lines)
    assert max(line["timestamp"] for span in spans for line in span) > 253_402_300_799_999
    for span in spans:
        frame = load(
            spark,
            partition.directory,
            startingOffsets=json.dumps({"extremes": {"0": span[0]["offset"]}}),
            endingOffsets=json.dumps({"extremes": {"0": span[-1]["offset"] + 1}}),
            includeHeaders=True,
            includeBatchMetadata=True,
        )
        [rows] = rows_by_partition(frame).values()
        assert differences(span, rows) == []


def spans_that_fit(lines: Rows) -> list[Rows]:
    """Return the runs of lines whose timestamps are at most 2^63-1 microseconds."""
    spans: list[Rows] = [[]]
    for line in lines:
        if line["timestamp"] * 1000 > MOST_MICROSECONDS:
            spans.append([])
        else:
            spans[-1].append(line)
    return [span for span in spans if span]
