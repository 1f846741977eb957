"""The example of an incremental ingest in ``docs/jobs.md``, against a real PostgreSQL."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.kills.conftest import spark_home
from tests.kills.spark_driver import LOCAL, Driver
from tests.support.jdbc_drivers import jdbc_drivers
from tests.support.postgres_server import PASSWORD, postgres_server
from tests.support.spark_session import NEEDS_SPARK, require_java

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["spark_home"]

pytestmark = [*NEEDS_SPARK, pytest.mark.slow, pytest.mark.thorough]

PAGE = (Path(__file__).parents[2] / "docs" / "jobs.md").read_text("utf-8")


QUERY = "query = \"SELECT * FROM orders WHERE updated_at >= '{from}' AND updated_at < '{to}'\""


SQLITE = """
[source]
format = "jdbc"
[source.options]
url = "jdbc:sqlite:{folder}/shop.db"
driver = "org.sqlite.JDBC"
dbtable = "orders"
[record]
key = "CAST(id AS STRING)"
value = "''"
[target]
directory = "{folder}/logs"
topic = "orders"
job_id = "orders"
[incremental]
column = "updated_at"
"""
ZONES = {"timestamptz": "", "timestamp": '\nzone = "UTC"'}


@pytest.mark.parametrize(
    ("kind", "option"),
    [
        ("timestamptz", 'dbtable = "orders"'),
        ("timestamp", 'dbtable = "orders"'),
        ("timestamptz", QUERY),
        ("timestamp", QUERY),
    ],
)
def test_the_example_reads_what_is_new_and_late_rows_once(
    tmp_path: Path, spark_home: Path, kind: str, option: str
) -> None:
    require_java()
    [text] = re.findall(r"```ini\n(.*?)```", PAGE, re.DOTALL)
    config = tmp_path / "orders.toml"
    variables = {
        "PYSPARK_SUBMIT_ARGS": f"--jars {','.join(map(str, jdbc_drivers()))} pyspark-shell",
        "SHOP_PASSWORD": PASSWORD,
        "TZ": "America/New_York",
    }
    module = "tests.kills.ingest_driver"
    with (
        postgres_server() as server,
        Driver(
            LOCAL, tmp_path / "log", home=spark_home, module=module, variables=variables
        ) as driver,
    ):
        for old, new in (
            ("jdbc:postgresql://db/shop", server.url),
            ("/srv/pylog", str(tmp_path)),
            ('"etl"', '"postgres"'),
            ('dbtable = "orders"', option),
            # Without a zone, rows of three hours would be looked at again: clocks are set back.
            ('upper = "1 minute"', f'upper = "1 minute"{ZONES[kind]}'),
        ):
            assert old in text
            text = text.replace(old, new)
        config.write_text(text)
        server.execute(f"CREATE TABLE orders (id INT, updated_at {kind}, note TEXT)")

        def ingest(*rows: tuple[int, str]) -> Sequence[tuple[int, str]]:
            for number, time in rows:
                value = f"({number}, '2026-11-22 {time}', 'n{number}')"
                server.execute(f"INSERT INTO orders VALUES {value}")  # noqa: S608
            assert driver.ask({"arguments": ["--config", str(config)]}) == ""
            found = pylog.scan(tmp_path / "logs", topics="orders").to_table().to_pylist()
            values = [json.loads(row["value"]) for row in found]
            return sorted((each["id"], each["note"]) for each in values)

        assert ingest((1, "10:00:00.000001"), (2, "11:00")) == [(1, "n1"), (2, "n2")]
        # One that is late, one that is too late, one that is new.
        found = ingest((3, "09:00:00.000001"), (4, "08:59"), (5, "11:00:00.000001"))
        assert [each for each, _ in found] == [1, 2, 3, 5]
        server.execute(
            "UPDATE orders SET note = 'new', updated_at = '2026-11-22 12:00' WHERE id = 1"
        )
        assert ingest() == [(1, "n1"), (1, "new"), (2, "n2"), (3, "n3"), (5, "n5")]
        assert len(ingest()) == 5
        driver.stop()


def test_no_row_of_the_hour_that_a_clock_shows_twice_is_missed_or_doubled(
    tmp_path: Path, spark_home: Path
) -> None:
    require_java()
    [text] = re.findall(r"```ini\n(.*?)```", PAGE, re.DOTALL)
    config = tmp_path / "orders.toml"
    variables = {
        "PYSPARK_SUBMIT_ARGS": f"--jars {','.join(map(str, jdbc_drivers()))} pyspark-shell",
        "SHOP_PASSWORD": PASSWORD,
        "TZ": "America/New_York",  # 01:00 to 02:00 of 2026-11-01 is 05:00 to 07:00 in UTC
    }
    module = "tests.kills.ingest_driver"
    with (
        postgres_server() as server,
        Driver(
            LOCAL, tmp_path / "log", home=spark_home, module=module, variables=variables
        ) as driver,
    ):
        for old, new in (
            ("jdbc:postgresql://db/shop", server.url),
            ("/srv/pylog", str(tmp_path)),
            ('"etl"', '"postgres"'),
            ('lag = "2 hours"', 'lag = "0s"'),
        ):
            text = text.replace(old, new)
        config.write_text(text)
        server.execute("CREATE TABLE orders (id INT, updated_at timestamptz)")
        expected = []
        for number, time in enumerate(("05:20", "05:40", "06:10", "06:30", "08:00")):
            server.execute(f"INSERT INTO orders VALUES ({number}, '2026-11-01 {time}Z')")  # noqa: S608
            assert driver.ask({"arguments": ["--config", str(config)]}) == ""
            found = pylog.scan(tmp_path / "logs", topics="orders").to_table().to_pylist()
            expected.append(number)
            assert sorted(json.loads(each["value"])["id"] for each in found) == expected
        driver.stop()


def test_times_of_sqlite_that_are_numbers_are_new_when_they_are(
    tmp_path: Path, spark_home: Path
) -> None:
    require_java()
    config = tmp_path / "orders.toml"
    config.write_text(SQLITE.format(folder=tmp_path))
    variables = {
        "PYSPARK_SUBMIT_ARGS": f"--jars {','.join(map(str, jdbc_drivers()))} pyspark-shell"
    }
    module = "tests.kills.ingest_driver"
    with (
        closing(sqlite3.connect(tmp_path / "shop.db")) as database,
        Driver(
            LOCAL, tmp_path / "log", home=spark_home, module=module, variables=variables
        ) as driver,
    ):
        database.execute("CREATE TABLE orders (id INT, updated_at TIMESTAMP)")
        for number in (1, 2):
            # Milliseconds since 1970: how SQLite's JDBC driver writes a time.
            row = (number, 1_790_000_000_000 + number)
            database.execute("INSERT INTO orders VALUES (?, ?)", row)
            database.commit()
            assert driver.ask({"arguments": ["--config", str(config)]}) == ""
            found = pylog.scan(tmp_path / "logs", topics="orders").to_table().to_pylist()
            assert sorted(int(row["key"]) for row in found) == list(range(1, number + 1))
        driver.stop()
