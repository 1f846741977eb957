from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pylog.typed.field_constants import Constant, compared

LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1


def number(text: str) -> Constant:
    return Constant("number", text)


def text(content: str) -> Constant:
    return Constant("text", content)


def passing(column: pa.Array, operator: str, constant: Constant) -> list[object]:
    expression = compared(pc.field("c"), column.type, operator, constant)
    rows: list[object] = pa.table({"c": column}).filter(expression).column("c").to_pylist()
    return rows


@pytest.mark.parametrize(
    ("operator", "constant", "rows"),
    [
        ("=", "7.0", [7]),
        ("=", "7.5", []),
        ("!=", "7.5", [LOWEST, 7, 8, HIGHEST]),
        ("<", "7.5", [LOWEST, 7]),
        ("<=", "7.5", [LOWEST, 7]),
        (">", "7.5", [8, HIGHEST]),
        (">=", "7.5", [8, HIGHEST]),
        (">=", "9223372036854775807", [HIGHEST]),
        (">", "9223372036854775806.5", [HIGHEST]),
        ("=", "9223372036854775808", []),
        ("!=", "9223372036854775808", [LOWEST, 7, 8, HIGHEST]),
        ("<", "9223372036854775808", [LOWEST, 7, 8, HIGHEST]),
        (">", "9223372036854775807.5", []),
        (">", "-9223372036854775809", [LOWEST, 7, 8, HIGHEST]),
        ("<=", "-9223372036854775809", []),
        ("<", "-9223372036854775807.5", [LOWEST]),
        (">", "-9223372036854775807.5", [7, 8, HIGHEST]),
        ("<", "1e999999", [LOWEST, 7, 8, HIGHEST]),
        (">", "-1e-999999", [7, 8, HIGHEST]),
        ("<", "-1e999999", []),
    ],
)
def test_integers_are_compared_exactly(operator: str, constant: str, rows: list[int]) -> None:
    column = pa.array([LOWEST, None, 7, 8, HIGHEST], pa.int64())
    assert passing(column, operator, number(constant)) == rows


def test_integers_of_all_widths_have_their_bounds() -> None:
    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint32(), pa.uint64()):
        column = pa.array([0, 127, None], kind)
        assert passing(column, "<", number("1e30")) == [0, 127]
        assert passing(column, ">", number("-1e30")) == [0, 127]
        assert passing(column, "=", number("127")) == [127]
        assert passing(column, "<", number("-0.5")) == []
    assert passing(pa.array([(1 << 64) - 1], pa.uint64()), ">=", number(f"{(1 << 64) - 1}")) == [
        (1 << 64) - 1
    ]


@pytest.mark.parametrize("kind", [pa.decimal128(5, 2), pa.decimal256(50, 2)])
def test_decimals_are_compared_exactly(kind: pa.DataType) -> None:
    values = [Decimal(each) for each in ("-999.99", "12.50", "999.99")]
    column = pa.array([*values, None], kind)
    assert passing(column, "=", number("12.5")) == [values[1]]
    assert passing(column, "=", number("12.505")) == []
    assert passing(column, ">", number("12.495")) == values[1:]
    assert passing(column, "<", number("12.500000001")) == values[:2]
    assert passing(column, "<", number("1e60")) == values
    assert passing(column, ">=", number("-1e60")) == values


def test_floats_are_compared_with_the_nearest_one() -> None:
    column = pa.array([0.1, 0.5, None], pa.float32())
    assert passing(column, "=", number("0.1")) == [column[0].as_py()]
    assert passing(column, "<", number("0.1")) == []
    double = pa.array([0.1, float("nan"), float("inf")], pa.float64())
    assert passing(double, "=", number("1e-1")) == [0.1]
    assert passing(double, ">", number("0")) == [0.1, float("inf")]
    with pytest.raises(ValueError, match="is a float, and 1e300 is larger than any"):
        compared(pc.field("c"), pa.float32(), "<", number("1e300"))


INSTANTS = [0, 1_764_493_200_000, None]  # 2025-11-30T09:00:00Z


@pytest.mark.parametrize(
    ("constant", "rows"),
    [
        ("2025-11-30T09:00:00Z", 1),
        ("2025-11-30T10:00:00+01:00", 1),
        ("2025-11-30 09:00", 1),
        ("2025-11-30", 1),
        ("2025-11-30T09:00:00.001Z", 0),
        ("2025-12-01", 0),
    ],
)
def test_timestamps_are_compared_with_iso_times_in_utc(constant: str, rows: int) -> None:
    for unit, factor in (("ms", 1), ("us", 1000), ("ns", 1_000_000)):
        ticks = [None if each is None else each * factor for each in INSTANTS]
        column = pa.array(ticks, pa.timestamp(unit, "UTC"))
        assert len(passing(column, ">=", text(constant))) == rows


def test_local_timestamps_dates_and_times() -> None:
    local = pa.array(INSTANTS, pa.timestamp("ms"))
    assert len(passing(local, "=", text("2025-11-30T09:00:00"))) == 1
    dates = pa.array([0, 20_422, None], pa.date32())  # 2025-11-30
    assert len(passing(dates, "=", text("2025-11-30"))) == 1
    assert len(passing(dates, "<", text("2025-11-30"))) == 1
    for kind, second in ((pa.time32("ms"), 1_000), (pa.time64("us"), 1_000_000)):
        times = pa.array([0, 33_300 * second], kind)
        assert len(passing(times, "=", text("09:15:00"))) == 1


@pytest.mark.parametrize(
    ("kind", "constant", "error"),
    [
        (pa.int64(), text("7"), r"is a number \(int64\), and '7' is text"),
        (pa.float64(), text("x"), r"is a number \(double\), and 'x' is text"),
        (pa.string(), Constant("boolean", "TRUE"), "is text, and TRUE is a boolean: write 'TRUE'"),
        (pa.date32(), text("2025-13-01"), "is a date, and '2025-13-01' is text: write one such as"),
        (pa.date32(), number("20422"), "is a date, and 20422 is a number"),
        (pa.time32("ms"), text("9:15"), "is a time in ms, and '9:15' is text"),
        (pa.timestamp("ms", "UTC"), text("yesterday"), "is a timestamp in ms, and 'yesterday'"),
        (pa.timestamp("ms", "UTC"), text("2025-11-30T09:00:00.0001Z"), "is a timestamp in ms"),
        (pa.timestamp("us"), text("2025-11-30T09:00:00Z"), "is a timestamp without a zone in us"),
        (pa.timestamp("us", "UTC"), number("5"), "write one such as '2026-11-30T09:15:00Z'"),
        (pa.binary(), text("x"), "is a binary: only IS NULL and IS NOT NULL"),
        (pa.duration("ns"), text("1s"), r"is a duration\[ns\]: only IS NULL"),
        (pa.int64(), number("1e99999999999999999999"), "which is no number"),
    ],
)
def test_constants_of_another_type_are_refused(
    kind: pa.DataType, constant: Constant, error: str
) -> None:
    with pytest.raises(ValueError, match=error):
        compared(pc.field("c"), kind, "=", constant)
