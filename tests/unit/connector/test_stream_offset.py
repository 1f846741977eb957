"""Offsets of streams as JSON: what a checkpoint holds, and what is made of a broken one."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from pylog import TopicPartition
from pyspark_pylog import lag
from pyspark_pylog.stream_offset import INITIAL, StreamOffset, is_initial

A0, A2, A10, B0 = (
    TopicPartition(topic, partition)
    for topic, partition in (("a", 0), ("a", 2), ("a", 10), ("b", 0))
)
ENDS = '{"$pylog": {"version": 1}, "a": {"0": 8, "2": 7, "10": 9}, "b": {"0": 1}}'


def test_members_are_in_topic_and_partition_order_however_they_came() -> None:
    offsets = {B0: 1, A10: 9, A0: 8, A2: 7}
    for order in (list(offsets), sorted(offsets), sorted(offsets, reverse=True)):
        text = json.dumps(StreamOffset({each: offsets[each] for each in order}).to_json())
        assert text == ENDS


def test_an_offset_is_the_same_text_after_a_checkpoint() -> None:
    for offset in (
        StreamOffset({A0: 8}),
        StreamOffset(
            {A10: 8, A2: 1},
            begins={A10: 3, A2: 0},
            restarts={A2: 0},
            topic_ids={"b": "x", "a": "y"},
        ),
    ):
        text = json.dumps(offset.to_json())
        again = StreamOffset.from_json(json.loads(text))
        assert again == offset
        assert json.dumps(again.to_json()) == text


def test_the_first_end_says_where_its_batch_began() -> None:
    offset = StreamOffset({A0: 8}, begins={A0: 3}, topic_ids={"a": "id"})
    assert offset.to_json() == {
        "$pylog": {"begin": {"a": {"0": 3}}, "topicIds": {"a": "id"}, "version": 1},
        "a": {"0": 8},
    }


def test_offsets_of_the_kafka_source_are_taken_as_they_are() -> None:
    assert StreamOffset.from_json({"a": {"0": 8}}) == StreamOffset({A0: 8})


def test_the_initial_offset_is_told_from_all_others() -> None:
    assert is_initial(json.loads(json.dumps(INITIAL)))
    assert not is_initial(json.loads(ENDS))
    assert not is_initial({"a": {"0": 8}})
    assert not is_initial(None)


@pytest.mark.parametrize("version", [0, 2, "1", True, None])
def test_an_offset_of_another_version_is_refused(version: object) -> None:
    with pytest.raises(
        ValueError, match=rf"an offset of version {version!r}, and this pylog knows"
    ):
        StreamOffset.from_json({"$pylog": {"version": version}, "a": {"0": 8}})


@pytest.mark.parametrize(
    "given",
    [
        None,
        7,
        [],
        {"a": 8},
        {"a": {"x": 8}},
        {"a": {"0": "8"}},
        {"a": {"0": -1}},
        {"a": {"0": True}},
        {"$pylog": 7},
        {"$pylog": {"begin": 7}},
        {"$pylog": {"begin": {"a": {"0": None}}}},
        {"$pylog": {"topicIds": []}},
    ],
)
def test_what_is_not_an_offset_is_refused(given: object) -> None:
    with pytest.raises(ValueError, match="which is not an offset of this source, expected JSON"):
        StreamOffset.from_json(given)


END = {"$pylog": {"version": 1}, "orders": {"0": 8, "1": 3}}
LATEST = {"orders": {"0": 10, "1": 3, "2": 4}, "payments": {"0": 0}}
BEHIND = {("orders", 0): 2, ("orders", 1): 0, ("orders", 2): 4, ("payments", 0): 0}


def source(end: object, latest: object) -> dict[str, object]:
    return {"description": "…", "endOffset": end, "latestOffset": latest}


@pytest.mark.parametrize(
    "progress",
    [
        {"sources": [source(END, LATEST)]},
        {"sources": [source(json.dumps(END), json.dumps(LATEST))]},
        SimpleNamespace(sources=[SimpleNamespace(**source(json.dumps(END), json.dumps(LATEST)))]),
        {"sources": [source({"t": {"0": 1}}, {"t": {"0": 9}}), source(END, LATEST)]},
        {"sources": [source(7, None), source(END, LATEST)]},
    ],
    ids=["JSON", "text", "objects", "beside kafka", "beside another source"],
)
def test_the_lag_is_what_the_latest_offsets_are_ahead(progress: Any) -> None:  # noqa: ANN401
    assert lag(progress) == BEHIND


def test_what_was_read_since_the_latest_offsets_were_asked_for_is_no_lag() -> None:
    ahead = source({**END, "orders": {"0": 12}}, {"orders": {"0": 10}})
    assert lag({"sources": [ahead]}) == {("orders", 0): 0}


def test_there_is_none_before_the_first_trigger() -> None:
    assert lag(None) is None


@pytest.mark.parametrize("sources", [[], [source({"t": {"0": 1}}, None)], [source(INITIAL, None)]])
def test_a_query_that_does_not_read_from_here_is_refused(sources: list[object]) -> None:
    with pytest.raises(ValueError, match="the progress has no source of format"):
        lag({"sources": sources})


@pytest.mark.parametrize("latest", [None, "null"])
def test_a_spark_that_does_not_ask_for_the_latest_offsets_is_named(latest: object) -> None:
    with pytest.raises(ValueError, match=r"from version 4\.2 on"):
        lag({"sources": [source(END, latest)]})
