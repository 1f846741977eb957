"""What one partition holds, as whoever wrote to it knows it, and so what consumers must find.

Nothing here comes from what was written by: offsets are counted, times and bytes are the test's.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tests.support.batches import Stored

if TYPE_CHECKING:
    from collections.abc import Iterable

ISOLATIONS = ("read_uncommitted", "read_committed")

_NONE = -1
_WORDS = ("ash", "birch", "cedar", "elm", "hazel", "larch", "oak", "pine", "rowan", "spruce", "yew")


class ProducerState(NamedTuple):
    """One producer of a partition as DescribeProducers tells it; -1 where there is nothing."""

    producer_id: int
    epoch: int
    last_sequence: int
    transaction_start: int


@dataclass(eq=False)
class Producer:
    """A producer as one partition knows it; ``open_offsets`` are its undecided transaction's."""

    producer_id: int
    epoch: int = 0
    next_sequence: int = 0
    open_offsets: list[int] = field(default_factory=list)

    @property
    def state(self) -> ProducerState:
        """What a broker must tell of it."""
        start = self.open_offsets[0] if self.open_offsets else _NONE
        return ProducerState(self.producer_id, self.epoch, self.next_sequence - 1, start)


@dataclass
class PartitionAccount:
    """What partition 0 of a topic holds.

    Attributes
    ----------
    topic
        Its name.
    records
        All but control records, also those below the log start.
    markers
        Offset and timestamp of every transaction marker.
    aborted
        Offsets of the records of aborted transactions.
    log_start_offset, log_end_offset
        First offset served, and the offset of the next record.
    producers
        All that the partition knows.
    """

    topic: str
    records: list[Stored] = field(default_factory=list)
    markers: list[tuple[int, int]] = field(default_factory=list)
    aborted: set[int] = field(default_factory=set)
    log_start_offset: int = 0
    log_end_offset: int = 0
    producers: list[Producer] = field(default_factory=list)

    @property
    def last_stable_offset(self) -> int:
        """Where consumers that read committed have to stop."""
        starts = [each.open_offsets[0] for each in self.producers if each.open_offsets]
        return min(starts, default=self.log_end_offset)

    @property
    def states(self) -> list[ProducerState]:
        """What a broker must tell of the producers, by their ids."""
        return sorted(each.state for each in self.producers)

    def visible(self, isolation: str, start_offset: int = 0) -> list[Stored]:
        """Return what a consumer gets from ``start_offset`` on."""
        start = max(start_offset, self.log_start_offset)
        found = [each for each in self.records if each.offset >= start]
        if isolation == "read_uncommitted":
            return found
        end = self.last_stable_offset
        return [each for each in found if each.offset < end and each.offset not in self.aborted]

    def offset_at(self, timestamp: int) -> int | None:
        """Return the first offset served, of a record or a marker, at that time or later."""
        stamped = [(each.offset, each.timestamp) for each in self.records] + self.markers
        found = [offset for offset, stamp in stamped if stamp >= timestamp]
        return min((each for each in found if each >= self.log_start_offset), default=None)

    def enter(self, records: Iterable[Stored], producer: Producer | None = None) -> None:
        """Note records that were appended, and who sent them."""
        entered = list(records)
        self.records += entered
        self.log_end_offset = entered[-1].offset + 1
        if producer is not None:
            producer.next_sequence += len(entered)
            if producer not in self.producers:
                self.producers.append(producer)

    def enter_marker(self, producer: Producer, timestamp: int, *, is_commit: bool) -> None:
        """Note the marker of a producer's transaction at the end of the partition."""
        if not is_commit:
            self.aborted |= set(producer.open_offsets)
        producer.open_offsets.clear()
        self.markers.append((self.log_end_offset, timestamp))
        self.log_end_offset += 1

    def cut(self, end_offset: int, last_kept_end: int) -> None:
        """Take out what is not below ``last_kept_end``; the log goes on at ``end_offset``."""
        self.records = [each for each in self.records if each.offset < last_kept_end]
        self.log_end_offset = end_offset


def record_at(offset: int, timestamp: int, *, size: int = 40) -> Stored:
    """Return the record that stands at ``offset``: keys, values and headers of all kinds."""
    chance = random.Random(offset)
    key = None if offset % 7 == 3 else b"" if offset % 7 == 5 else b"key %d" % (offset % 50)
    words = " ".join(chance.choices(_WORDS, k=2 + chance.randrange(size // 4)))
    value = None if offset % 11 == 4 else b"" if offset % 11 == 6 else words.encode()
    headers = (
        (("source", b"test"), ("empty", b""), ("null", None), ("bytes", chance.randbytes(9)))
        if offset % 3 == 0
        else ()
    )
    return Stored(offset, timestamp, key, value, headers[: 1 + offset % 4])
