"""Names, texts and bounds of properties."""

from __future__ import annotations

import dataclasses

import pytest

from pylog.config import LogConfig, LogManagerConfig
from tests.unit.config.kafkas_properties import TOPIC_PROPERTIES

NAMES = [name for name, *_ in TOPIC_PROPERTIES]
WORDS = {"message.timestamp.type", "compression.type", "cleanup.policy", "preallocate"}


@pytest.mark.parametrize("name", sorted(set(NAMES) - WORDS))
@pytest.mark.parametrize(
    "text", ["not_a_number", "", "1_000", "0x10", "\N{ARABIC-INDIC DIGIT FOUR}", "1 2"]
)
def test_what_is_not_a_number_is_refused_with_the_name_of_the_property(
    name: str, text: str
) -> None:
    with pytest.raises(ValueError, match=rf"^property {name} is {text!r}, expected a .*number"):
        LogConfig.from_properties({name: text})


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, _, refused, _ in TOPIC_PROPERTIES for text in refused]
)
def test_values_out_of_range_are_refused_with_the_name_of_the_property(
    name: str, text: str
) -> None:
    with pytest.raises(ValueError, match=rf"^property {name} is .*, expected "):
        LogConfig.from_properties({name: text})


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, _, _, allowed in TOPIC_PROPERTIES for text in allowed]
)
def test_values_at_the_bounds_are_taken_and_written_back(name: str, text: str) -> None:
    config = LogConfig.from_properties({name: text})
    assert config.properties()[name] == text
    assert LogConfig.from_properties(config.properties()) == config


def test_blanks_around_a_value_and_letter_case_of_a_truth_value_do_not_count() -> None:
    config = LogConfig.from_properties(
        {"segment.ms": " 5\t", "preallocate": " TRUE ", "cleanup.policy": " delete , compact "}
    )
    assert (config.segment_ms, config.preallocate) == (5, True)
    assert config.cleanup_policy == {"compact", "delete"}
    assert LogConfig.from_properties({"segment.ms": "+7"}).segment_ms == 7


def test_unknown_property_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(
        ValueError, match=r"^segment\.byte is not a property of a topic; did you mean segm"
    ):
        LogConfig.from_properties({"segment.byte": "1024"})
    with pytest.raises(ValueError, match=r"^zzz is not a property of a log manager$"):
        LogManagerConfig.from_properties({"zzz": "1024"})


def test_one_value_changed_is_checked_too() -> None:
    config = dataclasses.replace(LogConfig(), segment_bytes=14)
    assert config.segment_bytes == 14
    with pytest.raises(ValueError, match=r"^property segment\.bytes is 13"):
        dataclasses.replace(config, segment_bytes=13)


def test_some_properties_change_and_the_others_stay() -> None:
    config = LogConfig(segment_bytes=5000, retention_ms=7)
    changed = config.with_properties({"retention.ms": "9", "cleanup.policy": "compact"})
    own = frozenset({"compact"})
    assert changed == LogConfig(segment_bytes=5000, retention_ms=9, cleanup_policy=own)
    with pytest.raises(ValueError, match=r"^segment\.byte is not a property of a topic; did you"):
        config.with_properties({"segment.byte": "1"})
    with pytest.raises(ValueError, match=r"^property max\.compaction\.lag\.ms is 0, expected"):
        config.with_properties({"max.compaction.lag.ms": "0"})
