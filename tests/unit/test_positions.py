"""What a caller may say about where a read begins and ends."""

from __future__ import annotations

import datetime as dt

import pytest

import pylog
from pylog.positions import OffsetSpecs, Timestamp, parse_offset_spec, spec_for

ORDERS = pylog.TopicPartition("orders", 0)


@pytest.mark.parametrize(
    ("value", "spec"),
    [
        ("earliest", "earliest"),
        (" Latest ", "latest"),
        ("max_timestamp", "max_timestamp"),
        (-2, "earliest"),
        (-1, "latest"),
        (0, 0),
        (2**63 - 1, 2**63 - 1),
        (pylog.Timestamp(5), pylog.Timestamp(5)),
        (dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC), pylog.Timestamp(1000)),
        (dt.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC), pylog.Timestamp(1)),
        (
            dt.datetime(1970, 1, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))),
            pylog.Timestamp(0),
        ),
    ],
)
def test_words_offsets_and_times_are_positions(value: object, spec: object) -> None:
    assert parse_offset_spec(value) == spec


@pytest.mark.parametrize("value", ["soonest", "", -3, 2**63, 1.5, None, True, b"latest", [1]])
def test_anything_else_is_refused_with_what_there_is(value: object) -> None:
    with pytest.raises(ValueError, match="is not a position: give 'earliest', 'latest'"):
        parse_offset_spec(value)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="has no time zone"):
        parse_offset_spec(dt.datetime(2024, 1, 1))  # noqa: DTZ001 - the point


@pytest.mark.parametrize("milliseconds", [-1, 2**63])
def test_a_timestamp_that_is_none_is_refused(milliseconds: int) -> None:
    with pytest.raises(ValueError, match=r"is not in 0 \.\. 2\^63-1"):
        pylog.Timestamp(milliseconds)
    with pytest.raises(ValueError, match="neither 'error' nor 'latest'"):
        pylog.Timestamp(1, if_missing="earliest")


def test_a_partitions_own_spec_goes_before_its_topics() -> None:
    specs: OffsetSpecs = {"orders": 5, ("orders", 0): 7}
    assert spec_for(specs, ORDERS, "latest") == 7
    assert spec_for(specs, pylog.TopicPartition("orders", 1), "latest") == 5
    assert spec_for(specs, pylog.TopicPartition("payments", 0), "latest") == "latest"
    assert spec_for(3, ORDERS, "latest") == 3


def test_an_instant_is_the_first_millisecond_at_or_after_it() -> None:
    instant = dt.datetime(2024, 3, 1, 12, 30, 0, 1, tzinfo=dt.UTC)
    assert Timestamp.of(instant) == Timestamp(1_709_296_200_001, "error")
    exact = dt.datetime(2024, 3, 1, 13, 30, tzinfo=dt.timezone(dt.timedelta(hours=1)))
    assert Timestamp.of(exact, "latest") == Timestamp(1_709_296_200_000, "latest")


def test_an_instant_needs_a_time_zone() -> None:
    with pytest.raises(ValueError, match="has no time zone"):
        Timestamp.of(dt.datetime(2024, 3, 1))  # noqa: DTZ001 - what is refused
