"""What an open transaction, or a sequence that gives ids ahead, may still add to a PostgreSQL."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.kills.conftest import spark_home
from tests.kills.spark_driver import LOCAL, Driver
from tests.support.jdbc_drivers import jdbc_drivers
from tests.support.postgres_server import PASSWORD, PostgresServer, postgres_server
from tests.support.spark_session import NEEDS_SPARK, require_java

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["spark_home"]

pytestmark = [*NEEDS_SPARK, pytest.mark.slow, pytest.mark.thorough]

CONFIG = """
[source]
format = "jdbc"
[source.options]
url = "{url}"
driver = "org.postgresql.Driver"
user = "postgres"
password = "${{env:SHOP_PASSWORD}}"
dbtable = "{table}"
[record]
key = "CAST(id AS STRING)"
value = "''"
[target]
directory = "{folder}/logs"
topic = "{table}"
job_id = "{table}"
[incremental]
column = "id"
"""
IS_WAITING = (
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE query LIKE '%WHILE NOT EXISTS%' AND pid <> pg_backend_pid() AND xact_start IS NOT NULL"
)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as running:
        yield running


@pytest.fixture(scope="module")
def driver(spark_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    require_java()
    variables = {
        "PYSPARK_SUBMIT_ARGS": f"--jars {','.join(map(str, jdbc_drivers()))} pyspark-shell",
        "SHOP_PASSWORD": PASSWORD,
    }
    with Driver(
        LOCAL,
        tmp_path_factory.mktemp("postgres") / "log",
        home=spark_home,
        module="tests.kills.ingest_driver",
        variables=variables,
    ) as running:
        yield running
        running.stop()


def ingest(driver: Driver, server: PostgresServer, folder: Path, table: str) -> list[int]:
    """Run the job; return the ids that the topic has."""
    config = folder / "ingest.toml"
    config.write_text(CONFIG.format(url=server.url, table=table, folder=folder))
    assert driver.ask({"arguments": ["--config", str(config)]}) == ""
    rows = pylog.scan(folder / "logs", topics=table).to_table().to_pylist()
    return sorted(int(row["key"]) for row in rows)


@contextmanager
def open_transaction(server: PostgresServer, sql: str) -> Iterator[None]:
    """Run statements in a transaction that ends with the block."""
    server.execute("CREATE TABLE IF NOT EXISTS may_end (id INT); TRUNCATE may_end")
    waits = (
        "DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM may_end) LOOP PERFORM pg_sleep(0.1); "
        "END LOOP; END $$"
    )
    thread = threading.Thread(target=server.execute, args=(f"{sql}; {waits}",))
    thread.start()
    try:
        while server.execute(IS_WAITING).strip() == "0":
            time.sleep(0.1)
        yield
    finally:
        server.execute("INSERT INTO may_end VALUES (1)")
        thread.join()


def test_rows_that_wait_do_not_look_like_a_source_that_went_back(
    driver: Driver, server: PostgresServer, tmp_path: Path
) -> None:
    server.execute("CREATE TABLE waits (id BIGSERIAL, note TEXT)")
    server.execute("INSERT INTO waits (note) VALUES ('a'), ('b')")
    assert ingest(driver, server, tmp_path, "waits") == [1, 2]
    with open_transaction(server, "INSERT INTO waits (note) VALUES ('c')"):
        # The rows as they are now are of a transaction that is newer than an open one.
        server.execute("UPDATE waits SET note = 'd'")
        assert ingest(driver, server, tmp_path, "waits") == [1, 2]
        assert "the source has no row any more" not in driver.log.read_text()
    assert {*ingest(driver, server, tmp_path, "waits")} == {1, 2, 3}


def test_a_sequence_that_gives_ids_ahead_has_a_default_lag_whoever_owns_it(
    driver: Driver, server: PostgresServer, tmp_path: Path
) -> None:
    server.execute("CREATE SEQUENCE numbers CACHE 20")
    server.execute("CREATE TABLE ahead (id BIGINT DEFAULT nextval('numbers'))")
    server.execute("SELECT nextval('numbers')")  # a session that takes 1 to 20
    server.execute("INSERT INTO ahead VALUES (DEFAULT)")
    assert ingest(driver, server, tmp_path, "ahead") == [21]
    server.execute("INSERT INTO ahead VALUES (2)")  # it uses its second one
    assert ingest(driver, server, tmp_path, "ahead") == [2, 21]


def test_a_table_that_was_truncated_is_noticed_though_its_ids_pass_the_bookmark(
    driver: Driver, server: PostgresServer, tmp_path: Path
) -> None:
    server.execute("CREATE TABLE restarts (id BIGSERIAL, note TEXT)")
    server.execute("INSERT INTO restarts (note) SELECT 'a' FROM generate_series(1, 5)")
    assert ingest(driver, server, tmp_path, "restarts") == [1, 2, 3, 4, 5]
    assert ingest(driver, server, tmp_path, "restarts") == [1, 2, 3, 4, 5]
    assert "storage of restarts is another one" not in driver.log.read_text()
    server.execute("TRUNCATE restarts RESTART IDENTITY")
    server.execute("INSERT INTO restarts (note) SELECT 'b' FROM generate_series(1, 8)")
    # The newest id is read again, and its row is another one.
    assert ingest(driver, server, tmp_path, "restarts") == [1, 2, 3, 4, 5, 5, 6, 7, 8]
    assert "storage of restarts is another one than in the last run" in driver.log.read_text()
