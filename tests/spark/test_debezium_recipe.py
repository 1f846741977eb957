"""The recipe of the page about Spark that merges changes, as it stands there.

MERGE needs a table format that not every Spark has yet: DuckDB runs the statement instead, on the
rows that Spark gives it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import pylog
from tests.support.spark_session import NEEDS_SPARK

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = NEEDS_SPARK

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"
Row = dict[str, Any] | None
Event = tuple[int, str, Row, Row, int] | tuple[int, None]
"""Key, op, before, after and the connector's clock; or a key and no value."""


def row(key: int, name: str) -> Row:
    return {"id": key, "name": name}


def clock_set_back(key: int) -> list[Event]:
    return [
        (key, "r", None, row(key, "old"), 5000),
        (key, "u", row(key, "old"), row(key, "new"), 4000),
        (key + 1, "c", None, row(key + 1, "gone"), 9000),
        (key + 1, "d", row(key + 1, "gone"), None, 100),
        (key + 1, None),
    ]


def deleted_and_created(key: int) -> list[Event]:
    return [
        (key, "c", None, row(key, "old"), 1),
        (key, "d", row(key, "old"), None, 2),
        (key, None),
        (key, "c", None, row(key, "new"), 2),
        (key + 1, "d", row(key + 1, "never seen"), None, 3),
        (key + 1, None),
    ]


def new_key(key: int) -> list[Event]:
    return [
        (key + 1, "c", None, row(key + 1, "new"), 1),
        (key + 1, "d", row(key + 1, "new"), None, 2),
        (key + 1, None),
        (key, "c", None, row(key, "new"), 2),
    ]


def write(logs: Path, events: list[Event]) -> None:
    values = []
    for _, *event in events:
        names = ("op", "before", "after", "ts_ms")
        is_change = event[0] is not None
        values.append(json.dumps(dict(zip(names, event, strict=True))) if is_change else None)
    keys = [None if each[1] == "t" else json.dumps({"id": each[0]}) for each in events]
    table = pa.table({"key": pa.array(keys, pa.string()), "value": pa.array(values, pa.string())})
    pylog.write_topic(logs, "db.customers", table, partitions=2)


@pytest.fixture
def merge(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], list[tuple[int, str]]]:
    """Run the recipe on ``tmp_path/logs``; return the rows of its table."""
    section = PAGE.read_text("utf-8").partition("## Change data")[2]
    found = re.search(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert found
    code = found[1].replace("kafka/intact", f"{tmp_path}/logs")
    code = code.replace("/data/merge", f"{tmp_path}/merge")
    place = tmp_path / "database"
    with duckdb.connect(place) as lake:
        lake.execute("CREATE SCHEMA lake; CREATE TABLE lake.customers (id BIGINT, name VARCHAR)")

    def run_sql(session: SparkSession, statement: str) -> None:
        with duckdb.connect(place) as lake:
            lake.register("changes", session.table("changes").toArrow())
            lake.execute(statement)

    monkeypatch.setattr(SparkSession, "sql", run_sql)

    def run() -> list[tuple[int, str]]:
        exec(compile(code, str(PAGE), "exec"), {"spark": spark})  # noqa: S102 - our page
        with duckdb.connect(place) as lake:
            return lake.execute("FROM lake.customers ORDER BY id").fetchall()

    return run


@pytest.mark.parametrize("events", [clock_set_back, deleted_and_created, new_key])
def test_the_last_offset_wins_in_one_batch_and_in_many(
    merge: Callable[[], list[tuple[int, str]]],
    tmp_path: Path,
    events: Callable[[int], list[Event]],
) -> None:
    write(tmp_path / "logs", events(1))
    assert merge() == [(1, "new")]
    head, *tail = events(101)
    for some in ([head], tail):
        write(tmp_path / "logs", some)
        found = merge()
    assert found == [(1, "new"), (101, "new")]


def test_a_truncated_table_stops_the_recipe_and_names_the_offset(
    merge: Callable[[], list[tuple[int, str]]], tmp_path: Path
) -> None:
    write(tmp_path / "logs", [(1, "c", None, row(1, "anna"), 1), (0, "t", None, None, 2)])
    with pytest.raises(PySparkException, match=r"truncated at offset \d"):
        merge()
