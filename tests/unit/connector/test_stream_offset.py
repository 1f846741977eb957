"""Offsets of streams as JSON: what a checkpoint holds, and what is made of a broken one."""

from __future__ import annotations

import json

import pytest

from pylog import TopicPartition
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
