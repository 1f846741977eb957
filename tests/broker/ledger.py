"""What was produced into one partition: the oracle for whatever is read of it meanwhile."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kafka.producer.future import RecordMetadata


class Sent(NamedTuple):
    """A record as it must be read.

    The offset is known before the broker gives it: one producer writes to the partition, and a
    transaction marker takes one.
    """

    offset: int
    timestamp: int
    key: bytes
    value: bytes | None
    is_committed: bool


class Mark(NamedTuple):
    """How far a partition was at one moment; offsets are exclusive.

    Attributes
    ----------
    acknowledged
        Below it, everything has been acknowledged: a reader that starts now must see it.
    stable
        Below it, every transaction's marker lies in the log: a read_committed reader must see it.
    decided
        At and above it, no commit has been asked for: a read_committed reader must not see it.
    planned
        At and above it, nothing has been sent.
    """

    acknowledged: int
    stable: int
    decided: int
    planned: int


class Ledger:
    """Records of one partition in offset order. One thread writes it, any number read it.

    Invariant: `sent` only grows, ascending in offset and timestamp, and a record is in it before
    the broker gets it.
    """

    def __init__(self, topic: str, partition: int, *, is_transactional: bool = False) -> None:
        self.topic = topic
        self.partition = partition
        self.is_transactional = is_transactional
        self.sent: list[Sent] = []
        self.surprises: list[str] = []
        self._markers: list[int] = []
        self._acknowledged = 0
        self._stable = 0
        self._decided = 0
        self._next_offset = 0

    @property
    def name(self) -> str:
        """Name of the partition's directory."""
        return f"{self.topic}-{self.partition}"

    @property
    def next_offset(self) -> int:
        """The offset of the next record."""
        return self._next_offset

    def plan(self, sent: Sent) -> None:
        """Enter a record that is about to be sent."""
        self.sent.append(sent)
        self._next_offset = sent.offset + 1

    def acknowledge(self, metadata: RecordMetadata, planned: int) -> None:
        """Note what the broker said of the record planned for an offset."""
        if metadata.offset != planned:
            self.surprises.append(f"{self.name}: planned {planned}, acknowledged {metadata.offset}")
        self._acknowledged = max(self._acknowledged, metadata.offset + 1)

    def decide(self) -> None:
        """Note that the end of the open transaction is about to be asked for; it has one marker."""
        self._decided = self._next_offset
        self._markers.append(self._next_offset)
        self._next_offset += 1

    def settle(self, end_offset: int) -> None:
        """Note that the markers of all transactions below an offset are known to lie in the log."""
        self._stable = end_offset

    def mark(self) -> Mark:
        """Return how far the partition is now."""
        # In this order, since the writer goes on: what is promised first, what is allowed last.
        acknowledged, stable = self._acknowledged, self._stable
        decided, planned = self._decided, self._next_offset
        if self.is_transactional:
            return Mark(acknowledged, stable, decided, planned)
        return Mark(acknowledged, acknowledged, planned, planned)

    def between(self, start: int, end: int, *, committed: bool = False) -> list[Sent]:
        """Return the records with ``start <= offset < end`` that a reader is to see."""
        first = bisect_left(self.sent, start, key=_offset)
        last = bisect_left(self.sent, end, key=_offset)
        found = self.sent[first:last]
        return [each for each in found if each.is_committed] if committed else found

    def first_at_time(self, timestamp: int) -> Sent:
        """Return the first record at or after a time of which there is one."""
        return self.sent[bisect_left(self.sent, timestamp, key=lambda each: each.timestamp)]

    def lowest_at_time(self, timestamp: int) -> int:
        """Return the lowest offset that the log may give for a time: a marker counts as a record.

        A transaction's marker carries the broker's clock and may be later than records after it,
        which were stamped while they waited for it: those of the next transaction, not of more.
        """
        first = self.first_at_time(timestamp).offset
        before = bisect_left(self._markers, first)
        if not self.is_transactional:
            return first
        return self._markers[before - 2] if before >= 2 else 0


def _offset(sent: Sent) -> int:
    return sent.offset
