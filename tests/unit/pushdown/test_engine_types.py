"""Decimals of more than 38 digits are text to Polars and DuckDB, wherever they are nested."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING

import polars as pl

import pylog.duckdb
import pylog.polars
from tests.support.avro_schemas import zigzag
from tests.support.registry_records import schema, write_registry
from tests.unit.reading.typed_logs import write_values

if TYPE_CHECKING:
    from pathlib import Path

LARGE = {"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 2}
TYPES = {
    "id": "long",
    "plain": LARGE,
    "list": {"type": "array", "items": LARGE},
    "map": {"type": "map", "values": ["null", LARGE]},
}
RECORD = {
    "type": "record",
    "name": "R",
    "fields": [{"name": name, "type": kind} for name, kind in TYPES.items()],
}
DIGITS = f"{10**45 + 7}"
TEXT = f"{DIGITS[:-2]}.{DIGITS[-2:]}"


def written(directory: Path) -> Path:
    """Write a record whose decimals are all ``TEXT``."""
    write_registry(directory, [schema("t-value", 1, 1, json.dumps(RECORD))])
    number = int(DIGITS).to_bytes(20, "big")
    large = zigzag(20) + number
    entries = zigzag(1) + zigzag(1) + b"k" + zigzag(1) + large + b"\0"
    content = zigzag(7) + large + zigzag(1) + large + b"\0" + entries
    write_values(directory, "t-0", [b"\0\0\0\0\x01" + content], key=b"a")
    return directory


def test_all_engines_have_the_digits(tmp_path: Path) -> None:
    written(tmp_path)
    [value] = pylog.scan(tmp_path, topics="t", value_format="auto").to_table()["value"].to_pylist()
    assert value["plain"] == Decimal(TEXT)

    frame = pylog.polars.scan(tmp_path, topics="t", value_format="auto")
    row = frame.select("value").collect().item()
    assert row == {"id": 7, "plain": TEXT, "list": [TEXT], "map": {"k": TEXT}}
    assert frame.filter(pl.col("value").struct.field("plain") == TEXT).collect().height == 1
    assert frame.filter(pl.col("value").struct.field("plain") == "1").collect().height == 0

    connection = pylog.duckdb.connect(tmp_path, topics="t", value_format="auto")
    for view in ("t", "latest"):
        rows = connection.sql(f"SELECT value FROM {view}")  # noqa: S608 - of the test
        assert rows.fetchall() == [({"id": 7, "plain": TEXT, "list": [TEXT], "map": {"k": TEXT}},)]
        assert len(rows.filter(f"value.plain = '{TEXT}' AND value.id = 7").fetchall()) == 1
        assert rows.filter("value.plain = '1'").fetchall() == []

    latest = pylog.polars.table(tmp_path, "latest", topics="t", value_format="auto")
    assert latest.select("value").collect().item() == row
