"""Checks of the rows of a batch, made while they are staged: what fails is never published.

Spark computes them in the pass in which tasks stage the rows (`DataFrame.observe`), so that they
are of these rows and no others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import Observation, Window
from pyspark.sql import functions as sf
from pyspark.sql.types import BooleanType

from pylog_jobs.error_text import describe
from pylog_jobs.job import CheckFailedError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from pylog_jobs.ingest_config import Checks

_SAME = "_pylog_same"
"""How many rows have the same values in the columns that are to be unique."""


class RowChecks:
    """The checks of one batch: observed first, then held against what was staged."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._observation: Observation | None = None

    def observed(self, rows: DataFrame) -> DataFrame:
        """Return rows that are counted when they are read; `UsageError` for a wrong check."""
        metrics = self._metrics()
        if not metrics:
            return rows
        columns = rows.columns
        checked = rows
        try:
            if self._checks.unique:
                same = Window.partitionBy(*map(sf.expr, self._checks.unique))
                checked = rows.withColumn(_SAME, sf.count(sf.lit(1)).over(same))
            self._observation = Observation("checks")
            checked = checked.observe(self._observation, *metrics)
            types = rows.sparkSession.createDataFrame([], rows.schema).agg(
                *(sf.expr(text).alias("condition") for text in self._checks.conditions or ["true"])
            )
        except PySparkException as error:
            raise UsageError(f"[checks]: {describe(error)}") from error
        for text, found in zip(self._checks.conditions, types.schema, strict=False):
            if not isinstance(found.dataType, BooleanType):
                raise UsageError(
                    f"[checks]: conditions: {text!r} has type "
                    f"{found.dataType.simpleString().upper()}, expected BOOLEAN"
                )
        return checked.select(*columns) if self._checks.unique else checked

    def _metrics(self) -> list[Column]:
        checks = self._checks
        metrics = [
            sf.count_if(sf.expr(text).isNull()).alias(f"null{place}")
            for place, text in enumerate(checks.not_null)
        ]
        if checks.unique:
            metrics.append(sf.count_if(sf.col(_SAME) > 1).alias("same"))
        metrics += [
            sf.expr(text).alias(f"condition{place}") for place, text in enumerate(checks.conditions)
        ]
        return metrics

    def ensure_passed(self, rows: int) -> None:
        """Raise `CheckFailedError` that names all checks which so many staged rows fail."""
        failures = [*self._failures_of_count(rows), *self._failures_of_metrics(rows)]
        if failures:
            raise CheckFailedError(f"[checks]: {'; '.join(failures)}; nothing is written")

    def _failures_of_count(self, rows: int) -> list[str]:
        least, most = self._checks.min_rows, self._checks.max_rows
        if least is not None and rows < least:
            return [f"there are {rows} rows, and min_rows is {least}"]
        if most is not None and rows > most:
            return [f"there are {rows} rows, and max_rows is {most}"]
        return []

    def _failures_of_metrics(self, rows: int) -> list[str]:
        if self._observation is None or not rows:
            return []
        found = self._observation.get
        failures = [
            f"{text} is null in {found[f'null{place}']} rows"
            for place, text in enumerate(self._checks.not_null)
            if found[f"null{place}"]
        ]
        if self._checks.unique and found["same"]:
            failures.append(
                f"{', '.join(self._checks.unique)} is not unique in {found['same']} rows"
            )
        failures += [
            f"{text} is {'not known' if found[f'condition{place}'] is None else 'false'}"
            for place, text in enumerate(self._checks.conditions)
            if not found[f"condition{place}"]
        ]
        return failures
