"""Topics chosen by their names or by a pattern, and what is said where none is there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pylog.errors import UnknownTopicOrPartitionError
from pylog.files.topic_name import nearest_topic

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_MOST_NAMED = 20
_ASSIGN = "partitions are chosen by assign, as in assign={'orders': [0, 1]}"


def ensure_known_topics(names: Iterable[object], known: Collection[str]) -> None:
    """Raise `UnknownTopicOrPartitionError`, which names the nearest, unless all are known.

    ``TypeError`` for what is not a name, such as a topic with a partition.
    """
    for name in names:
        if not isinstance(name, str):
            msg = f"topics has {name!r}, expected names of topics; {_ASSIGN}"
            raise TypeError(msg)
        if name not in known:
            near = nearest_topic(name, known)
            hint = "." if near is None else f"; did you mean {near!r}?"
            msg = f"no topic {name!r} here{hint} Topics found: {topic_list(known)}"
            raise UnknownTopicOrPartitionError(msg)


def ensure_partitions_by_topic(assign: object) -> None:
    """Raise ``TypeError`` unless ``assign`` is a mapping."""
    if not isinstance(assign, Mapping):
        msg = f"assign is {assign!r}, expected partitions by topic; {_ASSIGN}"
        raise TypeError(msg)


def compile_topic_pattern(pattern: str) -> re.Pattern[str]:
    """Return a pattern that is found anywhere in a topic's name.

    Raises
    ------
    ValueError
        It is not a regular expression.
    """
    try:
        return re.compile(pattern)
    except re.error as error:
        msg = f"topic pattern {pattern!r} is not a regular expression: {error}"
        raise ValueError(msg) from error


def no_topic_matches(pattern: str, known: Iterable[str]) -> UnknownTopicOrPartitionError:
    """Return the error for a pattern that is found in no topic's name."""
    return UnknownTopicOrPartitionError(
        f"no topic here matches the pattern {pattern!r}; topics found: {topic_list(known)}"
    )


def topic_list(topics: Iterable[str]) -> str:
    """Return the names for a message, the first ones if there are many."""
    names = sorted(topics)
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more or "none"
