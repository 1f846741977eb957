"""Which versions of Kafka start on disks, by the levels of features."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.internal_topics.metadata_image import NodeRegistration
from pylog.recovery.starting_versions import release_of
from tests.support.metadata_log import (
    config_record,
    feature_record,
    register_broker_record,
    topic_record,
)
from tests.unit.recovery.test_cluster_info import node, voting

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.golden import GoldenRoot


def test_a_directory_of_zookeepers_time_starts_up_to_3_9(golden_root: GoldenRoot) -> None:
    found = pylog.info(golden_root.case("2.8.2/internal-logdir"))
    assert found.starts_on == ["3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9"]
    assert found.quorum == (None, ())


@pytest.mark.parametrize(
    ("level", "name", "versions"),
    [
        (1, "3.0-IV1", ["3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9"]),
        (7, "3.3-IV3", ["3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9", *["4.0", "4.1", "4.2"]]),
        (21, "3.9-IV0", ["3.9", "4.0", "4.1", "4.2"]),
        (25, "4.0-IV3", ["4.0", "4.1", "4.2"]),
        (34, None, []),
    ],
)
def test_the_level_of_metadata_version_tells_which_kafka_starts(
    tmp_path: Path, level: int, name: str | None, versions: list[str]
) -> None:
    found = pylog.info(voting(tmp_path / "1", 1, [feature_record(level)], (1,)))
    later = [] if level > 33 else ["4.3", "4.4"]
    assert found.metadata_release == name
    assert found.starts_on == [*versions, *(later if level > 6 else [])]
    assert len(found.starts_on) + len(found.does_not_start_on) == 12


def test_another_feature_may_need_a_later_kafka(tmp_path: Path) -> None:
    values = [feature_record(21), feature_record(1, "streams.version")]
    found = pylog.info(voting(tmp_path / "1", 1, values, (1,)))
    assert found.starts_on == ["4.2", "4.3", "4.4"]
    assert found.does_not_start_on[-1].reason == (
        "streams.version is 1, which Kafka 4.2 or later can use"
    )


def test_a_feature_that_is_taken_back_blocks_nothing(tmp_path: Path) -> None:
    values = [
        feature_record(21),
        feature_record(1, "streams.version"),
        feature_record(0, "streams.version"),
    ]
    found = pylog.info(voting(tmp_path / "1", 1, values, (1,)))
    assert (found.features, found.starts_on[0]) == ({"metadata.version": 21}, "3.9")


def test_a_freshly_formatted_directory_starts_with_what_was_formatted(
    golden_root: GoldenRoot, tmp_path: Path
) -> None:
    node(tmp_path, 1)
    case = golden_root.case("4.3.0/internal-logdir")
    shutil.copy(case / "bootstrap.checkpoint", tmp_path)
    found = pylog.info(tmp_path)
    assert (found.metadata_release, found.starts_on) == ("4.3-IV0", ["4.3", "4.4"])


@pytest.mark.parametrize(
    ("lowest", "highest", "version"),
    [(1, 7, "3.3"), (1, 21, "3.9"), (7, 25, "4.0"), (7, 33, "4.4"), (1, 5, None), (7, 34, None)],
)
def test_a_node_registered_with_the_version_whose_levels_it_had(
    lowest: int, highest: int, version: str | None
) -> None:
    levels = {"metadata.version": (lowest, highest)}
    assert release_of(NodeRegistration(1, (), levels)) == version
    assert release_of(NodeRegistration(1, (), {})) is None
    assert release_of(None) is None


def test_a_level_below_the_lowest_has_to_be_raised_before(tmp_path: Path) -> None:
    found = pylog.info(voting(tmp_path / "1", 1, [feature_record(6)], (1,)))
    reasons = {each.version: each.reason for each in found.does_not_start_on}
    assert reasons["4.0"].endswith("raise it with Kafka 3.9 before the upgrade")
    assert "4.0" in pylog.info(voting(tmp_path / "2", 1, [feature_record(7)], (1,))).starts_on


@pytest.mark.parametrize(
    ("size", "broker", "starts"),
    [("1048575", 1, False), ("1048576", 1, True), ("1048575", 2, True)],
)
def test_a_broker_of_kafka_4_wants_segments_of_a_mebibyte(
    tmp_path: Path, size: str, broker: int, *, starts: bool
) -> None:
    values = [
        feature_record(25),
        register_broker_record(broker, (bytes(15) + b"\1",)),
        topic_record("orders"),
        config_record(2, "orders", "segment.bytes", size),
    ]
    directory = voting(tmp_path / "1", 1, values, (1,))
    found = pylog.info(directory)
    assert found.starts_on == (["4.0", "4.1", "4.2", "4.3", "4.4"] if starts else [])
    codes = [each.code for each in pylog.doctor(directory).findings]
    assert ("unusable_topic_config" in codes) is not starts
    if not starts:
        assert found.does_not_start_on[-1].reason == (
            "topic orders has segment.bytes=1048575, and Kafka 4.0 or later does not start with "
            "less than 1048576: raise it with Kafka 3.9 before the upgrade"
        )
