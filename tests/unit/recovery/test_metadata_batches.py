"""Batches of the metadata, read by the tests' own parser, and values held against its builders."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from pylog.internal_topics.cluster_metadata import read_metadata_record
from pylog.internal_topics.metadata_image import Endpoint
from pylog.model import ControlRecordType
from pylog.reading.internal_logs import Voter
from pylog.recovery.metadata_batches import (
    BatchAppender,
    bytes_of,
    metadata_record,
    partition_change,
    partition_record,
    snapshot_of,
)
from tests.support.batch_parser import ParsedBatch, split_batches
from tests.support.metadata_log import TOPIC_ID, config_record, feature_record, topic_record
from tests.support.metadata_log import partition_record as stored_partition_record

VOTER = Voter(3, uuid.UUID(int=9), (Endpoint("CONTROLLER", "host", 9093),))
CONTROL = 0x20


def values_of(batches: list[ParsedBatch]) -> list[bytes | None]:
    return [record.value for each in batches for record in each.records()]


@pytest.mark.parametrize("count", [0, 1, 500, 501, 1000])
def test_records_are_in_batches_that_follow_each_other(count: int) -> None:
    appender = BatchAppender(70, 4, 99)
    values = [feature_record(at % 30) for at in range(count)]
    appender.append_records(values, "text")
    batches = [ParsedBatch.of(each.data) for each in appender.appended]
    assert values_of(batches) == values
    assert [each.base_offset for each in batches] == list(range(70, 70 + count, 500))
    assert [each.records for each in appender.appended] == [each.record_count for each in batches]
    assert {(each.leader_epoch, each.attributes) for each in batches} <= {(4, 0)}
    assert {(each.base_timestamp, each.max_timestamp) for each in batches} <= {(99, 99)}
    assert appender.end_offset == 70 + count
    assert bytes_of(appender.appended) == sum(len(each.data) for each in batches)


def test_a_control_batch_names_the_voters() -> None:
    appender = BatchAppender(5, 2, 99)
    appender.append_voters([VOTER], "voters")
    appender.append_control([(ControlRecordType.SNAPSHOT_FOOTER, {"version": 0})] * 2, "two")
    voters, two = (ParsedBatch.of(each.data) for each in appender.appended)
    assert (voters.base_offset, voters.attributes, voters.record_count) == (5, CONTROL, 1)
    assert (two.base_offset, two.attributes, two.record_count) == (6, CONTROL, 2)
    [value] = values_of([voters])
    assert value is not None
    assert uuid.UUID(int=9).bytes in value
    assert b"\x05host\x23\x85" in value  # a compact string, and the port
    assert appender.end_offset == 8


@pytest.mark.parametrize(("voters", "head"), [(None, 1), ([], 3), ([VOTER], 3)])
def test_a_snapshot_has_a_head_and_a_foot(voters: list[Voter] | None, head: int) -> None:
    values = [feature_record(25), topic_record("t")]
    first, *parts, last = map(ParsedBatch.of, split_batches(snapshot_of(values, 1, 99, voters)))
    assert (first.base_offset, first.record_count, first.attributes) == (0, head, CONTROL)
    assert values_of(parts) == values
    assert (last.base_offset, last.record_count, last.attributes) == (head + 2, 1, CONTROL)


def test_values_have_the_bytes_that_kafka_writes() -> None:
    topic = {"name": "t", "topicId": uuid.UUID(bytes=TOPIC_ID)}
    assert metadata_record("TopicRecord", 0, topic) == topic_record("t")
    setting = {"resourceType": 2, "resourceName": "t", "name": "retention.ms", "value": None}
    assert metadata_record("ConfigRecord", 0, setting) == config_record(
        2, "t", "retention.ms", None
    )
    fields: dict[str, Any] = {
        "partitionId": 3,
        "topicId": uuid.UUID(bytes=TOPIC_ID),
        "replicas": [1, 2],
        "isr": [1, 2],
        "removingReplicas": [],
        "addingReplicas": [],
        "leader": 1,
        "leaderEpoch": 6,
        "partitionEpoch": 0,
    }
    assert partition_record(16, fields) == stored_partition_record(3, 1, (1, 2), leader_epoch=6)
    places = (bytes(15) + b"\x01", bytes(15) + b"\x02")
    fields["directories"] = [uuid.UUID(bytes=each) for each in places]
    expected = stored_partition_record(3, 1, (1, 2), places, leader_epoch=6)
    assert partition_record(17, fields) == expected


@pytest.mark.parametrize(
    ("level", "version"), [(1, 0), (16, 0), (17, 1), (22, 1), (23, 2), (33, 2)]
)
def test_the_level_of_metadata_version_gives_the_version_of_a_change(
    level: int, version: int
) -> None:
    value = partition_change(level, {"topicId": uuid.UUID(int=1), "partitionId": 0, "leader": 5})
    assert value[:3] == bytes([1, 5, version])
    fields = read_metadata_record(value).fields
    assert fields["leader"] == 5
    assert ("eligibleLeaderReplicas" in fields) is (version == 2)  # whoever led is no longer known
