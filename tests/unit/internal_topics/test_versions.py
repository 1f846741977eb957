"""Versions of Kafka."""

from __future__ import annotations

import pytest

from pylog.internal_topics.versions import KafkaVersion


def test_a_version_is_known_by_its_text_and_later_ones_are_greater() -> None:
    assert [str(each) for each in KafkaVersion] == ["3.9", "4.0", "4.1", "4.2", "4.3", "4.4"]
    assert KafkaVersion.parse("4.1") is KafkaVersion.V4_1
    assert KafkaVersion.V3_9 < KafkaVersion.V4_0
    with pytest.raises(ValueError, match=r"'4\.5' is not known, expected one of 3\.9, 4\.0"):
        KafkaVersion.parse("4.5")
