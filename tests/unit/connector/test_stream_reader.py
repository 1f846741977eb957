"""The stream reader: where it starts, what it finds, the tasks of a batch and their rows."""

from __future__ import annotations

import json
import logging
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from pyspark_pylog import DefaultSource
from pyspark_pylog.errors import StreamDataLossError
from pyspark_pylog.options import READ_OPTIONS
from pyspark_pylog.stream_offset import INITIAL
from tests.support.batches import ABORT, COMMIT, batch_v2, empty_batch_v2, marker, plain_records
from tests.support.log_files import segment_path, write_partition
from tests.unit.connector.stream_query import Query, append, batch, ends_of, logs, through_json

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["logs"]
ALL = ReadAllAvailable()


def test_a_stream_starts_at_the_latest_offsets_by_default(logs: Path) -> None:
    query = Query(logs)
    first = query.latest(query.initial())
    assert first == {
        "$pylog": {"begin": {"orders": {"0": 2}}, "version": 1},
        "orders": {"0": 2},
    }
    assert query.rows(INITIAL, first) == {}
    append(logs, batch(2))
    second = query.latest(first)
    assert second == {"$pylog": {"version": 1}, "orders": {"0": 4}}
    assert query.rows(first, second) == {"orders-0": [2, 3]}


def test_the_start_is_that_of_the_first_end_when_the_first_batch_is_done_again(logs: Path) -> None:
    query = Query(logs)
    first = query.latest(query.initial())
    append(logs, batch(2))
    again = Query(logs)
    assert again.initial() == INITIAL
    assert again.rows(again.initial(), first) == {}
    assert again.rows(first, again.latest(first)) == {"orders-0": [2, 3]}
    earliest = Query(logs, startingOffsets="earliest")
    first = earliest.latest(INITIAL)
    append(logs, batch(4))
    assert Query(logs, startingOffsets="earliest").rows(INITIAL, first) == {
        "orders-0": [0, 1, 2, 3]
    }


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingOffsets": "earliest"}, [0, 1, 2, 3]),
        ({"startingOffsets": "LATEST"}, []),
        ({"startingOffsets": '{"orders":{"0":3}}'}, [3]),
        ({"startingOffsets": '{"orders":{"0":-2}}'}, [0, 1, 2, 3]),
        ({"startingOffsets": '{"orders":{"0":-1}}'}, []),
        ({"startingOffsets": '{"$pylog":{"version":1},"orders":{"0":1}}'}, [1, 2, 3]),
        ({"startingOffsets": "{}"}, []),
        ({"startingTimestamp": "1002"}, [2, 3]),
        ({"startingOffsetsByTimestamp": '{"orders":{"0":1001}}'}, [1, 2, 3]),
        (
            {"startingTimestamp": "9999", "startingOffsetsByTimestampStrategy": "latest"},
            [],
        ),
    ],
)
def test_where_a_new_query_starts(
    tmp_path: Path, options: dict[str, str], expected: list[int]
) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 4))]})
    query = Query(tmp_path, **options)
    assert query.rows(INITIAL, query.latest(INITIAL)).get("orders-0", []) == expected


def test_a_start_that_is_not_there_fails_the_query(logs: Path) -> None:
    for options, error in (
        ({"startingOffsets": '{"orders":{"0":9}}'}, "offset 9"),
        ({"startingOffsets": '{"orders":{"7":0}}'}, "a position is given for orders-7, which"),
        ({"startingTimestamp": "9999"}, "no record of orders-0 has a timestamp of 9999"),
    ):
        with pytest.raises(Exception, match=error):
            Query(logs, **options).latest(INITIAL)
    lenient = Query(logs, startingOffsets='{"orders":{"0":9}}', failOnDataLoss="false")
    assert ends_of(lenient.latest(INITIAL)) == {"orders": {"0": 2}}


def test_nothing_new_is_the_same_offset_as_text(logs: Path) -> None:
    query = Query(logs)
    first = query.latest(INITIAL)
    assert json.dumps(query.latest(first)) == json.dumps(first)
    append(logs, batch(2))
    second = query.latest(first)
    assert json.dumps(query.latest(second)) == json.dumps(second)
    assert json.dumps(Query(logs).latest(second)) == json.dumps(second)
    assert query.tasks(second, second) == []


def test_spark_4_1_asks_for_the_latest_offset_first_and_says_nothing(logs: Path) -> None:
    query = Query(logs)
    end = through_json(query.reader.latestOffset())
    assert query.rows(query.initial(), end) == {}
    append(logs, batch(2))
    following = through_json(query.reader.latestOffset())
    assert query.rows(end, following) == {"orders-0": [2, 3]}
    assert through_json(query.reader.latestOffset()) == following
    assert query.tasks(following, following) == []
    # After a restart, partitions made meanwhile are read from their beginning.
    write_partition(logs, {0: [batch_v2(plain_records(0, 3))]}, name="orders-1")
    again = Query(logs)
    latest = through_json(again.reader.latestOffset())
    assert again.rows(following, latest) == {"orders-1": [0, 1, 2]}


def test_new_partitions_and_topics_are_read_from_their_beginning(logs: Path) -> None:
    query = Query(logs)
    first = query.latest(INITIAL)
    write_partition(logs, {0: [batch_v2(plain_records(0, 3))]}, name="orders-1")
    write_partition(logs, {0: [batch_v2(plain_records(0, 1))]}, name="payments-0")
    second = query.latest(first)
    assert ends_of(second) == {"orders": {"0": 2, "1": 3}, "payments": {"0": 1}}
    assert query.rows(first, second) == {"orders-1": [0, 1, 2], "payments-0": [0]}
    assert Query(logs).rows(first, second) == {"orders-1": [0, 1, 2], "payments-0": [0]}


def test_only_what_is_chosen_is_discovered(logs: Path) -> None:
    query = Query(logs, subscribe="orders")
    first = query.latest(INITIAL)
    write_partition(logs, {0: [batch_v2(plain_records(0, 1))]}, name="payments-0")
    assert query.latest(first) == first


def test_the_least_number_of_tasks_is_kept(logs: Path) -> None:
    append(logs, b"".join(batch(base, 1) for base in range(2, 20)))
    query = Query(logs, startingOffsets="earliest", minPartitions="6")
    first = query.latest(INITIAL)
    assert len(query.tasks(INITIAL, first)) >= 6
    assert sorted(query.rows(INITIAL, first)["orders-0"]) == list(range(20))
    few = Query(logs, startingOffsets="earliest", maxRecordsPerPartition="5")
    assert len(few.tasks(INITIAL, first)) == 4


def test_a_pattern_that_matches_nothing_yet_waits_for_topics(logs: Path) -> None:
    query = Query(logs, subscribePattern="^pay")
    first = query.latest(INITIAL)
    assert ends_of(first) == {}
    assert query.latest(first) == first
    write_partition(logs, {0: [batch_v2(plain_records(0, 1))]}, name="payments-0")
    assert query.rows(first, query.latest(first)) == {"payments-0": [0]}


def test_each_topic_may_start_elsewhere(logs: Path) -> None:
    write_partition(logs, {0: [batch_v2(plain_records(0, 2))]}, name="payments-0")
    query = Query(logs, startingOffsets='{"orders":"earliest","payments":"latest"}')
    assert query.rows(INITIAL, query.latest(INITIAL)) == {"orders-0": [0, 1]}


def test_open_transactions_wait_and_aborted_ones_never_come(logs: Path) -> None:
    def data(base: int, producer_id: int) -> bytes:
        records = plain_records(base, 1)
        return batch_v2(records, producer_id=producer_id, is_transactional=True).data

    query = Query(logs, isolationLevel="read_committed")
    offset = query.latest(INITIAL)
    steps: list[tuple[bytes, dict[str, list[int]]]] = [
        (data(2, 1) + data(3, 2), {}),
        (marker(4, COMMIT, producer_id=1).data, {"orders-0": [2]}),
        (marker(5, ABORT, producer_id=2).data + batch(6, 1), {"orders-0": [6]}),
    ]
    for appended, expected in steps:
        append(logs, appended)
        end = query.latest(offset)
        assert query.rows(offset, end) == expected
        offset = end
    assert ends_of(offset) == {"orders": {"0": 7}}


def test_a_few_records_in_each_of_many_partitions_are_a_handful_of_tasks(logs: Path) -> None:
    for number in range(1, 300):
        directory = logs / f"orders-{number}"
        directory.mkdir()
        os.link(segment_path(logs / "orders-0", 0), segment_path(directory, 0))
    query = Query(logs, startingOffsets="earliest")
    first = query.latest(INITIAL)
    assert 1 <= len(query.tasks(INITIAL, first)) <= 5
    rows = query.rows(INITIAL, first)
    assert rows == {f"orders-{number}": [0, 1] for number in range(300)}
    alone = Query(logs, startingOffsets="earliest", packPartitions="false")
    assert len(alone.tasks(INITIAL, first)) == 300


def test_sparks_stand_in_for_no_partitions_reads_nothing(logs: Path) -> None:
    assert list(Query(logs).reader.read(InputPartition(None))) == []


def test_the_latest_offsets_are_reported_as_the_kafka_source_does(logs: Path) -> None:
    query = Query(logs, maxOffsetsPerTrigger="1", startingOffsets="earliest")
    assert query.reader.reportLatestOffset() is None
    query.latest(INITIAL)
    assert query.reader.reportLatestOffset() == {"orders": {"0": 2}}


def test_damage_names_host_file_and_what_to_do(logs: Path) -> None:
    query = Query(logs)
    first = query.latest(INITIAL)
    append(logs, b"\x07" * 100 + batch(2))
    with pytest.raises(Exception, match=r"host .*orders-0/0+\.log.*mode=DROPMALFORMED leaves out"):
        query.latest(first)
    lenient = Query(logs, mode="DROPMALFORMED")
    assert lenient.rows(first, lenient.latest(first)) == {"orders-0": [2, 3]}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"endingOffsets": "latest"},
            "option endingOffsets is for spark.read: a stream has no end",
        ),
        ({"endingOffsetsByTimestamp": '{"orders":1}'}, "option endingOffsetsByTimestamp is for sp"),
        ({"endingTimestamp": "1"}, "option endingTimestamp is for spark.read: a stream has no end"),
        ({"table": "batches"}, "option table is 'batches', which is for spark.read: a stream rea"),
    ],
)
def test_what_a_stream_does_not_take_is_refused_at_the_first_question(
    logs: Path, options: dict[str, str], words: str
) -> None:
    query = Query(logs, **options)
    query.reader.stop()  # Spark does, in a `finally`
    reader: Any = query.reader
    for ask in (
        reader.initialOffset,
        reader.latestOffset,
        lambda: reader.latestOffset({}, ALL),
        lambda: reader.partitions({}, {}),
        lambda: reader.read(InputPartition(None)),
    ):
        with pytest.raises(ValueError, match=words):
            ask()


def test_a_stream_ends_after_an_empty_batch_at_the_end_of_a_log(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 10)), empty_batch_v2(10, 14)]})
    query = Query(tmp_path)
    assert query.latest(query.initial())["orders"] == {"0": 15}


def test_a_batch_is_limited_by_offsets(logs: Path) -> None:
    append(logs, b"".join(batch(base, 1) for base in range(2, 10)))
    query = Query(logs, startingOffsets="earliest", maxOffsetsPerTrigger="4")
    assert isinstance(query.limit, ReadMaxRows)
    batches, offset = [], INITIAL
    while (end := query.latest(offset)) != offset:
        batches.append(query.rows(offset, end)["orders-0"])
        offset = end
    assert batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    query.limit = ALL  # as a query that runs once
    assert ends_of(query.latest(INITIAL)) == {"orders": {"0": 10}}


def test_a_batch_is_limited_by_bytes(logs: Path) -> None:
    append(logs, b"".join(batch(base, 1) for base in range(2, 10)))
    query = Query(logs, startingOffsets="earliest", maxBytesPerTrigger=f"{3 * len(batch(2, 1))}b")
    read: list[int] = []
    batches, offset = 0, INITIAL
    while (end := query.latest(offset)) != offset:
        rows = query.rows(offset, end)["orders-0"]
        assert 1 <= len(rows) <= 4
        read, batches, offset = read + rows, batches + 1, end
    assert read == list(range(10))
    assert batches >= 3


def test_a_trigger_waits_for_enough_offsets(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    query = Query(logs, minOffsetsPerTrigger="3", maxTriggerDelay="10s")
    first = query.latest(INITIAL)
    append(logs, batch(2))
    assert query.latest(first) == first
    append(logs, batch(4, 1))
    second = query.latest(first)
    assert query.rows(first, second) == {"orders-0": [2, 3, 4]}
    append(logs, batch(5, 1))
    assert query.latest(second) == second
    now[0] += 10
    assert query.rows(second, query.latest(second)) == {"orders-0": [5]}


def test_a_run_for_what_is_available_now_ends_there(logs: Path) -> None:
    append(logs, b"".join(batch(base, 1) for base in range(2, 6)))
    query = Query(
        logs, startingOffsets="earliest", maxOffsetsPerTrigger="4", minOffsetsPerTrigger="3"
    )
    query.reader.prepareForTriggerAvailableNow()
    batches, offset = [], INITIAL
    while (end := query.latest(offset)) != offset:
        batches.append(query.rows(offset, end))
        append(logs, batch(6 if len(batches) == 1 else 8))
        write_partition(logs, {0: [batch_v2(plain_records(0, 1))]}, name=f"new-{len(batches)}")
        offset = end
    assert batches == [{"orders-0": [0, 1, 2, 3]}, {"orders-0": [4, 5]}]
    assert json.dumps(query.latest(offset)) == json.dumps(offset)
    following = Query(logs, startingOffsets="earliest")
    rows = following.rows(offset, following.latest(offset))
    assert rows == {"orders-0": [6, 7, 8, 9], "new-1": [0], "new-2": [0]}


def test_a_run_for_what_is_available_now_fails_if_that_goes(logs: Path) -> None:
    append(logs, b"".join(batch(base, 1) for base in range(2, 6)))
    query = Query(logs, startingOffsets="earliest", maxOffsetsPerTrigger="4")
    query.reader.prepareForTriggerAvailableNow()
    first = query.latest(INITIAL)
    write_partition(logs, {0: [batch_v2(plain_records(0, 1))]}, name="payments-0")
    shutil.rmtree(logs / "orders-0")
    with pytest.raises(StreamDataLossError, match="partition orders-0 is gone, which this query"):
        query.latest(first)


def test_a_batch_of_another_run_is_done_before_what_is_available_now(logs: Path) -> None:
    first = Query(logs, startingOffsets="earliest").latest(INITIAL)
    write_partition(logs, {0: [batch_v2(plain_records(0, 1))]}, name="orders-1")
    again = Query(logs, startingOffsets="earliest")
    again.reader.prepareForTriggerAvailableNow()
    assert again.rows(INITIAL, first) == {"orders-0": [0, 1]}
    assert again.rows(first, again.latest(first)) == {"orders-1": [0]}


def test_limits_are_refused_where_spark_cannot_keep_them(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark_pylog.stream_reader.HAS_ADMISSION_CONTROL", False)
    with pytest.raises(ValueError, match=r"maxOffsetsPerTrigger.* need Spark 4\.2 or later"):
        Query(logs, maxOffsetsPerTrigger="4").initial()
    Query(logs).initial()


def test_limits_are_for_streams_and_are_warned_of_in_a_batch(
    logs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = {"path": str(logs), "maxOffsetsPerTrigger": "4", "startingOffsets": "earliest"}
    source = DefaultSource(CaseInsensitiveDict(given))
    with caplog.at_level(logging.WARNING):
        schema = source.schema()
        source.streamReader(schema=schema)
        assert not caplog.records
        source.reader(schema)
    texts = [record.getMessage() for record in caplog.records]
    assert texts == ["pylog: options without effect here: maxOffsetsPerTrigger"]
    assert {"maxOffsetsPerTrigger"} < set(READ_OPTIONS)
