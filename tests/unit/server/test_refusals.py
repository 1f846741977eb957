"""A topic that is asked for, and is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pylog
from pylog.errors import UnknownTopicOrPartitionError
from tests.support.raw_client import RawClient

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.golden import GoldenRoot


def test_a_topic_that_is_not_there_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    pylog.write_topic(tmp_path, "orders", pa.table({"value": [b"v"]}))
    with pytest.raises(UnknownTopicOrPartitionError, match="'order' here; did you mean 'orders'"):
        pylog.serve(tmp_path, topics=["order"])


def test_an_internal_topic_that_is_there_and_not_served_is_told_with_the_option(
    golden_root: GoldenRoot, caplog: pytest.LogCaptureFixture
) -> None:
    case = golden_root.case("4.3.0/internal-logdir")
    names = ("__consumer_offsets", "__share_group_state", "no-such-topic")
    with pylog.serve(case) as server, RawClient(server.address) as client:
        for _ in range(2):
            asked = {"topics": [{"name": each} for each in names]}
            topics = client.ask("Metadata", 12, asked)["topics"]
            assert {each["name"]: each["errorCode"] for each in topics} == {
                "__consumer_offsets": 29,
                "__share_group_state": 29 if (case / "__share_group_state-0").is_dir() else 3,
                "no-such-topic": 3,
            }
    told = [each for each in caplog.messages if "__consumer_offsets" in each]
    assert len(told) == 1
    assert "--topic __consumer_offsets" in told[0]
    named = pylog.serve(case, topics=["__consumer_offsets"])
    with named as server, RawClient(server.address) as client:
        asked = {"topics": [{"name": "__consumer_offsets"}]}
        assert client.ask("Metadata", 12, asked)["topics"][0]["errorCode"] == 0
