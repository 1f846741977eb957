"""Instants in a condition become numbers, as the server reads them now."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from pyspark.errors import AnalysisException

from pyspark_pylog.fixed_instants import with_fixed_instants

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Server:
    """Answers each query with a row."""

    def __init__(self, row: list[int | None] | None = None) -> None:
        self.asked: list[str] = []
        self._row = row

    def sql(self, query: str) -> Server:
        self.asked.append(query)
        return self

    def first(self) -> list[int | None]:
        if self._row is None:
            raise AnalysisException("no")
        return self._row


def fixed(server: Server, condition: str) -> str:
    return with_fixed_instants(cast("SparkSession", server), condition)


def test_each_instant_is_replaced_in_its_place() -> None:
    server = Server([5, -7])
    condition = "timestamp >= '2026-11-01' AND x < '2026-11-01' AND DATE'2026-11-02' > timestamp"
    assert fixed(server, condition) == (
        "timestamp >= timestamp_micros(5) AND x < '2026-11-01' AND timestamp_micros(-7) > timestamp"
    )
    [query] = server.asked
    assert query == (
        "SELECT unix_micros(CAST('2026-11-01' AS TIMESTAMP)), "
        "unix_micros(CAST(DATE'2026-11-02' AS TIMESTAMP))"
    )


def test_the_same_instant_twice_is_replaced_twice() -> None:
    assert fixed(Server([5, 5]), "timestamp > '2026-11-01' AND timestamp > '2026-11-01'") == (
        "timestamp > timestamp_micros(5) AND timestamp > timestamp_micros(5)"
    )


@pytest.mark.parametrize("row", [None, [None]])
def test_what_the_server_does_not_know_stays(row: list[int | None] | None) -> None:
    assert fixed(Server(row), "timestamp > '2026-99-01'") == "timestamp > '2026-99-01'"


def test_the_server_is_not_asked_without_need() -> None:
    server = Server([5])
    assert fixed(server, "offset > 5") == "offset > 5"
    assert server.asked == []
