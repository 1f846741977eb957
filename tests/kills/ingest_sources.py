"""The sources of ingests that are killed: each has rows ``id``, and gets more between runs."""

from __future__ import annotations

import datetime as dt
import sqlite3
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.postgres_server import PASSWORD

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from tests.kills.spark_driver import Driver
    from tests.support.postgres_server import PostgresServer

LAG = 50
INCREMENTAL = f"""[incremental]
column = "at"
lag = {10 * LAG}
key = "id"
"""
JDBC = """[source]
format = "jdbc"
[source.options]
url = "{url}"
{rows}
driver = "{driver}"
"""
OF_POSTGRES = 'user = "postgres"\npassword = "${env:PYLOG_TEST_PASSWORD}"'
VARIABLES = {"PYLOG_TEST_PASSWORD": PASSWORD}
FIRST_DAY = dt.date(2020, 2, 25)
DAYS_AGAIN = 4
"""So many days that a backfill has done before are asked for again."""


class Source(Protocol):
    """A table with a column ``id``.

    Attributes
    ----------
    name
        Of the topic and of the job.
    config
        The sections of the configuration that are this source's.
    commit_calls
        About how many system calls the commits of one run make.
    """

    name: str
    config: str
    commit_calls: int

    def add(self, ids: range, rng: random.Random, driver: Driver) -> None:
        """Add rows."""

    def arguments(self) -> list[str]:
        """Return what the job is started with, but for its configuration."""


class Incremental:
    """Rows of which a run reads what the one before has not."""

    commit_calls = 70

    def arguments(self) -> list[str]:
        """Return none."""
        return []


def places(ids: range, rng: random.Random) -> list[tuple[int, int]]:
    """Return rows with places as late as may be after a run has read all, or new."""
    return [(each, max(0, 10 * ids[0] - rng.randrange(LAG))) for each in ids]


class Postgres(Incremental):
    """Rows of a server."""

    name = "postgres"

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        rows = 'query = "SELECT id, at FROM orders WHERE at >= {from} AND at < {to}"\n'
        self.config = jdbc(server.url, rows + OF_POSTGRES, "org.postgresql.Driver") + INCREMENTAL
        server.execute("CREATE TABLE orders (id INT, at BIGINT)")

    def add(self, ids: range, rng: random.Random, driver: Driver) -> None:
        """Add rows in one transaction."""
        values = ", ".join(map(str, places(ids, rng)))
        self._server.execute(f"INSERT INTO orders VALUES {values}")  # noqa: S608 - numbers


class Sqlite(Incremental):
    """Rows of a file."""

    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._path = folder / "orders.db"
        rows = 'dbtable = "orders"'
        self.config = jdbc(f"jdbc:sqlite:{self._path}", rows, "org.sqlite.JDBC") + INCREMENTAL
        self._execute("CREATE TABLE orders (id INT, at BIGINT)", [()])

    def _execute(self, sql: str, rows: list[tuple[int, ...]]) -> None:
        connection = sqlite3.connect(self._path)
        with connection:
            connection.executemany(sql, rows)
        connection.close()

    def add(self, ids: range, rng: random.Random, driver: Driver) -> None:
        """Add rows in one transaction."""
        self._execute("INSERT INTO orders VALUES (?, ?)", list(places(ids, rng)))


class Parquet(Incremental):
    """Files of a folder."""

    name = "parquet"

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "files"
        self._folder.mkdir()
        self.config = f'[source]\nformat = "parquet"\npath = "{self._folder}"\n{INCREMENTAL}'

    def add(self, ids: range, rng: random.Random, driver: Driver) -> None:
        """Add a file."""
        _, at = zip(*places(ids, rng), strict=True)
        write_file(self._folder, ids, at=pa.array(at, pa.int64()))


class VersionedTable(Incremental):
    """A table of Delta or Iceberg, read from version to version."""

    def __init__(self, name: str, table: str, path: str, properties: str = "") -> None:
        self.name = name
        self.config = f'[source]\nformat = "{name}"\npath = "{path}"\n[incremental]\n'
        self._table = table
        self._statements = [f"CREATE TABLE {table} (id INT, at INT) USING {name} {properties}"]

    def add(self, ids: range, rng: random.Random, driver: Driver) -> None:
        """Add rows in one commit or more."""
        cut = rng.randint(ids.start, ids.stop)
        for some in (range(ids.start, cut), range(cut, ids.stop)):
            if some:
                values = ", ".join(f"({each}, 0)" for each in some)
                self._statements.append(f"INSERT INTO {self._table} VALUES {values}")  # noqa: S608
        assert driver.ask({"sql": self._statements}) == ""
        self._statements = []


def delta_table(folder: Path) -> VersionedTable:
    """Return a table of Delta in a folder."""
    path = f"{folder}/table"
    change_data = "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    return VersionedTable("delta", f"delta.`{path}`", path, change_data)


def iceberg_table(_folder: Path) -> VersionedTable:
    """Return a table of Iceberg in the catalog ``lake``."""
    return VersionedTable("iceberg", "lake.shop.orders", "lake.shop.orders")


class Days:
    """Days that a backfill does, some of them again; each gets its rows before it is asked for."""

    commit_calls = 150

    def __init__(self) -> None:
        self._end = 0
        """The number of days that have rows."""

    def days(self, ids: range, rng: random.Random) -> list[tuple[dt.date, range]]:
        """Return new days, each with its part of the ids."""
        count = rng.randint(1, 4)
        new = [FIRST_DAY + dt.timedelta(self._end + number) for number in range(count)]
        self._end += count
        return [(day, ids[number::count]) for number, day in enumerate(new)]

    def arguments(self) -> list[str]:
        """Return the days of the backfill."""
        first = max(0, self._end - DAYS_AGAIN - 4)
        start, end = (FIRST_DAY + dt.timedelta(each) for each in (first, self._end))
        return ["--backfill", f"{start}..{end}"]


class PostgresDays(Days):
    """Rows with a time, in a server."""

    name = "postgres-days"

    def __init__(self, server: PostgresServer) -> None:
        super().__init__()
        self._server = server
        window = "at >= '{start}' AND at < '{end}'"
        rows = f'query = "SELECT id, at FROM visits WHERE {window}"\n{OF_POSTGRES}'  # noqa: S608
        self.config = jdbc(server.url, rows, "org.postgresql.Driver")
        server.execute("CREATE TABLE visits (id INT, at TIMESTAMPTZ)")

    def add(self, ids: range, rng: random.Random, driver: Driver) -> None:
        """Add the rows of new days."""
        clocks = ("00:00:00", "12:00:00", "23:59:59.999999")
        values = ", ".join(
            f"({each}, '{day} {clocks[each % len(clocks)]}+00')"
            for day, some in self.days(ids, rng)
            for each in some
        )
        self._server.execute(f"INSERT INTO visits VALUES {values}")  # noqa: S608 - our values


class ParquetDays(Days):
    """A folder a day."""

    name = "parquet-days"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder / "days"
        self.config = f'[source]\nformat = "parquet"\npath = "{self._folder}/day={{date}}"\n'

    def add(self, ids: range, rng: random.Random, driver: Driver) -> None:
        """Add the folders of new days."""
        for day, some in self.days(ids, rng):
            folder = self._folder / f"day={day}"
            folder.mkdir(parents=True)
            write_file(folder, some)


def jdbc(url: str, rows: str, driver: str) -> str:
    """Return the section of a source."""
    return JDBC.replace("{url}", url).replace("{rows}", rows).replace("{driver}", driver)


def write_file(folder: Path, ids: range, **columns: pa.Array) -> None:
    """Write ids, and what else there is, to a new file of a folder."""
    table = pa.table({"id": pa.array(ids, pa.int32()), **columns})
    pq.write_table(table, folder / f"{ids.start:06}.parquet")
