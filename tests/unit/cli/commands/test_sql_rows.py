from __future__ import annotations

import datetime as dt
import decimal
import json

import pyarrow as pa
import pytest

from pylog.cli.commands.sql import csv_lines, json_lines, rows_of, table_lines

TIME = dt.datetime(2026, 11, 1, 12, 30, tzinfo=dt.UTC)


def test_numbers_end_and_text_begins_below_its_heading() -> None:
    rows = [("a", 1, decimal.Decimal("10.50")), ("long name", 200, None)]
    assert list(table_lines(["name", "n", "price"], rows)) == [
        "name         n  price",
        "a            1  10.50",
        r"long name  200     \N",
        "2 rows",
    ]
    assert list(table_lines(["n"], [])) == ["n", "0 rows"]


def test_a_table_is_printed_before_all_rows_are_known() -> None:
    endless = ((number,) for number in iter(int, 1))
    lines = table_lines(["n"], endless)
    assert [next(lines) for _ in range(5_000)][-1] == "0"


def test_a_cell_that_is_wider_than_the_first_ones_is_whole() -> None:
    rows = [("x",)] * 1_000 + [("much wider",)]
    assert list(table_lines(["a"], rows))[-2:] == ["much wider", "1001 rows"]


def test_control_characters_do_not_reach_a_terminal() -> None:
    rows = [("\x1b[31mred\u202e", b"\x07\xff")]
    assert list(table_lines(["\x1b", "b"], rows))[:2] == [
        r"\x1b               b",
        r"\x1b[31mred\u202e  \x07\xff",
    ]
    [_, line] = csv_lines(["a", "b"], rows, escapes_controls=True)
    assert line == r"\x1b[31mred\u202e,\x07\xff"
    [_, line] = csv_lines(["a", "b"], rows, escapes_controls=False)
    assert line == "\x1b[31mred\u202e,\x07\\xff"
    [line] = json_lines(["a"], [("\x1b\u202e",)])
    assert line == r'{"a":"\u001b\u202e"}'


@pytest.mark.parametrize(
    ("value", "text", "document"),
    [
        (True, "true", True),
        (float("nan"), "nan", "nan"),
        (0.5, "0.5", 0.5),
        (decimal.Decimal(12), "12", 12),
        (decimal.Decimal("1.50"), "1.50", "1.50"),
        ("C:\\n", r"C:\\n", "C:\\n"),
        (b"C:\\n", r"C:\\n", "C:\\n"),
        (TIME, "2026-11-01T12:30:00.000Z", "2026-11-01T12:30:00.000Z"),
        (TIME.replace(microsecond=1), "2026-11-01T12:30:00.000001Z", "2026-11-01T12:30:00.000001Z"),
        (TIME.date(), "2026-11-01", "2026-11-01"),
        ([b"a", None], '["a", null]', ["a", None]),
        ({"k": [1, 2]}, '{"k": [1, 2]}', {"k": [1, 2]}),
        (
            pa.MonthDayNano([0, 3, 7_384_500_000_000]),
            "3 days 02:03:04.500000",
            "3 days 02:03:04.500000",
        ),
        (pa.MonthDayNano([1, 0, -1_000]), "1 month -00:00:00.000001", "1 month -00:00:00.000001"),
    ],
)
def test_a_value_of_each_type_is_shown(value: object, text: str, document: object) -> None:
    assert list(table_lines(["a"], [(value,)]))[1] == text
    [line] = json_lines(["a"], [(value,)])
    assert json.loads(line) == {"a": document}


def test_columns_of_one_name_are_told_apart_in_json() -> None:
    [line] = json_lines(["a", "a", "a_1", "a"], [(1, 2, 3, 4)])
    assert json.loads(line) == {"a": 1, "a_1": 2, "a_1_1": 3, "a_2": 4}


def test_the_rows_of_all_record_batches_are_given() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.binary())])
    batches = [pa.record_batch({"a": [1, 2], "b": [b"x", None]}, schema=schema)] * 2
    reader = pa.RecordBatchReader.from_batches(schema, batches)
    assert list(rows_of(reader)) == [(1, b"x"), (2, None)] * 2
