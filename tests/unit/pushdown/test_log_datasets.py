"""What is read from pyarrow's expressions."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pylog.pushdown.log_datasets import comparisons_of
from tests.unit.pushdown.expressions import (
    SCHEMA,
    if_valid,
    key,
    offset,
    partition,
    timestamp,
    topic,
    value,
)

NOON = dt.datetime(2026, 11, 1, 12, 0, 0, 1_500, tzinfo=dt.UTC)


def micros(count: int, unit: str = "us", zone: str | None = "UTC") -> pa.Scalar:
    return pa.scalar(count, pa.timestamp(unit, zone))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (offset > 5, [("offset", ">", 5)]),
        (offset == -(2**63), [("offset", "=", -(2**63))]),
        (partition == pa.scalar(3, pa.int32()), [("partition", "=", 3)]),
        (topic == "a and b) and (offset == 3", [("topic", "=", "a and b) and (offset == 3")]),
        (topic == "", [("topic", "=", "")]),
        (key == b"\x00\xff", [("key", "=", b"\x00\xff")]),
        (key == b"", [("key", "=", b"")]),
        (timestamp < pa.scalar(NOON), [("timestamp", "<", NOON)]),
        # The same instant in another zone and unit.
        (
            timestamp <= micros(1_000, "ms", "Europe/Paris"),
            [("timestamp", "<=", dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC))],
        ),
        (partition.isin(pa.array([0, 3], pa.int32())), [("partition", "in", [0, 3])]),
        (if_valid(key, pa.array([b"k", b""])), [("key", "in", [b"k", b""])]),
        (if_valid(topic, pa.array(["a", "b"])), [("topic", "in", ["a", "b"])]),
        (
            (offset > 3) & if_valid(topic, pa.array(['x") and (offset == 5) and ("y', "z"])),
            [("offset", ">", 3), ("topic", "in", ['x") and (offset == 5) and ("y', "z"])],
        ),
        (
            ((offset >= 2) & (offset <= 7)) & (topic == 'a "b" \\'),
            [("offset", ">=", 2), ("offset", "<=", 7), ("topic", "=", 'a "b" \\')],
        ),
        (topic == "line\nbreak", [("topic", "=", "line\nbreak")]),
        (topic.isin(pa.array(["a", 'b",\n  "c'])), [("topic", "in", ["a", 'b",\n  "c'])]),
        (
            topic.isin(pa.array(["a\n], null_matching_behavior=MATCH}) and (offset == 3"])),
            [("topic", "in", ["a\n], null_matching_behavior=MATCH}) and (offset == 3"])],
        ),
        # Of long lists the text of an expression has not all.
        (
            partition.isin(pa.array(range(4_000), pa.int32())),
            [("partition", "in", [*range(4_000)])],
        ),
        (if_valid(timestamp, pa.array([NOON])), [("timestamp", "in", [NOON])]),
        (if_valid(key, pa.array([], pa.binary())), [("key", "in", [])]),
        ((offset == 1) | (offset == 2), [("offset", "in", [1, 2])]),
        (
            (key == b"a") | ((key == b"b") | if_valid(key, pa.array([b"c", b"d"]))),
            [("key", "in", [b"a", b"b", b"c", b"d"])],
        ),
        (pc.scalar(5) < offset, [("offset", ">", 5)]),
        (pc.scalar(5) >= offset, [("offset", "<=", 5)]),
        ((offset > 5) & ((key == b"k") | key.is_null()), [("offset", ">", 5)]),
    ],
)
def test_a_comparison_with_a_constant_is_understood(
    expression: pc.Expression, expected: list[tuple[str, str, object]]
) -> None:
    found = [tuple(each) for each in comparisons_of(expression, SCHEMA)]
    assert sorted(found, key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize(
    "expression",
    [
        offset != 5,
        offset > 5.5,
        offset > pa.scalar(None, pa.int64()),
        offset > partition,
        key == value,
        ~(offset > 5),
        ~if_valid(offset, pa.array([1])),
        (offset == 1) | (partition == 2),
        (offset == 1) | (offset > 2),
        (offset == 1) | key.is_null(),
        pc.if_else(key.is_valid(), offset.isin(pa.array([1])), pa.scalar(None, pa.bool_())),
        pc.if_else(key.is_valid(), key.isin(pa.array([b"k"])), pc.scalar(value=True)),
        pc.if_else(key.is_valid(), pc.scalar(value=True), key.isin(pa.array([b"k"]))),
        key.is_null(),
        key.isin(pa.array([b"k", None])),
        timestamp > micros(1_500, "ns"),
        timestamp > micros(1_500, "us", None),
        timestamp > micros(1 << 62),
        pc.field("nothing") == 3,
        pc.field("batch", "baseOffset") == 3,
        pc.scalar(value=True),
    ],
)
def test_anything_else_is_left_to_the_filter(expression: pc.Expression) -> None:
    assert list(comparisons_of(expression, SCHEMA)) == []
