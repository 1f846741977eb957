"""What the members of a consumer group read: by topic, so that nobody goes through all members.

Members that have the same regular expression share its topics.

Source: ModernGroup.subscribedTopicNames, ConsumerGroup.resolvedRegularExpressions (Kafka 4.4).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pylog.server.group_memory import NAME_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, KeysView


class Subscriptions:
    """How many members read each topic, and what their expressions match. One thread."""

    def __init__(self) -> None:
        self._names: Counter[str] = Counter()
        self._regexes: Counter[str] = Counter()
        self._matching: dict[str, frozenset[str]] = {}

    def add(self, names: Iterable[str], regex: str) -> None:
        """Count what a member reads; no expression is an empty one."""
        self._names.update(names)
        if regex:
            self._regexes[regex] += 1

    def remove(self, names: Iterable[str], regex: str) -> None:
        """Forget what a member reads."""
        self._names -= Counter(names)
        if regex:
            self._regexes[regex] -= 1
            if not self._regexes[regex]:
                del self._regexes[regex]
                self._matching.pop(regex, None)

    def matching(self, regex: str) -> frozenset[str]:
        """Return the topics that an expression has been found to match."""
        return self._matching.get(regex, frozenset())

    def set_matching(self, regex: str, topics: frozenset[str]) -> None:
        """Set what an expression of a member matches."""
        self._matching[regex] = topics

    def topics(self, known: KeysView[str]) -> frozenset[str]:
        """Return the existing topics that members read."""
        return those_known(self._names.keys(), known).union(*self._matching.values())

    @property
    def size_bytes(self) -> int:
        """What it takes besides what members have sent."""
        return NAME_BYTES * sum(map(len, self._matching.values()))


def those_known(
    names: frozenset[str] | KeysView[str], known: KeysView[str] | KeysView[str | None]
) -> frozenset[str]:
    """Return what is in both, in time that grows with the smaller."""
    if len(names) < len(known):
        return frozenset(each for each in names if each in known)
    return frozenset(each for each in known if each is not None and each in names)
