from __future__ import annotations

import random
from decimal import Decimal
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pytest

from pylog.typed.field_condition import parse_condition

if TYPE_CHECKING:
    from tests.conftest import HowMany

USER = pa.struct([("id", pa.int64()), ("name", pa.string())])
VALUE = pa.struct(
    [
        ("user", USER),
        ("amount", pa.decimal128(9, 2)),
        ("ok", pa.bool_()),
        ("weight", pa.float64()),
        ("odd name", pa.int32()),
        ("and", pa.int32()),
        ("tags", pa.list_(pa.string())),
    ]
)
COLUMNS = {"value": VALUE, "key": pa.int64()}


def row(
    key: int | None,
    user: tuple[int | None, str | None] | None,
    amount: str | None,
    ok: object = None,
    odd: int | None = None,
) -> dict[str, object]:
    weight = None if odd is None else odd / 2
    return {
        "key": key,
        "value": {
            "user": None if user is None else {"id": user[0], "name": user[1]},
            "amount": None if amount is None else Decimal(amount),
            "ok": ok,
            "weight": weight,
            "odd name": odd,
            "and": odd,
            "tags": ["a"] if ok else None,
        },
    }


ROWS = [
    row(7, (7, "Ann"), "12.50", ok=True, odd=1),
    row(8, (8, "O'Neil"), "-3.00", ok=False),
    row(None, (None, None), None, odd=2),
    row(9, None, "100.00", ok=True, odd=-1),
    {"key": 10, "value": None},
]


def passing(condition: str) -> list[int]:
    """Return the rows that an expression passes, as pyarrow evaluates it."""
    schema = pa.schema([("key", pa.int64()), ("value", VALUE)])
    table = pa.Table.from_pylist(ROWS, schema=schema)
    expression = parse_condition(condition, COLUMNS).expression
    numbered = table.append_column("row", pa.array(range(len(ROWS))))
    rows: list[int] = numbered.filter(expression).column("row").to_pylist()
    return sorted(rows)


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("value.user.id = 7", [0]),
        ("value.user.id <> 7", [1]),
        ("value.user.id!=7 or key=10", [1, 4]),
        ("value.user.name = 'O''Neil'", [1]),
        ("value.user.name > 'B'", [1]),
        ("value.user IS NULL", [3, 4]),
        ("value.user.id is null", [2, 3, 4]),
        ("value IS NOT NULL AND value.user.id IS NULL", [2, 3]),
        ("value IS NULL", [4]),
        ("NOT value.user.id = 7", [1]),
        ("NOT (value.user.id = 7 OR key = 9)", [1]),
        ("value.user.id = 7 OR key = 9 AND value.ok = FALSE", [0]),
        ("(value.user.id = 7 OR key = 9) AND value.ok = TRUE", [0, 3]),
        ("value.amount >= 12.5", [0, 3]),
        ("value.amount < 12.505", [0, 1]),
        ("value.amount = -3", [1]),
        ("value.weight = .5", [0]),
        ("value.weight > 1E-5", [0, 2]),
        ('value."odd name" = 2', [2]),
        ('"value"."odd name" < 0', [3]),
        ("value.and = 1", [0]),
        ("value.tags IS NULL", [1, 2, 4]),
        ("key IN (7, 9, 11)", [0, 3]),
        ("key NOT IN (7, 9)", [1, 4]),
        ("key BETWEEN 8 AND 9", [1, 3]),
        ("key NOT BETWEEN 8 AND 9", [0, 4]),
        ("NOT NOT key = 7", [0]),
        ("\tkey\n=\n7 ", [0]),
    ],
)
def test_conditions_are_those_of_sql(condition: str, rows: list[int]) -> None:
    assert passing(condition) == rows


OPERANDS = [
    "value.user.id {op} {n}",
    "key {op} {n}",
    "value.amount {op} {n}.5",
    "value.user.name {op} '{n}'",
    "value.user.name {op} 'Ann'",
    "value.weight {op} {n}",
    'value."odd name" {op} {n}',
    "value.user.id IN ({n}, 7)",
    "key NOT IN ({n}, 9)",
    "value.amount BETWEEN {n} AND 20",
    "key IS NULL",
    "value.user IS NOT NULL",
    "value.ok = TRUE",
]


def some_condition(chance: random.Random, depth: int) -> str:
    if depth == 0 or chance.random() < 0.3:
        op = chance.choice(["=", "!=", "<>", "<", "<=", ">", ">="])
        return chance.choice(OPERANDS).format(op=op, n=chance.randint(-4, 12))
    one, other = some_condition(chance, depth - 1), some_condition(chance, depth - 1)
    return chance.choice(
        [f"({one} AND {other})", f"({one} OR {other})", f"{one} AND {other}", f"NOT ({one})"]
    )


def test_conditions_pass_the_rows_that_duckdb_gives_for_them(how_many: HowMany) -> None:
    schema = pa.schema([("key", pa.int64()), ("value", VALUE)])
    numbered = pa.Table.from_pylist(ROWS, schema=schema).append_column("n", [[0, 1, 2, 3, 4]])
    connection = duckdb.connect()
    connection.register("logs", numbered)
    chance = random.Random(2026)
    for _ in range(how_many(300, 3000)):
        condition = some_condition(chance, 3)
        sql = f"SELECT n FROM logs WHERE {condition} ORDER BY n"  # noqa: S608 - our own
        rows = connection.sql(sql).fetchall()
        assert passing(condition) == [number for (number,) in rows], condition


@pytest.mark.parametrize(
    ("condition", "error"),
    [
        ("value.usr = 1", "value has no field 'usr': it has user, amount, .*did you mean value.us"),
        (
            "value.user.Id = 1",
            r"value.user has no field 'Id': it has id, name; did you mean value.u",
        ),
        ("value.amount.x = 1", r"value.amount has no fields, it is a decimal128\(9, 2\)"),
        ("user = 1", "there is no column user: write value.user"),
        ("nothing = 1", "there is no column nothing: fields are those of value and key; value has"),
        ("value.user = 1", "value.user is a struct: only IS NULL .* its fields are id, name"),
        ("value.tags = 'a'", "value.tags is a list<.*>: only IS NULL"),
        ("value.user.id = 'x'", r"value.user.id is a number \(int64\), and 'x' is text"),
        ("value.user.name = 7", "value.user.name is text, and 7 is a number: write '7'"),
        ("value.ok = 1", "value.ok is a boolean, and 1 is a number: write TRUE or FALSE"),
        ("value.ok < TRUE", "value.ok is a boolean: compare it by = or !="),
        ("key = NULL", "write IS NULL or IS NOT NULL"),
        ('value.user.name = "Ann"', "text is in single quotes: 'Ann'"),
        ("value.user.name = Ann", "text is in single quotes: 'Ann'"),
        (
            "value.user.name LIKE 'A%'",
            "from \"LIKE 'A%'\" on: expected = != .* IN or BETWEEN after",
        ),
        ("key == 7", "write = for =="),
        ("key = 7 key = 8", "from 'key = 8' on: expected AND, OR or the end"),
        ("(key = 7", r"to its end: expected \)"),
        ("key = 'x", 'from "\'x" on: this quote does not end'),
        ("key = 7x", "this is not understood"),
        ("key = ", "expected a number, text in single quotes, TRUE or FALSE"),
        ("key", "to its end: expected = "),
        ("", "to its end: expected a field, such as value.id"),
        ("value. = 1", "expected a name after the point"),
        ("key NOT 7", "expected IN or BETWEEN after key"),
        ("key IS 7", "expected NULL"),
        ("key IN 7", r"expected \("),
        ("7 = key", "expected a field"),
        ("(" * 1000, "more than 100 parentheses"),
    ],
)
def test_what_is_wrong_with_a_condition_is_said(condition: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        parse_condition(condition, COLUMNS)


def test_a_column_that_is_not_decoded_is_said_to_be_bytes() -> None:
    with pytest.raises(ValueError, match="keys are bytes here: give --key-format, or key_format"):
        parse_condition("key = 7", {"value": VALUE})


def test_a_condition_names_the_columns_that_it_is_about() -> None:
    assert parse_condition("key = 7 AND value.ok = TRUE AND key < 9", COLUMNS).columns == (
        "key",
        "value",
    )
