"""Versions of Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest

import pylog
from pylog.internal_topics.versions import (
    FIRST_KAFKA_VERSION,
    LATEST_KAFKA_VERSION,
    KafkaVersion,
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
