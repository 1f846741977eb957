"""SIGKILL of the Spark process of an ingest: the topic equals the source, once each.

Sources get new rows between runs. A run is killed at a chosen system call of its commit, with all
processes that Spark has started, or at any moment before; at times another run of the same job is
under way meanwhile, which lives.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.kills.ingest_sources import (
    VARIABLES,
    Parquet,
    ParquetDays,
    Postgres,
    PostgresDays,
    Source,
    Sqlite,
    delta_table,
    iceberg_table,
)
from tests.kills.kill_point import KillPoint, Victim
from tests.kills.spark_driver import LOCAL, Driver
from tests.support.jdbc_drivers import jdbc_drivers
from tests.support.postgres_server import PASSWORD, postgres_server
from tests.support.spark_session import require_java
from tests.support.table_formats import NEEDS_TABLE_FORMATS, table_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tests.conftest import Counted

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.thorough]

SEED = 60
PARTS = 6
KILLS_A_PART = 6
BACKFILL_PARTS = 3
KILLS_A_BACKFILL_PART = 4
FORMAT_PARTS = 3
KILLS_A_FORMAT_PART = 2
MOST_ROWS = 30
REST = """
[record]
key = "CAST(id AS STRING)"
value_format = "json"
[target]
directory = "{folder}/logs"
topic = "{name}"
partitions = 2
job_id = "{job_id}"
"""


@pytest.mark.parametrize("part", range(PARTS))
def test_killed_ingests(
    part: int, tmp_path: Path, kills: Callable[[int], int], rounds: Callable[..., Rounds]
) -> None:
    with postgres_server() as server:
        sources = [Postgres(server), Sqlite(tmp_path), Parquet(tmp_path)]
        rounds(SEED + part, sources, of_jdbc()).run(kills(KILLS_A_PART))


@pytest.mark.parametrize("part", range(BACKFILL_PARTS))
def test_killed_backfills(
    part: int, tmp_path: Path, kills: Callable[[int], int], rounds: Callable[..., Rounds]
) -> None:
    with postgres_server() as server:
        sources = [PostgresDays(server), ParquetDays(tmp_path)]
        rounds(SEED + 100 + part, sources, of_jdbc()).run(kills(KILLS_A_BACKFILL_PART))


@NEEDS_TABLE_FORMATS
@pytest.mark.parametrize("part", range(FORMAT_PARTS))
@pytest.mark.parametrize("make", [delta_table, iceberg_table])
def test_killed_ingests_of_table_versions(
    make: Callable[[Path], Source],
    part: int,
    tmp_path: Path,
    kills: Callable[[int], int],
    rounds: Callable[..., Rounds],
) -> None:
    source = make(tmp_path)
    seed = SEED + (200 if make is delta_table else 300) + part
    rounds(seed, [source], table_variables(tmp_path)).run(kills(KILLS_A_FORMAT_PART))


def of_jdbc() -> dict[str, str]:
    """Return the environment of a driver that reads databases."""
    jars = ",".join(map(str, jdbc_drivers()))
    return {"PYSPARK_SUBMIT_ARGS": f"--jars {jars} pyspark-shell", **VARIABLES}


@pytest.fixture
def rounds(
    tmp_path: Path, spark_home: Path, counted: Counted, request: pytest.FixtureRequest
) -> Callable[..., Rounds]:
    require_java()

    def make(seed: int, sources: Sequence[Source], variables: Mapping[str, str]) -> Rounds:
        made = Rounds(seed, sources, variables, tmp_path, spark_home, counted)
        request.addfinalizer(lambda: made.following.end())  # noqa: PLW0108 - of the last one
        return made

    return make


class Rounds:
    """Runs of jobs, one of which is killed in each round.

    Parameters
    ----------
    seed
        Says what is added, and where runs are killed.
    sources
        By turns.
    variables
        More of the environment of all drivers.
    folder
        Gets the logs and all else.
    home
        ``SPARK_HOME``.
    counted
        Takes how runs ended.
    """

    def __init__(
        self,
        seed: int,
        sources: Sequence[Source],
        variables: Mapping[str, str],
        folder: Path,
        home: Path,
        counted: Counted,
    ) -> None:
        sys.stdout.write(f"seed {seed}\n")
        self._counted = counted
        self._rng = random.Random(seed)
        self._sources = sources
        self._written = {each.name: 0 for each in sources}
        self._variables = variables
        self._folder = folder
        self._home = home
        self._drivers = 0
        self.following = self._new_driver()
        """Starts while another one is at work."""

    def _new_driver(self) -> Driver:
        self._drivers += 1
        return Driver(
            LOCAL,
            self._folder / f"driver-{self._drivers}",
            home=self._home,
            module="tests.kills.ingest_driver",
            variables=self._variables,
        )

    def run(self, kills: int) -> None:
        """Kill so many times; then let all jobs end, and compare."""
        outcomes: Counter[str] = Counter()
        for number in range(kills):
            source = self._sources[number % len(self._sources)]
            current, self.following = self.following, self._new_driver()
            with current:
                self._add(source, current)
                assert current.ask({"arguments": self._arguments(source)}) == ""
                self._add(source, current)
                others = [self.following] if self._rng.random() < 1 / 3 else []
                outcome = self._kill(current, source, self._folder / f"note-{number}", others)
            outcomes[f"{source.name}: {outcome}"] += 1
            ids = self._ids(source)
            assert len(set(ids)) == len(ids), f"kill {number}, {source.name}, {outcome}"
            assert set(ids) <= set(range(self._written[source.name]))
        with self.following:
            for source in self._sources[:kills]:
                for _ in range(2):
                    assert self.following.ask({"arguments": self._arguments(source)}) == ""
                assert self._ids(source) == list(range(self._written[source.name])), source.name
            self.following.stop()
        findings = pylog.read_table(self._folder / "logs", "findings").to_pylist()
        assert not [each for each in findings if each["severity"] != "info"]
        logs = [each.read_text("utf-8", "replace") for each in self._folder.glob("driver-*")]
        assert not [each for each in logs if PASSWORD in each]
        self._counted("killed ingests", outcomes)

    def _add(self, source: Source, driver: Driver) -> None:
        first = self._written[source.name]
        self._written[source.name] += self._rng.randrange(1, MOST_ROWS)
        source.add(range(first, self._written[source.name]), self._rng, driver)

    def _arguments(self, source: Source) -> list[str]:
        path = self._folder / f"{source.name}.toml"
        more = source.arguments()
        job_id = f"{source.name} {{date}}" if more else source.name
        rest = REST.format(folder=self._folder, name=source.name, job_id=job_id)
        path.write_text(source.config + rest, "utf-8")
        return ["--config", str(path), *more]

    def _kill(self, driver: Driver, source: Source, note: Path, others: Sequence[Driver]) -> str:
        """Let a run be killed, while others of the same job live; return where."""
        request = {"arguments": self._arguments(source)}
        with ThreadPoolExecutor(1) as pool:
            living = [pool.submit(each.ask, request) for each in others]
            if self._rng.random() < 0.25:
                where = "at any moment"
                looks = self._rng.randrange(1, 6)
                answer = driver.ask(request, _after(looks, driver.kill))
            else:
                where = "in the commit"
                call = self._rng.randint(1, source.commit_calls)
                point = KillPoint(str(note), "commit", call, Victim.DRIVER)
                answer = driver.ask({**request, "kill": point.to_json()})
            answers = [each.result() for each in living]
        assert answers == [""] * len(others)
        beside = ", beside another run" if others else ""
        if answer is None:
            return f"killed {where}{beside}"
        assert answer == ""
        return f"done before it was killed{beside}"

    def _ids(self, source: Source) -> list[int]:
        rows = pylog.scan(self._folder / "logs", topics=source.name).to_table()
        return sorted(int(each) for each in rows["key"].to_pylist())


def _after(looks: int, act: Callable[[], None]) -> Callable[[], None]:
    """Return what acts at the n-th call."""
    left = looks

    def look() -> None:
        nonlocal left
        left -= 1
        if not left:
            act()

    return look
