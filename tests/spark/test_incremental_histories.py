"""Random histories of real sources, each run of the job held against what docs/jobs.md promises.

All histories of a process share one Spark, and each has a session of its own. Delta's and Iceberg's
runtimes lag behind Spark: ``make test-spark-versions SPARKS="4.0 -- --all"`` runs these, too.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.kills.conftest import spark_home
from tests.kills.spark_driver import LOCAL, Driver
from tests.support.jdbc_drivers import jdbc_drivers
from tests.support.postgres_server import PASSWORD, postgres_server
from tests.support.spark_session import NEEDS_SPARK, require_java
from tests.support.table_formats import NEEDS_TABLE_FORMATS, table_variables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Counted, HowMany

pytestmark = [*NEEDS_SPARK, pytest.mark.slow]

__all__ = ["spark_home"]

HAS_TABLE_FORMATS = not NEEDS_TABLE_FORMATS.args[0]
# Of ten histories; open transactions have most to go wrong.
SHARES = {"postgres": 4, "sqlite": 1, "parquet": 2, "delta": 1.5, "iceberg": 1.5}
FEW, ALL = 5, 100


class Player:
    """One Spark that plays histories of all sources."""

    def __init__(self, driver: Driver, root: Path) -> None:
        self._driver = driver
        self._root = root
        self._url = ""

    def play(self, source: str, number: int, url: str) -> dict[str, int]:
        """Play a history; return how often its runs ended with which status."""
        request = {
            "source": source,
            "number": number,
            "folder": str(self._root),
            "url": url,
            "password": PASSWORD,
        }
        answer = self._driver.ask(request)
        assert answer is not None, self._driver.log.read_text("utf-8", "replace")[-4_000:]
        found = json.loads(answer)
        assert found["problem"] is None, found["problem"]
        return {f"runs with status {status}": count for status, count in found["statuses"].items()}


@pytest.fixture(scope="module")
def player(spark_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Player]:
    require_java()
    root = tmp_path_factory.mktemp("histories")
    drivers = jdbc_drivers()
    variables = {"PYSPARK_SUBMIT_ARGS": f"--jars {','.join(map(str, drivers))} pyspark-shell"}
    if HAS_TABLE_FORMATS:
        variables |= table_variables(root, *drivers)
    with Driver(
        LOCAL,
        root / "log",
        home=spark_home,
        module="tests.spark.histories.driver",
        variables=variables,
    ) as running:
        yield Player(running, root)
        running.stop()


@pytest.mark.parametrize(
    "source",
    [
        *("postgres", "sqlite", "parquet"),
        *(pytest.param(each, marks=NEEDS_TABLE_FORMATS) for each in ("delta", "iceberg")),
    ],
)
def test_each_run_over_a_random_history_keeps_the_promise_or_says_so(
    player: Player, source: str, how_many: HowMany, counted: Counted
) -> None:
    count = round(how_many(FEW, ALL) * SHARES[source] / 10)
    with ExitStack() as stack:
        url = ""
        if source == "postgres":
            server = stack.enter_context(postgres_server())
            server.execute(f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'")
            url = server.url
        for number in range(max(1, count)):
            statuses = player.play(source, number, url)
            counted(f"histories of {source}", {"histories": 1, **statuses})
