"""SIGKILL of the Spark process of an incremental ingest: the topic equals the source, once each.

Sources are a PostgreSQL server, an SQLite file and a folder of Parquet files. Between runs they get
new rows and late ones. A run is killed at a chosen system call of its commit, with all processes
that Spark has started, or at any moment before.
"""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pylog
from tests.kills.kill_point import KillPoint, Victim
from tests.kills.spark_driver import LOCAL, Driver
from tests.support.jdbc_drivers import jdbc_drivers
from tests.support.postgres_server import PASSWORD, postgres_server
from tests.support.spark_session import require_java

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.conftest import Counted
    from tests.support.postgres_server import PostgresServer

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.thorough]

SEED = 60
PARTS = 6
KILLS = 60 // PARTS
COMMIT_CALLS = 70
"""About as many as a commit of one of these runs makes."""
LAG = 50
REST = """
[record]
key = "CAST(id AS STRING)"
value_format = "json"
[target]
directory = "{folder}/logs"
topic = "{name}"
partitions = 2
job_id = "{name}"
[incremental]
column = "at"
lag = {lag}
key = "id"
"""


class Source(Protocol):
    """A table with columns ``id`` and ``at``, and the configuration that reads it."""

    name: str
    config: str

    def add(self, rows: list[tuple[int, int]]) -> None:
        """Add rows."""
        ...


class Postgres:
    """Rows of a server."""

    name = "postgres"

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.config = (
            f'[source]\nformat = "jdbc"\n[source.options]\nurl = "{server.url}"\n'  # noqa: S608
            'query = "SELECT id, at FROM orders WHERE at >= {{from}} AND at < {{to}}"\n'
            'user = "postgres"\npassword = "${{env:PYLOG_TEST_PASSWORD}}"\n'
            'driver = "org.postgresql.Driver"\n'
        )
        server.execute("CREATE TABLE orders (id INT, at BIGINT)")

    def add(self, rows: list[tuple[int, int]]) -> None:
        values = ", ".join(map(str, rows))
        self._server.execute(f"INSERT INTO orders VALUES {values}")  # noqa: S608 - numbers


class Sqlite:
    """Rows of a file."""

    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._path = folder / "orders.db"
        self.config = (
            f'[source]\nformat = "jdbc"\n[source.options]\nurl = "jdbc:sqlite:{self._path}"\n'
            'dbtable = "orders"\ndriver = "org.sqlite.JDBC"\n'
        )
        self._execute("CREATE TABLE orders (id INT, at BIGINT)", [()])

    def _execute(self, sql: str, rows: list[tuple[int, ...]]) -> None:
        connection = sqlite3.connect(self._path)
        with connection:
            connection.executemany(sql, rows)
        connection.close()

    def add(self, rows: list[tuple[int, int]]) -> None:
        self._execute("INSERT INTO orders VALUES (?, ?)", list(rows))


class Parquet:
    """Files of a folder."""

    name = "parquet"

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "lake"
        self._folder.mkdir()
        self.config = f'[source]\nformat = "parquet"\npath = "{self._folder}"\n'

    def add(self, rows: list[tuple[int, int]]) -> None:
        ids, at = zip(*rows, strict=True)
        table = pa.table({"id": pa.array(ids, pa.int32()), "at": pa.array(at, pa.int64())})
        pq.write_table(table, self._folder / f"{ids[0]:06}.parquet")


@pytest.fixture
def sources(tmp_path: Path) -> Iterator[list[Source]]:
    with postgres_server() as server:
        yield [Postgres(server), Sqlite(tmp_path), Parquet(tmp_path)]


@pytest.mark.parametrize("part", range(PARTS))
def test_killed_ingests(
    part: int,
    sources: list[Source],
    tmp_path: Path,
    spark_home: Path,
    kills: Callable[[int], int],
    request: pytest.FixtureRequest,
    counted: Counted,
) -> None:
    require_java()
    rng = random.Random(SEED + part)
    variables = {
        "PYSPARK_SUBMIT_ARGS": f"--jars {','.join(map(str, jdbc_drivers()))} pyspark-shell",
        "PYLOG_TEST_PASSWORD": PASSWORD,
    }
    wanted = kills(KILLS)
    outcomes: Counter[str] = Counter()
    written = {each.name: 0 for each in sources}

    def driver(number: int) -> Driver:
        log = tmp_path / f"driver-{number}"
        module = "tests.kills.ingest_driver"
        return Driver(LOCAL, log, home=spark_home, module=module, variables=variables)

    following = driver(0)
    request.addfinalizer(lambda: following.end())  # noqa: PLW0108 - of the last one
    for number in range(wanted):
        source = sources[number % len(sources)]
        arguments = _configure(tmp_path, source)
        current, following = following, driver(number + 1)  # it starts while this one is at work
        with current:
            for is_killed in (False, True):
                count = rng.randrange(1, 30)
                first = written[source.name]
                # As late as may be after a run has read all, or new.
                places = [max(0, 10 * first - rng.randrange(LAG)) for _ in range(count)]
                source.add([(first + each, at) for each, at in enumerate(places)])
                written[source.name] += count
                if not is_killed:
                    assert current.ask({"arguments": arguments, "kill": None}) == ""
            outcome = _kill(current, arguments, tmp_path / f"note-{number}", rng)
        outcomes[f"{source.name}: {outcome}"] += 1
        assert _is_prefix(tmp_path, source, written[source.name])
    with following:
        for source in sources[:wanted]:
            arguments = _configure(tmp_path, source)
            for _ in range(2):
                assert following.ask({"arguments": arguments, "kill": None}) == ""
            assert _ids(tmp_path, source) == list(range(written[source.name])), source.name
        following.stop()
    logs = "".join(each.read_text("utf-8", "replace") for each in tmp_path.glob("driver-*"))
    assert PASSWORD not in logs
    counted(f"killed ingests, seed {SEED}", outcomes)


def _configure(folder: Path, source: Source) -> list[str]:
    path = folder / f"{source.name}.toml"
    text = source.config + REST
    path.write_text(text.format(folder=folder, name=source.name, lag=10 * LAG), "utf-8")
    return ["--config", str(path)]


def _kill(driver: Driver, arguments: list[str], note: Path, rng: random.Random) -> str:
    """Let a run be killed; return where."""
    if rng.random() < 0.25:
        looks = rng.randrange(1, 6)

        def look() -> None:
            nonlocal looks
            looks -= 1
            if not looks:
                driver.kill()

        answer = driver.ask({"arguments": arguments, "kill": None}, look)
        return "killed at any moment" if answer is None else "done before it was killed"
    point = KillPoint(str(note), "commit", rng.randint(1, COMMIT_CALLS), Victim.DRIVER)
    answer = driver.ask({"arguments": arguments, "kill": point.to_json()})
    if answer is None:
        return "killed in the commit"
    assert answer == ""
    return "done before it was killed"


def _ids(folder: Path, source: Source) -> list[int]:
    rows = pylog.scan(folder / "logs", topics=source.name).to_table()
    return sorted(int(each) for each in rows["key"].to_pylist())


def _is_prefix(folder: Path, source: Source, count: int) -> bool:
    """Whether no row is there twice, and none that there is not."""
    ids = _ids(folder, source)
    return len(set(ids)) == len(ids) and set(ids) <= set(range(count))
