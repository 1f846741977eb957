"""Versions of Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest

import pylog
from pylog.internal_topics.versions import (
    FIRST_KAFKA_VERSION,
    LATEST_KAFKA_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
    KafkaVersion,
    metadata_release,
)

SOURCE = Path(pylog.__file__).parent


def test_a_version_is_known_by_its_text_and_later_ones_are_greater() -> None:
    assert [str(each) for each in KafkaVersion] == ["3.9", "4.0", "4.1", "4.2", "4.3", "4.4"]
    assert KafkaVersion.parse("4.1") is KafkaVersion.V4_1
    assert KafkaVersion.V3_9 < KafkaVersion.V4_0
    with pytest.raises(ValueError, match=r"'4\.5' is not known, expected one of 3\.9, 4\.0"):
        KafkaVersion.parse("4.5")


@pytest.mark.parametrize(
    "name",
    ["checks/doctor.py", "dump_log/dump.py", "cli/commands/doctor.py", "cli/commands/dump.py"],
)
def test_texts_name_the_versions_that_are_told_apart(name: str) -> None:
    text = (SOURCE / name).read_text("utf-8").replace('"', "")
    assert f"{FIRST_KAFKA_VERSION} to {LATEST_KAFKA_VERSION}" in text


# What kafka-storage formats a node with, where nothing else is said: MetadataVersion.
LATEST_PRODUCTION = {
    "3.3": "3.3-IV3",
    "3.4": "3.4-IV0",
    "3.5": "3.5-IV2",
    "3.6": "3.6-IV2",
    "3.7": "3.7-IV4",
    "3.8": "3.8-IV0",
    "3.9": "3.9-IV0",
    "4.0": "4.0-IV3",
    "4.1": "4.1-IV1",
    "4.2": "4.2-IV1",
    "4.3": "4.3-IV0",
    "4.4": "4.4-IV2",
}


def test_the_highest_level_of_each_version_is_the_one_that_it_is_known_for() -> None:
    highest = {
        version: metadata_release(features[METADATA_VERSION][1])
        for version, features in SUPPORTED_FEATURES.items()
    }
    assert highest == LATEST_PRODUCTION


@pytest.mark.parametrize(
    ("level", "name"), [(None, None), (0, None), (1, "3.0-IV1"), (7, "3.3-IV3"), (10_000, None)]
)
def test_a_level_has_a_name_if_a_version_has_brought_it(level: int | None, name: str) -> None:
    assert metadata_release(level) == name


def test_a_version_starts_from_the_levels_that_its_code_still_knows() -> None:
    lowest = {version: each[METADATA_VERSION][0] for version, each in SUPPORTED_FEATURES.items()}
    assert {version: metadata_release(level) for version, level in lowest.items()} == {
        version: "3.0-IV1" if version < "4.0" else "3.3-IV3" for version in LATEST_PRODUCTION
    }
