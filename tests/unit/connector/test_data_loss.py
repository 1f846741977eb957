"""What a stream says when records that it was to give are gone, and how it goes on without them."""

from __future__ import annotations

import logging
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from pylog.errors import SegmentVanishedError
from pyspark_pylog.errors import StreamDataLossError
from pyspark_pylog.stream_offset import INITIAL
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import (
    segment_path,
    write_log_start_offsets,
    write_partition,
    write_segment,
    write_topic_id,
)
from tests.unit.connector.stream_query import (
    Offset,
    Query,
    append,
    batch,
    ends_of,
    logs,
    through_json,
)

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["logs"]

ONE_ID, OTHER_ID = "7bGSu7gYRDuEkZTQ2w4F_g", "a8GSu7gYRDuEkZTQ2w4F_g"


def losses(query: Query, start: Offset) -> str:
    with pytest.raises(StreamDataLossError) as caught:
        query.latest(start)
    text = str(caught.value)
    assert text.startswith("data loss: ")
    assert text.endswith(
        ". To go on with what is there, set option failOnDataLoss=false; the checkpoint may stay as"
        " it is"
    )
    return text


def test_a_partition_that_is_gone_is_a_loss(logs: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_partition(logs, {0: [batch_v2(plain_records(0, 3))]}, name="orders-1")
    first = Query(logs).latest(INITIAL)
    shutil.rmtree(logs / "orders-1")
    expected = "partition orders-1 is gone, which this query had read up to offset 3"
    assert expected in losses(Query(logs), first)
    lenient = Query(logs, failOnDataLoss="false")
    append(logs, batch(2))
    with caplog.at_level(logging.WARNING):
        second = lenient.latest(first)
    assert ends_of(second) == {"orders": {"0": 4}}
    assert f"pylog: data loss: {expected}; going on" in caplog.text
    assert lenient.rows(first, second) == {"orders-0": [2, 3]}
    # It comes again: from its beginning.
    write_partition(logs, {0: [batch_v2(plain_records(0, 1))]}, name="orders-1")
    third = lenient.latest(second)
    assert lenient.rows(second, third) == {"orders-1": [0]}
    with pytest.raises(StreamDataLossError, match="partition orders-1 is gone"):
        Query(logs).tasks(first, second)


def test_records_that_retention_deleted_before_they_were_read_are_a_loss(logs: Path) -> None:
    first = Query(logs).latest(INITIAL)
    write_segment(logs / "orders-0", 5, [batch_v2(plain_records(5, 2))])
    segment_path(logs / "orders-0", 0).unlink()
    assert "offsets 2 to 4 of partition orders-0 were deleted before this query had read" in losses(
        Query(logs), first
    )
    lenient = Query(logs, failOnDataLoss="false")
    assert lenient.rows(first, lenient.latest(first)) == {"orders-0": [5, 6]}


def test_a_gap_above_the_start_of_the_log_is_no_loss(logs: Path) -> None:
    first = Query(logs).latest(INITIAL)
    append(logs, batch(7, 1))
    query = Query(logs)
    assert query.rows(first, query.latest(first)) == {"orders-0": [7]}


def test_a_new_partition_that_lacks_its_beginning_is_a_loss(logs: Path) -> None:
    first = Query(logs).latest(INITIAL)
    write_partition(logs, {4: [batch_v2(plain_records(4, 1))]}, name="orders-1")
    assert (
        "partition orders-1 is new and starts at offset 4: those before it were deleted before "
        "this query saw them" in losses(Query(logs), first)
    )
    lenient = Query(logs, failOnDataLoss="false")
    assert lenient.rows(first, lenient.latest(first)) == {"orders-1": [4]}


def test_a_log_that_ends_earlier_than_it_was_read_is_a_loss(logs: Path) -> None:
    append(logs, batch(2))
    first = Query(logs).latest(INITIAL)
    os.truncate(segment_path(logs / "orders-0", 0), len(batch(0)))
    assert (
        "partition orders-0 ends at offset 2, before offset 4, up to which this query had read it"
        in losses(Query(logs), first)
    )
    lenient = Query(logs, failOnDataLoss="false")
    second = lenient.latest(first)
    assert lenient.rows(first, second) == {}
    append(logs, batch(2, 1))
    assert lenient.rows(second, lenient.latest(second)) == {"orders-0": [2]}


def test_a_log_that_was_written_anew_under_a_running_query_is_a_loss(logs: Path) -> None:
    query = Query(logs)
    first = query.latest(INITIAL)
    with segment_path(logs / "orders-0", 0).open("r+b") as file:
        file.truncate(0)
        file.write(batch_v2(plain_records(0, 5, timestamp=7)).data)
    assert (
        "partition orders-0 was truncated and written anew, or its topic made anew: records before "
        "offset 2 are others now" in losses(query, first)
    )


def test_spark_4_1_meets_losses_when_a_batch_is_planned(logs: Path) -> None:
    make_topic(logs, ONE_ID, 3)
    write_partition(logs, {0: [batch_v2(plain_records(0, 3))]}, name="cut-0")
    write_partition(logs, {0: [batch_v2(plain_records(0, 1))]}, name="gone-0")
    first = through_json(Query(logs).reader.latestOffset())
    make_topic(logs, OTHER_ID, 4)
    write_partition(logs, {0: [batch_v2(plain_records(0, 1))]}, name="cut-0")
    shutil.rmtree(logs / "gone-0")
    strict, lenient = Query(logs), Query(logs, failOnDataLoss="false")
    second = through_json(strict.reader.latestOffset())
    with pytest.raises(StreamDataLossError) as caught:
        strict.tasks(first, second)
    for loss in ("topic orders was made anew", "cut-0 ends at offset 1, bef", "gone-0 is gone, "):
        assert loss in str(caught.value)
    assert lenient.rows(first, second) == {"orders-0": [0, 1, 2, 3]}


def make_topic(logs: Path, topic_id: str, count: int) -> None:
    shutil.rmtree(logs / "orders-0")
    directory = write_partition(logs, {0: [batch_v2(plain_records(0, count))]})
    write_topic_id(directory, topic_id)


@pytest.mark.parametrize("count", [1, 3, 9])
def test_a_topic_that_was_made_anew_is_a_loss_and_read_from_its_beginning(
    logs: Path, count: int
) -> None:
    make_topic(logs, ONE_ID, 3)
    first = Query(logs).latest(INITIAL)
    assert first["$pylog"]["topicIds"] == {"orders": ONE_ID}
    make_topic(logs, OTHER_ID, count)
    assert (
        f"topic orders was made anew: partition orders-0 has topic id {OTHER_ID}, and the one that "
        f"this query had read up to offset 3 had {ONE_ID}" in losses(Query(logs), first)
    )
    lenient = Query(logs, failOnDataLoss="false")
    second = lenient.latest(first)
    assert second["$pylog"]["restart"] == {"orders": {"0": 0}}
    for query in (lenient, Query(logs, failOnDataLoss="false")):
        assert query.rows(first, second) == {"orders-0": list(range(count))}
    assert lenient.latest(second) == second
    append(logs, batch(count, 1))
    assert lenient.rows(second, lenient.latest(second)) == {"orders-0": [count]}


def test_a_batch_that_is_done_again_after_its_topic_was_made_anew_gives_none_of_its_rows(
    logs: Path,
) -> None:
    make_topic(logs, ONE_ID, 3)
    query = Query(logs, startingOffsets="earliest")
    first = query.latest(INITIAL)
    make_topic(logs, OTHER_ID, 9)
    words = (
        r"partition orders-0 is another one since its topic was made anew, and offsets 0 to 2 "
        "of it were to be read"
    )
    with pytest.raises(StreamDataLossError, match=words):
        Query(logs, startingOffsets="earliest").tasks(INITIAL, first)
    assert Query(logs, failOnDataLoss="false").rows(INITIAL, first) == {}


def test_records_that_went_between_two_runs_of_a_batch_are_a_loss(logs: Path) -> None:
    query = Query(logs, startingOffsets="earliest")
    first = query.latest(INITIAL)
    write_log_start_offsets(logs, {("orders", 0): 1})
    words = "offsets 0 to 1 of partition orders-0 were to be read, and the log holds offset 1"
    with pytest.raises(StreamDataLossError, match=words):
        Query(logs).tasks(INITIAL, first)
    assert Query(logs, failOnDataLoss="false").rows(INITIAL, first) == {"orders-0": [1]}


def test_many_losses_are_named_in_part(logs: Path) -> None:
    for number in range(1, 9):
        write_partition(logs, {0: [batch_v2(plain_records(0, 1))]}, name=f"orders-{number}")
    first = Query(logs).latest(INITIAL)
    for number in range(1, 9):
        shutil.rmtree(logs / f"orders-{number}")
    text = losses(Query(logs), first)
    assert text.count(" is gone, ") == 5
    assert "; and 3 more. To go on" in text


def test_what_is_deleted_between_planning_and_reading_is_a_loss_or_left_out(logs: Path) -> None:
    append(logs, batch(2))
    for lenient in ("false", "true"):
        options = {"startingOffsets": "earliest", "failOnDataLoss": lenient}
        query = Query(logs, **options)
        [partition] = query.tasks(INITIAL, query.latest(INITIAL))
        hidden = (logs / "orders-0").rename(logs.parent / "aside")
        (logs / "orders-0").mkdir()
        write_segment(logs / "orders-0", 3, [batch_v2(plain_records(3, 1))])
        reading = query.reader.read(partition)
        if lenient == "true":
            with pytest.raises(
                SegmentVanishedError, match=r"orders-0.*; start the query again, wh"
            ):
                list(reading)
        else:
            rows = [each for batch in reading for each in batch.column("offset").to_pylist()]
            assert rows == [3]
        shutil.rmtree(logs / "orders-0")
        hidden.rename(logs / "orders-0")
