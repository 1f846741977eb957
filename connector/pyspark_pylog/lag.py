"""How far a running query is behind the logs that it reads, from its progress."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark_pylog.stream_offset import OURS, StreamOffset, is_initial

if TYPE_CHECKING:
    from collections.abc import Mapping

_NO_SOURCE = (
    'the progress has no source of format("pylog"); pass query.lastProgress of a query that reads '
    "such a stream"
)
_NO_LATEST = (
    "the progress has no latest offsets: Spark asks Python data sources for them from version 4.2 "
    "on"
)


def lag(progress: Any) -> dict[tuple[str, int], int] | None:  # noqa: ANN401 - of Spark
    """Return how many offsets each partition has that the query has not read.

    Sum the values for the lag of the query. Transaction markers count as offsets; under
    read_committed what follows an open transaction does not.

    Examples
    --------
    >>> orders = spark.readStream.format("pylog").option("subscribe", "orders").load("kafka/intact")
    >>> query = orders.writeStream.format("noop").trigger(availableNow=True).start()
    >>> query.processAllAvailable()
    >>> sum(pyspark_pylog.lag(query.lastProgress).values())
    0
    """
    if progress is None:
        return None
    behind: dict[tuple[str, int], int] = {}
    has_source = False
    for source in _member(progress, "sources"):
        end = _parsed(_member(source, "endOffset"))
        if not isinstance(end, dict) or OURS not in end or is_initial(end):
            continue
        latest = _parsed(_member(source, "latestOffset"))
        if latest is None:
            raise ValueError(_NO_LATEST)
        has_source = True
        read = StreamOffset.from_json(end).ends
        for each, offset in StreamOffset.from_json(latest).ends.items():
            behind[each.topic, each.partition] = max(0, offset - read.get(each, 0))
    if not has_source:
        raise ValueError(_NO_SOURCE)
    return behind


def _member(of: Any, name: str) -> Any:  # noqa: ANN401 - of Spark
    """Return a member of a progress object, or of the JSON of one."""
    value: Mapping[str, Any] | Any = of
    return value[name] if isinstance(value, dict) and name in value else getattr(value, name)


def _parsed(offset: Any) -> Any:  # noqa: ANN401 - JSON is anything
    return json.loads(offset) if isinstance(offset, str) else offset
