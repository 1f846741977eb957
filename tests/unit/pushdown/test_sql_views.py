"""Natural questions about the demo in SQL: the right number, or an error that says what to write.

The right numbers are counted in Python, from the values that `pylog.scan` gives.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

import pylog
import pylog.duckdb
from pylog.cli.main import run
from tests.support.batches import Stored, batch_v2, plain_records
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("demo") / "kafka"
    assert run(["demo", str(place)]) == 0
    return place / "intact"


@pytest.fixture(scope="module")
def database(demo: Path) -> Iterator[pylog.duckdb.LogDatabase]:
    with pylog.duckdb.LogDatabase(demo) as opened:
        yield opened


@pytest.fixture(scope="module")
def orders(demo: Path) -> list[dict[str, Any]]:
    return list(pylog.scan(demo, topics="orders").to_table().to_pylist())


def rows(database: pylog.duckdb.LogDatabase, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(each.values()) for each in database.query(sql).read_all().to_pylist()]


def document(value: bytes | None) -> dict[str, Any]:
    try:
        found = json.loads(value or b"")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def test_counts_by_a_member_of_json(
    database: pylog.duckdb.LogDatabase, orders: list[dict[str, Any]]
) -> None:
    by_status = Counter(document(each["value"]).get("status") for each in orders)
    assert by_status["returned"] == 7
    sql = "SELECT value_json->>'$.status', count(*) FROM orders GROUP BY ALL"
    assert dict(rows(database, sql)) == by_status


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM records WHERE topic = 'orders' AND value_text LIKE '%\"returned\"%'",
        "SELECT count(*) FROM orders WHERE value_text ILIKE '%RETURNED%'",
        "SELECT count(*) FROM orders WHERE value_json->>'status' = 'returned'",
        "SELECT count(*) FROM orders WHERE json_extract_string(value_json, 'status') = 'returned'",
    ],
)
def test_other_ways_to_ask_for_it(database: pylog.duckdb.LogDatabase, sql: str) -> None:
    assert rows(database, sql) == [(7,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM records WHERE value->>'$.status' = 'returned'",
        "SELECT count(*) FROM orders WHERE value->'status' = 'returned'",
        "SELECT count(*) FROM orders WHERE json_extract(value, '$.status') = 'returned'",
        "SELECT count(*) FROM (SELECT value AS v FROM orders) WHERE v->>'status' = 'returned'",
        'SELECT from_json(value, \'{"status": "VARCHAR"}\') FROM orders',
        "SELECT count(*) FROM orders WHERE CAST(value AS STRING) LIKE '%returned%'",
        "SELECT value::JSON->>'$.status' FROM orders",
        "SELECT count(*) FROM orders WHERE value LIKE '%returned%'",
        "SELECT count(*) FROM orders WHERE contains(value, 'returned')",
    ],
)
def test_what_would_be_null_of_bytes_is_refused_with_what_to_write(
    database: pylog.duckdb.LogDatabase, sql: str
) -> None:
    with pytest.raises(ValueError, match="use key_text, value_text or value_json"):
        database.query(sql).read_all()


def test_functions_of_json_are_those_of_duckdb_for_all_else(
    database: pylog.duckdb.LogDatabase,
) -> None:
    sql = "SELECT j->>'a', j->'b', json_keys(j), json_type(j, '$.a') FROM (SELECT '{}' AS j)"
    sql = sql.replace("{}", '{"a": 1, "b": [2]}')
    assert rows(database, sql) == duckdb.execute(sql).fetchall()
    sql = "SELECT value::VARCHAR FROM json_each('{\"a\": 1}')"
    assert rows(database, sql) == [("1",)]


def test_tombstones_joins_and_buckets(
    database: pylog.duckdb.LogDatabase, orders: list[dict[str, Any]]
) -> None:
    tombstones = sum(each["value"] is None for each in orders)
    assert rows(database, "SELECT count(*) FROM orders WHERE value IS NULL") == [(tombstones,)]
    keys = Counter(each["key"] for each in orders if each["key"] is not None)
    sql = "SELECT count(*) FROM orders a JOIN orders b ON a.key = b.key"
    assert rows(database, sql) == [(sum(count * count for count in keys.values()),)]
    days = Counter(each["timestamp"].strftime("%H:%M") for each in orders)
    sql = "SELECT strftime(timestamp, '%H:%M'), count(*) FROM orders GROUP BY ALL"
    assert dict(rows(database, sql)) == days


def test_bytes_that_are_no_text_are_null_and_end_no_query(tmp_path: Path) -> None:
    records = [
        Stored(0, 0, b"\xff", b'{"a": 1}'),
        Stored(1, 0, b"k", b"\xfe\xff"),
        Stored(2, 0, b"", b"{"),
    ]
    write_partition(tmp_path, {0: [batch_v2(records)]}, name="odd names.are-0")
    with pylog.duckdb.LogDatabase(tmp_path) as database:
        sql = 'SELECT key_text, value_text, value_json FROM "odd names.are"'
        assert rows(database, sql) == [
            (None, '{"a": 1}', '{"a": 1}'),
            ("k", None, None),
            ("", "{", None),
        ]


def test_an_unknown_name_lists_what_there_is(database: pylog.duckdb.LogDatabase) -> None:
    with pytest.raises(
        ValueError, match=r"ordersx does not exist; did you mean orders\? \(there are"
    ):
        database.query("SELECT * FROM ordersx")
    with pytest.raises(ValueError, match=r"nothing does not exist \(there are: .*\borders\b"):
        database.query("SELECT * FROM nothing")


def test_a_topic_takes_no_name_of_a_view_or_of_a_users_table(tmp_path: Path) -> None:
    for name in ("records-0", "mine-0", "theirs-0"):
        write_partition(tmp_path, {0: [batch_v2(plain_records(0, 3))]}, name=name)
    connection = duckdb.connect()
    connection.execute("CREATE TABLE mine AS SELECT 1 AS one")
    pylog.duckdb.register(connection, tmp_path)
    assert connection.sql("SELECT count(*) FROM records").fetchall() == [(9,)]
    assert connection.sql("SELECT * FROM mine").fetchall() == [(1,)]
    assert connection.sql("SELECT count(*) FROM theirs").fetchall() == [(3,)]
