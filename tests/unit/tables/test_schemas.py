from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

import pylog
import pylog.duckdb
import pylog.polars
from pylog.errors import CorruptRecordError
from tests.support.batches import Stored, batch_v2, plain_records, with_bad_crc
from tests.support.log_files import write_partition
from tests.support.registry_records import (
    ORDER,
    ORDER_2,
    delete_subject,
    schema,
    tombstone,
    write_registry,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Give a topic, and a registry with an id that is given twice and a record that is broken."""
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 3))]}, name="orders-0")
    records = [
        schema("orders-value", 1, 7, ORDER),
        schema("orders-value", 2, 9, ORDER_2, references=[("Order", "orders-value", 1)]),
        delete_subject("orders-value", 1),
        schema("invoices-value", 1, 7, ORDER_2),
        (b"{", b"{}"),
        schema("gone-value", 1, 11, '"string"'),
        tombstone("gone-value", 1),
    ]
    write_registry(tmp_path, records)
    return tmp_path


def test_each_schema_is_a_row(logs: Path) -> None:
    rows = pylog.read_table(logs, "schemas").to_pylist()
    assert [(each["subject"], each["version"], each["id"], each["state"]) for each in rows] == [
        ("gone-value", 1, 11, "hard-deleted"),
        ("invoices-value", 1, 7, "ignored"),
        ("orders-value", 1, 7, "soft-deleted"),
        ("orders-value", 2, 9, "active"),
        (None, None, None, None),
    ]
    assert {(each["topic"], each["partition"]) for each in rows} == {("_schemas", 0)}
    second = rows[3]
    assert second["schema"] == ORDER_2
    assert second["timestamp"] == dt.datetime(1970, 1, 1, 0, 0, 1, 1000, tzinfo=dt.UTC)
    assert second["schema_references"] == [
        {"name": "Order", "subject": "orders-value", "version": 1}
    ]
    assert (second["deleted"], second["offset"], second["problems"]) == (False, 1, None)


def test_problems_are_in_the_row_of_their_record(logs: Path) -> None:
    rows = pylog.read_table(logs, "schemas").to_pylist()
    problems = {each["offset"]: each["problems"] for each in rows if each["problems"]}
    assert problems.keys() == {3, 4}
    assert "id 7 of invoices-value version 1 already belongs to" in problems[3][0]
    assert "no JSON" in problems[4][0]


def test_other_topics_have_no_rows(logs: Path) -> None:
    assert pylog.read_table(logs, "schemas", topics="orders").num_rows == 0


def test_polars_and_duckdb_have_the_table(logs: Path) -> None:
    expected = pylog.read_table(logs, "schemas")
    assert pylog.polars.table(logs, "schemas").collect().to_arrow().num_rows == expected.num_rows
    with pylog.duckdb.connect(str(logs)) as connection:
        found = connection.sql(
            "SELECT subject, version, id, schema FROM schemas WHERE id = 7 AND state <> 'ignored'"
        ).fetchall()
    assert found == [("orders-value", 1, 7, ORDER)]


def test_damage_is_an_error_or_left_out(tmp_path: Path) -> None:
    records = [schema("a", 1, 1, ORDER), schema("b", 1, 2, ORDER_2), schema("c", 1, 3, '"int"')]
    batches = [batch_v2([Stored(offset, 1_000, *record)]) for offset, record in enumerate(records)]
    batches[1] = with_bad_crc(batches[1])
    write_partition(tmp_path, {0: batches}, name="_schemas-0")
    with pytest.raises(CorruptRecordError):
        pylog.read_table(tmp_path, "schemas")
    left = pylog.read_table(tmp_path, "schemas", mode="DROPMALFORMED")
    assert left["subject"].to_pylist() == ["a", "c"]
