"""Delta and Iceberg tables that are read from version to version.

Their runtimes lag behind Spark: ``make test-spark-versions SPARKS="4.0 -- --all"`` runs these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from tests.kills.conftest import spark_home
from tests.kills.spark_driver import LOCAL, Driver
from tests.support.spark_session import NEEDS_SPARK, require_java
from tests.support.table_formats import NEEDS_TABLE_FORMATS, table_variables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    *NEEDS_SPARK,
    pytest.mark.slow,
    pytest.mark.thorough,
    NEEDS_TABLE_FORMATS,
]

__all__ = ["spark_home"]

CONFIG = """
[source]
format = "{kind}"
path = "{table}"
[record]
key = "CAST(id AS STRING)"
value = "name"
[target]
directory = "{folder}/logs"
topic = "orders"
job_id = "orders"
[incremental]
"""


@pytest.fixture(scope="module")
def driver(spark_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    require_java()
    root = tmp_path_factory.mktemp("tables")
    with Driver(
        LOCAL,
        root / "log",
        home=spark_home,
        module="tests.kills.ingest_driver",
        variables=table_variables(root),
    ) as running:
        yield running
        running.stop()


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_what_versions_have_added_is_written_once(
    driver: Driver, tmp_path: Path, kind: str
) -> None:
    path = f"{tmp_path}/orders" if kind == "delta" else "lake.shop.orders"
    table = f"delta.`{path}`" if kind == "delta" else path
    properties = "TBLPROPERTIES (delta.enableChangeDataFeed = true)" if kind == "delta" else ""
    config = tmp_path / "orders.toml"
    config.write_text(CONFIG.format(kind=kind, table=path, folder=tmp_path))
    expected: list[tuple[bytes, bytes]] = []

    def ingest(*sql: str, more: tuple[str, ...] = ()) -> list[tuple[bytes, bytes]]:
        assert driver.ask({"sql": sql, "arguments": ["--config", str(config), *more]}) == ""
        rows = pylog.scan(tmp_path / "logs", topics="orders").to_table().to_pylist()
        return sorted((row["key"], row["value"]) for row in rows)

    create = f"CREATE TABLE {table} (id INT, name STRING) USING {kind} {properties}"
    for number, statements in enumerate(([create], [], [], [])):
        if number != 2:  # one run has nothing new
            rows = [2 * number, 2 * number + 1]
            statements += [f"INSERT INTO {table} VALUES ({each}, 'a')" for each in rows]  # noqa: S608
            expected += [(str(each).encode(), b"a") for each in rows]
        assert ingest(*statements) == sorted(expected)
    if kind == "delta":
        # A row as it is after an update is new; one that is deleted is not noticed.
        update = f"UPDATE {table} SET name = 'b' WHERE id = 1"  # noqa: S608
        assert ingest(update, f"DELETE FROM {table} WHERE id = 0") == sorted(  # noqa: S608
            [*expected, (b"1", b"b")]
        )
        expected = [(key, b"b" if key == b"1" else of) for key, of in expected if key != b"0"]
    assert ingest(more=("--full",)) == sorted(expected)


def test_changes_of_an_iceberg_table_are_read_where_the_configuration_says_so(
    driver: Driver, tmp_path: Path
) -> None:
    table = "lake.shop.changed"
    config = tmp_path / "changed.toml"
    text = CONFIG.format(kind="iceberg", table=table, folder=tmp_path)
    config.write_text(f'{text}on_change = "read"\n')

    def ingest(*sql: str) -> list[tuple[bytes, bytes]]:
        assert driver.ask({"sql": sql, "arguments": ["--config", str(config)]}) == ""
        rows = pylog.scan(tmp_path / "logs", topics="orders").to_table().to_pylist()
        return sorted((row["key"], row["value"]) for row in rows)

    written = [(b"1", b"a"), (b"2", b"a")]
    create = f"CREATE TABLE {table} (id INT, name STRING) USING iceberg"
    first = f"INSERT INTO {table} VALUES (1, 'a'), (2, 'a')"  # noqa: S608
    assert ingest(create, first) == written
    update = f"UPDATE {table} SET name = 'b' WHERE id = 1"  # noqa: S608
    # Row 2 is in a file that was written again, and is no change.
    written += [(b"1", b"b"), (b"3", b"a")]
    insert = f"INSERT INTO {table} VALUES (3, 'a')"  # noqa: S608
    assert ingest(update, insert) == sorted(written)
    assert ingest(f"DELETE FROM {table} WHERE id = 2") == sorted(written)  # noqa: S608
