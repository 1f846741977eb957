"""What a partition must and may hold after it was compacted, as whoever appended to it knows.

Nothing here comes from what cleaned it: offsets, transactions and times are counted along.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.support.batch_parser import ParsedBatch, split_batches
from tests.support.batches import COMMIT, Built, Stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Fact = tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]
"""What of a record never changes: timestamp, key, value, headers. Formats and offsets apart."""

OpenTransactions = dict[int, list[Built]]
"""The batches of each producer whose transaction is not decided."""

NO_SEQUENCE = -1
_FOREVER = 2**62


def fact(record: Stored) -> Fact:
    """Return what must be the same after a record was copied."""
    return record.timestamp, record.key, record.value, record.headers


@dataclass
class _Tombstone:
    """When it may go: a while after the round that first had it within its reach."""

    is_old_format: bool
    horizon_ms: int = _FOREVER


@dataclass
class Cleaning:
    """A round: when it was, and which offsets it had in its map, copied, and could reach."""

    now_ms: int
    first_dirty_offset: int
    next_dirty_offset: int
    first_uncleanable_offset: int


@dataclass
class KeyedAccount:
    """What was appended to a partition, and how it was cleaned.

    Attributes
    ----------
    delete_retention_ms
        ``delete.retention.ms``.
    start, end
        The log's start and end.
    sequences
        The last sequence number of each producer, -1 after a marker of a new epoch.
    last_data_offsets
        The offset of each producer's last batch.
    """

    delete_retention_ms: int
    start: int = 0
    end: int = 0
    sequences: dict[int, int] = field(default_factory=dict)
    last_data_offsets: dict[int, int] = field(default_factory=dict)
    _epochs: dict[int, int] = field(default_factory=dict)
    _records: dict[int, Stored] = field(default_factory=dict)
    _offsets_of_key: dict[bytes, list[int]] = field(default_factory=lambda: defaultdict(list))
    _open: list[OpenTransactions] = field(default_factory=lambda: [{}])
    """What the log may know of transactions that are not decided; the most it may know first."""
    _aborted: dict[int, int] = field(default_factory=dict)
    """The offset of the marker, by that of the record."""
    _tombstones: dict[int, _Tombstone] = field(default_factory=dict)
    _cleaned_to: int = 0
    _known: dict[bytes, Built] = field(default_factory=dict)

    def append(self, batches: Iterable[Built]) -> None:
        """Note what was appended."""
        for built in batches:
            self._known[built.data] = built
            self.end = built.last_offset + 1
            self._follow_producer(built)
            if built.is_control:
                ended = [known.pop(built.producer_id, []) for known in self._open]
                if built.control_type != COMMIT:
                    offsets = (record.offset for each in ended[0] for record in each.records)
                    self._aborted.update(dict.fromkeys(offsets, built.base_offset))
                continue
            for record in built.records:
                self._records[record.offset] = record
                if record.key is not None:
                    self._offsets_of_key[record.key].append(record.offset)
                if record.value is None:
                    self._tombstones[record.offset] = self._tombstone(built)
            if built.is_transactional:
                for known in self._open:
                    known.setdefault(built.producer_id, []).append(built)

    @staticmethod
    def _tombstone(built: Built) -> _Tombstone:
        if built.magic < 2:
            return _Tombstone(is_old_format=True)
        horizon = ParsedBatch.of(built.data).delete_horizon
        return _Tombstone(is_old_format=False, horizon_ms=_FOREVER if horizon is None else horizon)

    def _follow_producer(self, built: Built) -> None:
        if built.producer_id < 0:
            return
        parsed = ParsedBatch.of(built.data)
        if built.is_control:
            if parsed.producer_epoch > self._epochs.get(built.producer_id, -1):
                self.sequences[built.producer_id] = NO_SEQUENCE
                self.last_data_offsets[built.producer_id] = built.base_offset
        else:
            self.sequences[built.producer_id] = parsed.last_sequence
            self.last_data_offsets[built.producer_id] = built.last_offset
        self._epochs[built.producer_id] = parsed.producer_epoch

    def delete_below(self, offset: int) -> None:
        """Note that the log starts at ``offset`` from now on, if that is further on."""
        self.start = max(self.start, offset)

    @property
    def last_stable_offset(self) -> int:
        """Where the oldest open transaction begins, else the end; all below is decided."""
        return self._stable_offset(self._open[0])

    def _stable_offset(self, known: OpenTransactions) -> int:
        first = min((batches[0].base_offset for batches in known.values()), default=self.end)
        return max(first, self.start)

    def may_have_forgotten(self) -> None:
        """Take note that the log was opened again, maybe without a snapshot of its producers.

        Of an open transaction it knows what lies above the log's start then, and maybe something
        below, down to where it began to read.
        """
        most = self._open[0]
        ends = {each.last_offset + 1 for batches in most.values() for each in batches}
        for cut in sorted(end for end in ends if end <= self.start):
            rest = {
                producer_id: [each for each in batches if each.last_offset >= cut]
                for producer_id, batches in most.items()
            }
            self._open.append({each: batches for each, batches in rest.items() if batches})

    def observe_stable_offset(self, offset: int) -> None:
        """Hold a log's last stable offset against those that it may have."""
        self._open = [known for known in self._open if self._stable_offset(known) == offset]
        assert self._open, f"the last stable offset is {offset}"

    def is_aborted(self, offset: int) -> bool:
        """Whether a record belongs to a transaction that was aborted."""
        return offset in self._aborted

    def read(self, data: bytes) -> list[Built]:
        """Return the batches of a ``.log``, those that nobody changed as they were appended."""
        return [self._known.get(raw) or _as_built(raw) for raw in split_batches(data)]

    def committed_state(self, below: int) -> dict[bytes, tuple[int, bytes | None]]:
        """Return each key's last decided offset and value in ``[start, below)``; None: deleted."""
        state = {}
        for key in self._offsets_of_key:
            offset = self._last_of(key, below)
            if offset is not None:
                state[key] = (offset, self._records[offset].value)
        return state

    def _last_of(self, key: bytes, below: int) -> int | None:
        for offset in reversed(self._offsets_of_key[key]):
            if offset < self.start:
                return None
            if offset < below and offset not in self._aborted:
                return offset
        return None

    def problems(self, batches: Sequence[Built], cleaning: Cleaning) -> Iterator[str]:
        """Find what is wrong with what a round of cleaning has left."""
        held = [record for each in batches if not each.is_control for record in each.records]
        yield from self._changed_records(held)
        offsets = {record.offset for record in held}
        yield from self._lost_records(offsets, cleaning)
        yield from self._superfluous_records(offsets, cleaning)
        self._settle(cleaning)

    def _changed_records(self, held: Sequence[Stored]) -> Iterator[str]:
        last = -1
        for record in held:
            if record.offset <= last:
                yield f"offset {record.offset} comes after {last}"
            last = record.offset
            appended = self._records.get(record.offset)
            if appended is None or fact(appended) != fact(record):
                yield f"{record} was appended as {appended}"

    def _lost_records(self, held: set[int], cleaning: Cleaning) -> Iterator[str]:
        stable = self.last_stable_offset
        for offset, record in self._records.items():
            if offset in held or offset < self.start or offset in self._aborted:
                continue
            above = max(cleaning.next_dirty_offset, self._cleaned_to)
            if offset >= min(stable, above):
                yield f"{record} is lost, though nothing above offset {above} was cleaned"
            elif record.key is None:
                continue
            elif self._last_of(record.key, stable) == offset and not (
                record.value is None and self._may_go(offset, cleaning)
            ):
                yield f"{record} is lost, the last of its key"

    def _may_go(self, offset: int, cleaning: Cleaning) -> bool:
        tombstone = self._tombstones[offset]
        if tombstone.is_old_format and self.delete_retention_ms == 0:
            return True  # file times decide, which are equal here
        return cleaning.now_ms >= tombstone.horizon_ms

    def _superfluous_records(self, held: set[int], cleaning: Cleaning) -> Iterator[str]:
        end = cleaning.next_dirty_offset
        for key, offsets in self._offsets_of_key.items():
            mapped = [
                offset
                for offset in offsets
                if cleaning.first_dirty_offset <= offset < end and offset not in self._aborted
            ]
            if mapped:
                for offset in held.intersection(each for each in offsets if each < mapped[-1]):
                    yield f"offset {offset} is kept, though key {key!r} has {mapped[-1]}"
        for offset in held:
            if offset >= end:
                continue
            if self._records[offset].key is None:
                yield f"offset {offset} is kept, which has no key"
            if offset >= self.start and offset in self._aborted:
                yield f"offset {offset} is kept, which was aborted"

    def _settle(self, cleaning: Cleaning) -> None:
        """Let tombstones wait from the first round on that could reach them."""
        self._cleaned_to = max(self._cleaned_to, cleaning.next_dirty_offset)
        horizon = cleaning.now_ms + self.delete_retention_ms
        for offset, tombstone in self._tombstones.items():
            if offset < cleaning.first_uncleanable_offset:
                tombstone.horizon_ms = min(tombstone.horizon_ms, horizon)


def _as_built(raw: bytes) -> Built:
    parsed = ParsedBatch.of(raw)
    records = tuple(parsed.records())
    control_type = None
    if parsed.is_control:
        # An emptied marker ends nothing.
        control_type = records[0].key[3] if records and records[0].key else -1
    return Built(
        raw,
        records,
        2,
        parsed.base_offset,
        parsed.last_offset,
        parsed.max_timestamp,
        parsed.producer_id,
        parsed.is_transactional,
        control_type,
        parsed.codec,
    )
