"""What a caller may say about where a read begins and ends."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, get_args

import numpy as np
import pandas as pd
import pytest

import pylog
from pylog.model import (
    IsolationLevel,
    IsolationName,
    OffsetSpecs,
    Timestamp,
    parse_offset_spec,
    spec_for,
)
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path

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
        (pylog.FromEnd(5), pylog.FromEnd(5)),
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


@pytest.mark.parametrize("offsets", [-1, True, 1.5, "5", None])
def test_a_number_of_offsets_before_the_end_is_whole_and_not_negative(offsets: object) -> None:
    with pytest.raises(ValueError, match="offsets before the end: expected a whole number, 0 or"):
        pylog.FromEnd(offsets)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["soonest", "", -3, 2**63, 1.5, None, True, b"latest", [1]])
def test_anything_else_is_refused_with_what_there_is(value: object) -> None:
    with pytest.raises(ValueError, match=r"is not a position[.] Give 'earliest', 'latest'"):
        parse_offset_spec(value)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("eerliest", "; did you mean 'earliest'? Give "),
        ("newest", ". Give "),
        ("2026-11-01", "; did you mean datetime.fromisoformat('2026-11-01T00:00:00+00:00')? Give "),
        (dt.date(2026, 11, 1), "did you mean datetime.fromisoformat('2026-11-01T00:00:00+00:00')?"),
        ("2026-11-01T12:00+01:00", "datetime.fromisoformat('2026-11-01T12:00:00+01:00')? Give "),
        ("2026-13-01", ". Give "),
    ],
)
def test_what_is_nearly_a_position_is_refused_with_what_was_probably_meant(
    value: object, hint: str
) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
        parse_offset_spec(value)
    assert hint in str(caught.value)


def test_integers_of_numpy_are_offsets_and_timestamps() -> None:
    assert parse_offset_spec(np.int64(7)) == 7
    assert type(parse_offset_spec(np.int64(7))) is int
    assert type(pylog.Timestamp(np.int64(7)).milliseconds) is int  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="is not a position"):
        parse_offset_spec(np.bool_(True))  # noqa: FBT003 - the point


@pytest.mark.parametrize(
    "value", ["2026-11-01", 1.5, None, dt.datetime(2026, 11, 1, tzinfo=dt.UTC)]
)
def test_a_timestamp_that_is_not_a_number_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"is not a whole number of milliseconds since 1970; pass"):
        pylog.Timestamp(value)  # type: ignore[arg-type]


def test_the_missing_time_of_pandas_is_refused() -> None:
    with pytest.raises(ValueError, match="NaT is not a time"):
        parse_offset_spec(pd.NaT)


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


@pytest.mark.parametrize(("offsets", "start"), [(0, 8), (1, 7), (5, 3), (6, 3), (2**63, 3)])
def test_offsets_before_the_end_begin_at_the_start_of_a_log_that_has_fewer(
    tmp_path: Path, offsets: int, start: int
) -> None:
    write_partition(tmp_path, {3: [batch_v2(plain_records(3, 5))]})
    scan = pylog.scan(tmp_path, start=pylog.FromEnd(offsets))
    assert [task.start_offset for task in scan.plan()] == [start] * (offsets > 0)
    end = pylog.scan(tmp_path, end=pylog.FromEnd(offsets))
    assert [task.end_offset for task in end.plan()] == [start] * (start > 3)


def test_type_checkers_know_every_isolation_level() -> None:
    assert get_args(IsolationName) == tuple(level.label for level in IsolationLevel)
