"""``pushFilters``: predicates that Spark hands to the reader.

Spark 4.1 to 4.3 keep the reader that filters were pushed into for every later scan of the same
relation: a second use of one ``load()``, with another filter, would get the rows of the first. So
with ``pushdown=auto`` filters leave nothing out on these versions; with ``on`` the user vouches
that each ``load()`` is filtered once. Every filter goes back to Spark, which evaluates it again.
Spark 4.0 hands no filters to Python data sources.

A reader that overrides the method fails while ``spark.sql.python.filterPushdown.enabled`` is off,
as it is by default: Spark compares the method with that of the base class. `PushFilters` passes for
the base class's method, and works if it is called all the same.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pyspark
from pyspark.sql.datasource import DataSourceReader

import pylog
from pylog.jobs import Comparison, to_record_filter
from pyspark_pylog.spark_workarounds.classic_plan import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from pylog import RecordFilter
    from pylog.results import TypedRecords

FIRST_WITHOUT_LEAK = 5
"""The first major version of Spark in which each scan has pushed filters of its own."""

_OPERATORS = {**OPERATORS, "In": "in"}

_LOGGER = logging.getLogger(__name__)


def warn_if_never_pushed(pushdown: str) -> None:
    """Log a warning if the option asks for what this version of Spark never does."""
    if pushdown == "on" and not hasattr(DataSourceReader, "pushFilters"):
        _LOGGER.warning(
            "pylog: option pushdown=on has no effect in Spark %s, which hands no filters to Python "
            "data sources (4.1 and later do): everything that the path and the options cover is "
            "read; pyspark_pylog.table(spark, path).where(...) reads less in every version",
            pyspark.__version__,
        )


def is_pruning(pushdown: str, version: str = pyspark.__version__) -> bool:
    """Whether pushed filters leave out records, with that option on that version of Spark."""
    if pushdown == "auto":
        return int(version.partition(".")[0]) >= FIRST_WITHOUT_LEAK
    return pushdown == "on"


class PushFilters:
    """A reader's attribute ``pushFilters``; keeps what the filters say, for `where`."""

    def __init__(self) -> None:
        self._comparisons: list[Comparison] = []
        # What Spark looks at to see whether the method is overridden.
        self.__func__ = getattr(DataSourceReader, "pushFilters", None)

    def __call__(self, filters: Iterable[object]) -> Iterator[object]:
        """Keep what the filters say, and return all of them for Spark to evaluate."""
        given = list(filters)
        found = map(_to_comparison, given)
        self._comparisons = [comparison for comparison in found if comparison is not None]
        return iter(given)

    def where(self, formats: Collection[str] = ()) -> RecordFilter:
        """Return the filter that lets pass what they do; typed keys and values say nothing."""
        typed = [name.removesuffix("_format") for name in formats]
        return to_record_filter(self._comparisons, typed=typed)

    def narrowed(self, typed: TypedRecords | None) -> TypedRecords | None:
        """Return what gives the rows that pass what the filters say about decoded fields."""
        if typed is None:
            return None
        condition = pylog.jobs.to_field_condition(self._comparisons, typed.types)
        return typed if condition is None else typed.passing(condition)


def _to_comparison(pushed: object) -> Comparison | None:
    operator = _OPERATORS.get(type(pushed).__name__)
    attribute: tuple[str, ...] = getattr(pushed, "attribute", ())
    if operator is None or not attribute:
        return None
    value = getattr(pushed, "value", None)
    column = attribute if len(attribute) > 1 else attribute[0]
    return None if value is None else Comparison(column, operator, value)
