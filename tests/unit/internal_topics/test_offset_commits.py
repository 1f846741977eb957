"""Records of committed offsets have the bytes that brokers have written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.internal_topics.consumer_offsets import CLASSIC_GROUP_MESSAGES
from pylog.internal_topics.group_state import StoredOffset
from pylog.internal_topics.message_reader import Readable, read_message
from pylog.internal_topics.offset_commits import offset_commit_key, offset_commit_value
from pylog.internal_topics.versions import LATEST_KAFKA_VERSION

if TYPE_CHECKING:
    from tests.support.golden import GoldenRoot

_KEY = CLASSIC_GROUP_MESSAGES["OffsetCommitKey"]
_VALUE = CLASSIC_GROUP_MESSAGES["OffsetCommitValue"]


@pytest.mark.parametrize("case", ["4.3.0/internal-logdir", "4.4.0/internal-logdir"])
def test_what_a_broker_has_written_is_written_again(golden_root: GoldenRoot, case: str) -> None:
    table = pylog.scan(golden_root.case(case), topics="__consumer_offsets").to_table()
    versions = set()
    for key, value in zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True):
        if key[:2] != b"\0\1" or value is None:
            continue
        about = read_message(_KEY, Readable(key[2:]), 0, LATEST_KAFKA_VERSION)
        version = int.from_bytes(value[:2])
        versions.add(version)
        fields = read_message(_VALUE, Readable(value[2:]), version, LATEST_KAFKA_VERSION)
        stored = StoredOffset.of(fields)
        assert offset_commit_key(about["group"], about["topic"], about["partition"]) == key
        assert offset_commit_value(stored, version) == value
    assert versions
    assert versions <= {3, 4}
