"""Topics chosen by their names or by a pattern, and what is said where none is there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.errors import UnknownTopicOrPartitionError
from pylog.files.file_names import nearest_topic
from pylog.model import INTERNAL_TOPICS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pylog.reading.discovery import PartitionDirectory

_MOST_NAMED = 20
_ASSIGN = "partitions are chosen by assign, as in assign={'orders': [0, 1]}"


@dataclass(frozen=True, slots=True)
class TopicChoice:
    """Which partitions are chosen, whether they are there yet or not.

    Attributes
    ----------
    topics, assign, pattern
        As for `LogDirectory.select`; at most one is not None.
    """

    topics: frozenset[str] | None = None
    assign: frozenset[tuple[str, int]] | None = None
    pattern: re.Pattern[str] | None = None

    @classmethod
    def of(
        cls,
        *,
        topics: Iterable[str] | None,
        assign: Mapping[str, Iterable[int]] | None,
        pattern: str | None,
    ) -> TopicChoice:
        """Return the choice that arguments of `LogDirectory.select` make; for its errors, too."""
        ensure_one_way(topics, assign, pattern)
        if assign is not None:
            ensure_partitions_by_topic(assign)
            pairs = ((topic, each) for topic, partitions in assign.items() for each in partitions)
            return cls(assign=frozenset(pairs))
        if pattern is not None:
            return cls(pattern=compile_topic_pattern(pattern))
        return cls(topics=None if topics is None else frozenset(topics))

    def __contains__(self, directory: PartitionDirectory) -> bool:
        """Whether a partition is chosen."""
        topic, partition = directory.topic_partition
        if self.topics is not None:
            return topic in self.topics
        if self.assign is not None:
            return (topic, partition) in self.assign
        if self.pattern is not None:
            return topic not in INTERNAL_TOPICS and self.pattern.search(topic) is not None
        return topic not in INTERNAL_TOPICS or directory.is_named


def ensure_one_way(*ways: object) -> None:
    """Raise ``ValueError`` unless at most one of topics, assign and pattern is given."""
    if sum(way is not None for way in ways) > 1:
        msg = "give only one of topics (subscribe), assign and pattern (subscribePattern)"
        raise ValueError(msg)


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
