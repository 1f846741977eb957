"""Conditions of a client of Spark Connect in which an instant is a number.

The server reads ``timestamp'2026-11-01 00:00:00'`` anew for each action, by the time zone that the
session has then. What was pushed down by the zone of today would leave out rows that pass by that
of tomorrow; so the condition itself is fixed, to what a classic session would make of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from pyspark_pylog.sql_conjunction import read_conjunction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyspark_pylog.sql_conjunction import WrittenInstant


def with_fixed_instants(spark: SparkSession, condition: str) -> str:
    """Return a condition with ``timestamp_micros(…)`` for what `timestamp` is compared with.

    The server is asked once what they mean, unless there are none. Where it does not know, the
    condition stays as it is: Spark says at its evaluation what is wrong.
    """
    instants = read_conjunction(condition).instants
    if not instants:
        return condition
    columns = [f"unix_micros(CAST({each.text} AS TIMESTAMP))" for each in instants]
    try:
        row = spark.sql(f"SELECT {', '.join(columns)}").first()
    except PySparkException:
        return condition
    if row is None or None in row:
        return condition
    return _replaced(condition, dict(zip(instants, row, strict=True)))


def _replaced(condition: str, microseconds: dict[WrittenInstant, int]) -> str:
    parts, place = [], 0
    for each, number in sorted(microseconds.items(), key=lambda item: item[0].begin):
        parts += [condition[place : each.begin], f"timestamp_micros({number})"]
        place = each.end
    return "".join((*parts, condition[place:]))
