"""Nested columns are cast leaf by leaf, whatever part of an array they are."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pylog.columnar.nested_casts import cast_leaves


def nested(leaf: pa.DataType, void: pa.DataType) -> pa.DataType:
    inner = pa.struct([("leaf", leaf), ("void", void), ("same", pa.int32())])
    entries = pa.struct([("in", inner), ("map", pa.map_(pa.string(), pa.list_(inner)))])
    return pa.struct([("list", pa.list_(entries)), ("id", pa.int64())])


def rows(leaf: Any) -> list[Any]:  # noqa: ANN401 - of any type
    inner = {"leaf": leaf, "void": None, "same": 5}
    entries = [
        {"in": inner, "map": [("a", [inner, None, inner]), ("b", [])]},
        None,
        {"in": None, "map": None},
        {"in": {"leaf": None, "void": None, "same": None}, "map": []},
    ]
    return [
        {"list": entries, "id": 1},
        None,
        {"list": [], "id": 2},
        {"list": None, "id": None},
        {"list": entries * 3, "id": 3},
    ]


@pytest.mark.parametrize(
    ("given", "leaf", "wanted", "made"),
    [
        (pa.decimal256(50, 2), Decimal("1.50"), pa.string(), "1.50"),
        (pa.uint8(), 200, pa.int16(), 200),
        (pa.binary(3), b"abc", pa.binary(), b"abc"),
        (
            pa.timestamp("ns", "UTC"),
            datetime(2026, 11, 30, 1, 2, 3, 4, tzinfo=UTC),
            pa.timestamp("us", "UTC"),
            datetime(2026, 11, 30, 1, 2, 3, 4, tzinfo=UTC),
        ),
    ],
)
@pytest.mark.parametrize("part", [slice(0, 5), slice(1, 5), slice(2, 4), slice(0, 0)])
def test_leaves_are_cast_wherever_they_are(
    given: pa.DataType, leaf: object, wanted: pa.DataType, made: object, part: slice
) -> None:
    column = pa.array(rows(leaf), nested(given, pa.null()))[part]
    found = cast_leaves(column, nested(wanted, pa.string()))
    found.validate(full=True)
    assert found.type == nested(wanted, pa.string())
    assert found.to_pylist() == rows(made)[part]


def test_what_is_of_the_type_stays() -> None:
    column = pa.array(rows(1), nested(pa.int64(), pa.null()))
    assert cast_leaves(column, column.type) is column


def test_what_does_not_fit_is_an_error() -> None:
    column = pa.array([[300]], pa.list_(pa.int64()))
    with pytest.raises(pa.ArrowInvalid, match="300"):
        cast_leaves(column, pa.list_(pa.int8()))


@pytest.mark.parametrize("zone", ["UTC", None])
def test_times_before_1970_become_the_ones_before(zone: str | None) -> None:
    nanoseconds = [-1, -1_000, -1_001, 0, 1, 1_999, None, -(2**63), 2**63 - 1]
    column = pa.array(nanoseconds, pa.int64()).view(pa.timestamp("ns", zone))[1:]
    found = cast_leaves(column, pa.timestamp("us", zone))
    assert found.view(pa.int64()).to_pylist() == [
        None if each is None else each // 1_000 for each in nanoseconds[1:]
    ]
    coarse = pa.array([-1, None, 2**40], pa.timestamp("ms", zone))
    finer = cast_leaves(coarse, pa.timestamp("us", zone)).view(pa.int64())
    assert finer.to_pylist() == [-1_000, None, 2**40 * 1_000]


def test_durations_become_the_shorter_ones() -> None:
    column = pa.array([-1_999, 1_999, None], pa.duration("ns"))
    found = cast_leaves(column, pa.duration("us"))
    assert found.view(pa.int64()).to_pylist() == [-1, 1, None]
