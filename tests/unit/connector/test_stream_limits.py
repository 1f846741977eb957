"""How much of a live directory a batch of a stream takes, and when: limits and ``availableNow``."""

from __future__ import annotations

import json
import logging
import shutil
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from pyspark_pylog import DefaultSource
from pyspark_pylog.errors import StreamDataLossError
from pyspark_pylog.options import READ_OPTIONS
from pyspark_pylog.stream_offset import INITIAL
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition
from tests.unit.connector.stream_query import Query, append, batch, ends_of, logs

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["logs"]

ALL = ReadAllAvailable()


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
