from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pylog.columnar.arrow_schema import TYPED, UNION_MEMBER, record_schema
from pylog.record_lines.typed_json import json_texts, needed_columns, typed_json_lines

UNION = pa.struct(
    [
        pa.field("member0", pa.int64(), metadata=UNION_MEMBER),
        pa.field("member1", pa.string(), metadata=UNION_MEMBER),
    ]
)
NOON = dt.datetime(2026, 11, 29, 12, 0, 0, 5000, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("kind", "values", "texts"),
    [
        (pa.null(), [None], ["null"]),
        (pa.bool_(), [True, False, None], ["true", "false", "null"]),
        (pa.int32(), [-1, None], ["-1", "null"]),
        (pa.int64(), [2**63 - 1, -(2**63)], ["9223372036854775807", "-9223372036854775808"]),
        (pa.float64(), [0.1, None, -0.5], ["0.1", "null", "-0.5"]),
        (pa.float32(), [0.5, -0.0], ["0.5", "-0.0"]),
        (pa.float64(), [-0.0, 0.0, None], ["-0.0", "0", "null"]),
        (
            pa.float64(),
            [math.nan, math.inf, -math.inf, 1.5],
            ['"NaN"', '"Infinity"', '"-Infinity"', "1.5"],
        ),
        (pa.float32(), [math.nan, 2.5], ['"NaN"', "2.5"]),
        (
            pa.decimal128(38, 2),
            [Decimal("123456789012345678901234567890123456.78"), None],
            ["123456789012345678901234567890123456.78", "null"],
        ),
        (pa.decimal256(40, 0), [Decimal(10**39)], [f"{10**39}"]),
        (pa.string(), ['a"\n', "é\u202e", None, ""], ['"a\\"\\n"', '"é\\u202e"', "null", '""']),
        (pa.binary(), [b"\xff\x00", b"", None], ['"/wA="', '""', "null"]),
        (pa.binary(3), [b"abc", None], ['"YWJj"', "null"]),
        (pa.date32(), [dt.date(2026, 11, 29), None], ['"2026-11-29"', "null"]),
        (pa.time32("ms"), [dt.time(1, 2, 3, 4000)], ['"01:02:03.004"']),
        (pa.time64("us"), [dt.time(1, 2, 3, 4)], ['"01:02:03.000004"']),
        (
            pa.timestamp("ms", "UTC"),
            [NOON, None],
            ['"2026-11-29T12:00:00.005Z"', "null"],
        ),
        (pa.timestamp("us"), [NOON.replace(tzinfo=None)], ['"2026-11-29T12:00:00.005000"']),
        (pa.list_(pa.int32()), [[1, None], [], None], ["[1,null]", "[]", "null"]),
        (pa.list_(pa.list_(pa.string())), [[["a"], []]], ['[["a"],[]]']),
        (
            pa.map_(pa.string(), pa.int32()),
            [[("a", 1), ("b\n", None)], [], None],
            ['{"a":1,"b\\n":null}', "{}", "null"],
        ),
        (
            pa.struct([("a", pa.int32()), ('q"', pa.string())]),
            [{"a": 1, 'q"': None}, None],
            ['{"a":1,"q\\"":null}', "null"],
        ),
        (pa.struct([]), [{}, None], ["{}", "null"]),
        (
            UNION,
            [{"member0": 7}, {"member1": "x"}, None, {"member0": None}],
            ["7", '"x"', "null", "null"],
        ),
    ],
)
def test_values_as_json(kind: pa.DataType, values: list[Any], texts: list[str]) -> None:
    column = pa.array(values, kind)
    assert json_texts(column).to_pylist() == texts
    # And as a part of a column.
    assert json_texts(pa.concat_arrays([column, column]).slice(1, len(values))).to_pylist() == [
        *texts[1:],
        texts[0],
    ]
    assert json_texts(column.slice(0, 0)).to_pylist() == []
    for text in texts:
        json.loads(text)


@pytest.mark.parametrize(
    ("kind", "value"),
    [(pa.date32(), 2**31 - 1), (pa.timestamp("ms", "UTC"), 2**62), (pa.timestamp("us"), -(2**62))],
)
def test_times_beyond_the_calendar_are_the_number(kind: pa.DataType, value: int) -> None:
    number = pa.array([value, 0], pa.int32() if kind == pa.date32() else pa.int64())
    assert json_texts(number.view(kind)).to_pylist()[0] == str(value)


def test_types_without_json_are_refused() -> None:
    with pytest.raises(TypeError, match="no JSON for"):
        json_texts(pa.nulls(1, pa.month_day_nano_interval()))


def lines_of(**columns: pa.Array) -> list[dict[str, Any]]:
    rows = len(next(iter(columns.values())))
    names = needed_columns(("value",), shows_undecodable="value_raw" in columns)
    schema = record_schema([each for each in names if not each.endswith("_raw")])
    given = {
        "topic": pa.array(["t"] * rows),
        "partition": pa.array([0] * rows, pa.int32()),
        "offset": pa.array(range(rows), pa.int64()),
        "timestamp": pa.array([5] * rows, pa.timestamp("ms", "UTC")),
        "timestampType": pa.array([0] * rows, pa.int32()),
        "key": pa.array([b"k"] * rows),
        "headers": pa.array(
            [[{"key": "h", "value": b"\xff"}]] * rows, schema.field("headers").type
        ),
        "batch": pa.array([{"leaderEpoch": 3}] * rows, schema.field("batch").type),
        **columns,
    }
    arrays = [given[name] for name in names]
    fields = [
        pa.field(name, array.type, metadata=TYPED if name in columns else None)
        for name, array in zip(names, arrays, strict=True)
    ]
    batch = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
    return [json.loads(line) for line in b"".join(typed_json_lines(batch)).splitlines()]


def test_a_line_has_a_typed_value() -> None:
    (line,) = lines_of(value=pa.array([{"a": 1}]))
    assert line == {
        "topic": "t",
        "partition": 0,
        "offset": 0,
        "timestamp": 5,
        "timestampType": 0,
        "leaderEpoch": 3,
        "values": "typed",
        "key": "k",
        "value": {"a": 1},
        "headers": [["h", {"base64": "/w=="}]],
    }


def test_what_could_not_be_decoded_is_beside_its_reason() -> None:
    first, second, third = lines_of(
        value=pa.array([1, None, None], pa.int64()),
        value_raw=pa.array([b"\x02", b"\xff", None]),
        _corrupt_record=pa.array([None, 'bad "x"', None], pa.string()),
    )
    assert "undecodable" not in first | third
    assert second["value"] is None
    assert second["undecodable"] == {"reason": 'bad "x"', "value": "/w=="}


def test_rows_that_stand_for_damage_have_no_line() -> None:
    lines = lines_of(
        value=pa.array([1, None], pa.int64()),
        offset=pa.array([4, None], pa.int64()),
        value_raw=pa.array([b"\x02", None]),
        _corrupt_record=pa.array([None, "damage"]),
    )
    assert [each["offset"] for each in lines] == [4]
