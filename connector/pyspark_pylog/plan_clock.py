"""Whether predicates ask the clock: ``timestamp >= now() - INTERVAL 1 HOUR``.

Spark asks the clock again whenever it plans a query, so a bound that was computed once may differ
from that of a later action. A lower bound that can only grow remains right; others do not.
"""

from __future__ import annotations

import datetime as dt
import enum
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

_CLOCKS = frozenset({"CurrentTimestamp", "Now", "CurrentDate"})
# What keeps the order of instants, and which of its children is one.
_ORDER_KEPT = {
    "Cast": 0,
    "DatetimeSub": 0,
    "TimeAdd": 0,
    "TimestampAddInterval": 0,
    "TimestampAdd": 1,
    "TruncTimestamp": 1,
    "DateAdd": 0,
    "DateSub": 0,
}
_LOGIC = frozenset(
    {"And", "Or", "Not", "GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual"}
)
_INSTANTS = frozenset({"TimestampType$", "DateType$", "TimestampType", "DateType"})
# As strings in place of timestamps: 'now', 'today' …
_WORDS = re.compile(r"\b(now|today|tomorrow|yesterday)\b", re.IGNORECASE)


LOCAL_STEP = dt.timedelta(hours=3)


class Clock(enum.Enum):
    """What the literals of a plan have to do with the time at which it was made."""

    NOT_ASKED = enum.auto()
    GROWING = enum.auto()
    """Those compared with timestamps may be later in a later plan; earlier by `LOCAL_STEP` at
    most, since days are added in local time, which steps where summer time begins."""
    UNKNOWN = enum.auto()


def find_clock(filtered: DataFrame) -> Clock:
    """Return how the conditions of ``filtered``, a DataFrame of filters alone, ask the clock."""
    plan = filtered._jdf.queryExecution().analyzed()
    pattern = _current_like(filtered)
    asked = False
    for condition in _conditions(plan):
        if condition.containsPattern(pattern):
            asked = True
            if not _only_grows(condition, pattern):
                return Clock.UNKNOWN
        asked = asked or _WORDS.search(str(condition.toString())) is not None
    return Clock.GROWING if asked else Clock.NOT_ASKED


def _current_like(frame: DataFrame) -> Any:  # noqa: ANN401 - of the JVM
    jvm: Any = frame.sparkSession._jvm
    return jvm.org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE()


def _conditions(plan: Any) -> Iterator[Any]:  # noqa: ANN401 - of the JVM
    while plan.getClass().getSimpleName() == "Filter":
        yield plan.condition()
        plan = plan.child()


def _only_grows(expression: Any, pattern: Any) -> bool:  # noqa: ANN401 - of the JVM
    """Whether all that asks the clock in an expression keeps the order of what it is made of."""
    if not expression.containsPattern(pattern):
        return True
    kind = str(expression.getClass().getSimpleName())
    if kind in _CLOCKS:
        return True
    children = expression.children()
    asking = [children.apply(at) for at in range(children.size())]
    if kind in _ORDER_KEPT:
        if str(expression.dataType().getClass().getSimpleName()) not in _INSTANTS:
            return False
        # date_add('2024-01-01', datediff('2024-01-01', now())) runs backwards.
        instant = asking.pop(_ORDER_KEPT[kind])
        if any(each.containsPattern(pattern) for each in asking):
            return False
        asking = [instant]
    elif kind not in _LOGIC:
        return False
    return all(_only_grows(each, pattern) for each in asking)
