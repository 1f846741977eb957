"""Random histories of a compacted partition: one log, and replicas that are cleaned at other times.

A model of Kafka's cleaner decides what each replica keeps, see Cleaner.shouldRetainRecord: below
what it has mapped, the last record of each key; tombstones and markers until their time is over; no
record of an aborted transaction, and none without a key. It shares nothing with the packages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.support.batches import ABORT, COMMIT, Built, Stored, batch_v2, empty_batch_v2, marker
from tests.support.log_files import write_topic_id
from tests.support.replica_histories import PARTITION, TOPIC_ID, write_epochs

if TYPE_CHECKING:
    import random
    from pathlib import Path

_START_MS = 1_700_000_000_000
_RETENTION = 20  # of tombstones, in steps of the history


@dataclass
class Batch:
    """A batch of the log, as its leader has written it."""

    records: list[Stored]
    epoch: int
    producer: int | None = None
    kind: int | None = None  # of a marker
    is_aborted: bool = False
    is_ended: bool = True
    first_of_transaction: int = 0

    @property
    def base(self) -> int:
        return self.records[0].offset

    @property
    def last(self) -> int:
        return self.records[-1].offset


@dataclass
class Kept:
    """What a replica has of a batch."""

    batch: Batch
    records: list[Stored]
    horizon: int | None = None

    def built(self) -> Built:
        batch = self.batch
        if batch.kind is not None:
            (record,) = batch.records
            return marker(
                record.offset,
                batch.kind,
                producer_id=batch.producer or 0,
                timestamp=record.timestamp,
                leader_epoch=batch.epoch,
            )
        if not self.records:
            return empty_batch_v2(batch.base, batch.last, producer_id=batch.producer or 0)
        return batch_v2(
            self.records,
            base_offset=batch.base,
            last_offset=batch.last,
            base_timestamp=batch.records[0].timestamp,
            delete_horizon=None if self.horizon is None else _START_MS + self.horizon,
            leader_epoch=batch.epoch,
            producer_id=-1 if batch.producer is None else batch.producer,
            producer_epoch=-1 if batch.producer is None else 0,
            is_transactional=batch.producer is not None,
        )


@dataclass
class Cleaned:
    """A replica: its segments, each with its base offset."""

    segments: list[tuple[int, list[Kept]]] = field(default_factory=lambda: [(0, [])])
    end: int = 0

    def clean(self, log: list[Batch], now: int, random: random.Random) -> None:
        """Clean the segments before the active one, up to the first open transaction."""
        here = [each for each in log if each.last < self.end]
        open_ones = [each.first_of_transaction for each in here if not _ended(each, self.end, log)]
        end = min([self.segments[-1][0], *open_ones])
        bases = [base for base, _ in self.segments if base < end]
        if bases and random.random() < 0.3:
            end = min(end, random.choice(bases))
        last: dict[bytes, int] = {}
        for each in here:
            if each.kind is None and not each.is_aborted and each.last < end:
                last |= {one.key: one.offset for one in each.records if one.key is not None}
        with_data: set[int] = set()
        cleaned: list[tuple[int, list[Kept]]] = []
        for base, kept in self.segments:
            if not kept or kept[-1].batch.last >= end or base == self.segments[-1][0]:
                cleaned.append((base, kept))
                continue
            left = [one for one in (self._left(each, last, with_data, now) for each in kept) if one]
            if cleaned and sum(map(len, (cleaned[-1][1], left))) < random.randrange(1, 12):
                cleaned[-1][1].extend(left)
            else:
                cleaned.append((base, left))
        self.segments = cleaned

    def _left(
        self, kept: Kept, last: dict[bytes, int], with_data: set[int], now: int
    ) -> Kept | None:
        batch, is_past = kept.batch, kept.horizon is not None and kept.horizon <= now
        if batch.kind is not None:
            producer = batch.producer or 0
            has_data = producer in with_data
            with_data.discard(producer)
            if has_data:
                return kept
            if is_past:
                return None
            until = now + _RETENTION if kept.horizon is None else kept.horizon
            return Kept(batch, kept.records, until)
        if batch.producer is not None and kept.records:
            with_data.add(batch.producer)
        records = [
            one
            for one in kept.records
            if not batch.is_aborted
            and one.key is not None
            and last.get(one.key, -1) <= one.offset
            and (one.value is not None or not is_past)
        ]
        if not records:
            return None
        horizon = kept.horizon
        if horizon is None and any(one.value is None for one in records):
            horizon = now + _RETENTION
        return Kept(batch, records, horizon)


def _ended(batch: Batch, end: int, log: list[Batch]) -> bool:
    if batch.producer is None or batch.kind is not None:
        return True
    return any(
        each.kind is not None and each.producer == batch.producer and batch.last < each.base < end
        for each in log
    )


@dataclass
class CompactedHistory:
    """The log, and what each replica has of it."""

    log: list[Batch]
    replicas: list[Cleaned]
    epochs: list[tuple[int, int]]

    def follow(self, random: random.Random) -> None:
        """Let some followers fetch all that there is."""
        for each in self.replicas[1:]:
            if random.random() < 0.8:
                _fetch(each, self.log, random)

    def last_of_keys(self) -> dict[bytes, Stored]:
        """Return the last committed record of each key, tombstones among them."""
        return {
            one.key: one
            for each in self.log
            if each.kind is None and not each.is_aborted and each.is_ended
            for one in each.records
            if one.key is not None
        }


def random_compacted_history(random: random.Random) -> CompactedHistory:
    """Return one of three replicas."""
    history = CompactedHistory([], [Cleaned() for _ in range(3)], [(0, 0)])
    leader = _Leader(history, random)
    steps = random.randrange(10, 60)
    for step in range(steps):
        kind = random.random()
        if kind < 0.6:
            for _ in range(random.randrange(1, 5)):
                leader.append(step)
        elif kind < 0.75:
            history.follow(random)
        elif kind < 0.95:
            random.choice(history.replicas).clean(history.log, step, random)
        else:
            leader.is_elected_again()
    history.follow(random)
    late = steps + random.choice([0, 5, 100])
    for each in history.replicas:
        for _ in range(random.randrange(3)):
            each.clean(history.log, late, random)
            late += random.choice([0, 50])
    for never_ended in leader.open.values():
        for batch in never_ended:
            batch.is_ended = False
    return history


class _Leader:
    """Who appends to the log, plainly and in transactions of two producers."""

    def __init__(self, history: CompactedHistory, random: random.Random) -> None:
        self._history, self._random = history, random
        self._keys = [b"k%d" % each for each in range(random.choice([3, 8, 20]))]
        self._producers: list[int | None] = random.choice([[None], [None, 5, 6]])
        self._most = random.choice([1, 4])
        self.open: dict[int, list[Batch]] = {}

    def is_elected_again(self) -> None:
        log, epochs = self._history.log, self._history.epochs
        if log and log[-1].epoch == epochs[-1][0]:
            epochs.append((epochs[-1][0] + 1, log[-1].last + 1))

    def append(self, step: int) -> None:
        random, log = self._random, self._history.log
        base, now = (log[-1].last + 1 if log else 0), _START_MS + step
        epoch, producer = self._history.epochs[-1][0], random.choice(self._producers)
        if producer is not None and producer in self.open and random.random() < 0.4:
            kind = random.choice([COMMIT, COMMIT, ABORT])
            for each in self.open.pop(producer):
                each.is_aborted = kind == ABORT
            log.append(Batch([Stored(base, now, None, None)], epoch, producer, kind))
        else:
            records = []
            for offset in range(base, base + random.randrange(1, self._most + 1)):
                key = None if random.random() < 0.03 else random.choice(self._keys)
                value = None if random.random() < 0.25 else b"%d-%d" % (epoch, offset)
                records.append(Stored(offset, now, key, value))
            batch = Batch(records, epoch, producer, first_of_transaction=base)
            if producer is not None:
                self.open.setdefault(producer, []).append(batch)
                batch.first_of_transaction = self.open[producer][0].base
            log.append(batch)
        _fetch(self._history.replicas[0], log, random)


def _fetch(replica: Cleaned, log: list[Batch], random: random.Random) -> None:
    for each in log:
        if each.base >= replica.end:
            if replica.segments[-1][1] and random.random() < 0.15:
                replica.segments.append((each.base, []))
            replica.segments[-1][1].append(Kept(each, list(each.records)))
            replica.end = each.last + 1


def write_cleaned(history: CompactedHistory, replica: Cleaned, log_directory: Path) -> Path:
    """Write the partition directory of a replica into a log directory; return it."""
    directory = log_directory / PARTITION
    directory.mkdir(parents=True)
    for base, kept in replica.segments:
        (directory / f"{base:020d}.log").write_bytes(b"".join(each.built().data for each in kept))
    write_epochs(directory, [each for each in history.epochs if each[1] <= replica.end])
    write_topic_id(directory, TOPIC_ID)
    (log_directory / "cleaner-offset-checkpoint").write_text(
        f"0\n1\norders 0 {replica.segments[-1][0]}\n"
    )
    return directory
