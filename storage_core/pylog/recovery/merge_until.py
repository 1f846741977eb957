"""Where partitions of a merged result end that is to be as at one instant, or to end at an offset.

Of a partition that is the first record whose timestamp is not before the instant. Transactions are
whole across partitions: one is in the result in all its partitions, or committed in none.

============= ====================================================================================
a transaction is committed in the result if
============= ====================================================================================
ended before  its marker is before the end of the partition, and says so
open there    ``__transaction_state`` says that its coordinator had decided so by the instant. Where
              that says nothing of the producer: the end of another partition has the transaction's
              COMMIT marker before it, and this one has no ABORT marker of it further on
============= ====================================================================================

A partition that has more records of such a transaction behind its end is taken up to the
transaction's marker there, which may bring in others' markers: this is repeated until it holds. Of
what is open in the end, a marker is appended: COMMIT of what is committed, ABORT of the rest.

A marker is of the transaction that is open elsewhere if it has the epoch of the producer there, or
the next one (KIP-890), and was not written before that began: a producer begins none before all
markers of its last one are written.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.errors import InvalidRecordError
from pylog.internal_topics.transaction_state import TRANSACTION_STATES, transaction_records
from pylog.model import ControlRecordType, Timestamp
from pylog.reading.checked_windows import transactional_batches
from pylog.reading.open_transactions import END_TYPES
from pylog.record.record_batch import RecordBatch
from pylog.recovery.merged_log import windows_of
from pylog.recovery.partition_copy import first_offsets

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from pylog.comparison.lineage import Taken
    from pylog.comparison.replica_log import ReplicaLog
    from pylog.model import TopicPartition
    from pylog.record.batch_scan import Window

_COMMITTED = frozenset({"PrepareCommit", "CompleteCommit"})


class Marker(NamedTuple):
    """The end of a transaction in one partition."""

    offset: int
    kind: ControlRecordType
    producer_epoch: int
    timestamp: int


@dataclass(slots=True)
class OpenTransaction:
    """A transaction that has records before the end of a partition, and no marker.

    ``last_offset`` and ``marker`` are what the whole log has of it, also behind that end.
    """

    producer_id: int
    producer_epoch: int
    first_offset: int
    first_timestamp: int
    last_offset: int
    marker: Marker | None = None


@dataclass(slots=True)
class SeenTransactions:
    """What a partition has of transactions, seen from its end.

    Unlike `OpenTransactions` with epochs and times, which tell whose marker one elsewhere is.
    """

    open: dict[int, OpenTransaction] = field(default_factory=dict)
    last_commits: dict[int, Marker] = field(default_factory=dict)  # before the end, by producer


class LogCut(NamedTuple):
    """The end of a partition of the result.

    Attributes
    ----------
    wanted_offset, end_offset
        Where the instant or the offset says, and where it is so that transactions are whole.
    left_out, left_out_earlier
        How many records are behind that, and how many of them are before the instant: in batches
        whose timestamps are all before it.
    commits, aborts
        The transactions that get a marker.
    is_whole
        Whether the log has nothing from the instant or the offset on.
    """

    wanted_offset: int
    end_offset: int
    left_out: int
    left_out_earlier: int
    commits: tuple[OpenTransaction, ...]
    aborts: tuple[OpenTransaction, ...]
    is_whole: bool = False


class CutLog:
    """What is known of one partition of the result, whose end is looked for."""

    def __init__(self, replicas: Sequence[ReplicaLog], taken: Sequence[Taken]) -> None:
        self._replicas, self.taken = replicas, taken

    def windows(self) -> Iterator[Window]:
        """Yield its batches; valid until the next window."""
        for each in self.taken:
            yield from windows_of(self._replicas, each.stretch)

    @property
    def end_offset(self) -> int:
        """Where it would end without a cut."""
        return self.taken[-1].stretch.end_offset if self.taken else 0

    def offset_at(self, until: int | Timestamp) -> int:
        """Return where an instant is in it, or an offset."""
        if not isinstance(until, Timestamp):
            return min(until, self.end_offset)
        for each in self.taken:
            if each.stretch.max_timestamp < until.milliseconds:
                continue
            for window in windows_of(self._replicas, each.stretch):
                found = _first_at(window, until.milliseconds)
                if found is not None:
                    return found
        return self.end_offset

    def is_before(self, until: int | Timestamp) -> bool:
        """Whether it has nothing from an instant or an offset on."""
        if isinstance(until, Timestamp):
            return self.offset_at(until) == self.end_offset
        return self.end_offset < until

    def transactions(self, end_offset: int) -> SeenTransactions:
        """Return what it has of transactions, for an end."""
        found = SeenTransactions()
        for window in self.windows():
            headers = window.headers
            which, is_control, kinds = transactional_batches(window)
            rows = zip(
                headers.producer_ids[which].tolist(),
                headers.producer_epochs[which].tolist(),
                headers.offsets[which].tolist(),
                headers.last_offsets[which].tolist(),
                headers.max_timestamps[which].tolist(),
                is_control.tolist(),
                kinds.tolist(),
                strict=True,
            )
            for producer_id, epoch, first, last, timestamp, is_marker, kind in rows:
                if is_marker:
                    marker = Marker(first, ControlRecordType(kind), epoch, timestamp)
                    _end(found, producer_id, marker, end_offset)
                elif producer_id in found.open:
                    if found.open[producer_id].marker is None:
                        found.open[producer_id].last_offset = last
                elif first < end_offset:
                    found.open[producer_id] = OpenTransaction(
                        producer_id, epoch, first, timestamp, last
                    )
        return found

    def left_out(self, end_offset: int, until: int | Timestamp) -> tuple[int, int]:
        """Return how many records are behind an end, and how many of them before the instant."""
        records = earlier = 0
        for each in self.taken:
            if each.stretch.end_offset <= end_offset:
                continue
            for window in windows_of(self._replicas, each.stretch):
                headers = window.headers
                counts = np.where(headers.is_control, 0, headers.record_counts.clip(min=0))
                counts = np.minimum(counts, headers.last_offsets - end_offset + 1)
                behind = headers.last_offsets >= end_offset
                records += int(counts[behind].sum())
                if isinstance(until, Timestamp):
                    behind &= headers.max_timestamps < until.milliseconds
                    earlier += int(counts[behind].sum())
        return records, earlier

    def taken_until(self, end_offset: int) -> tuple[list[Taken], bytes | None]:
        """Return what is before an end, in whole batches, and the batch that the end cuts."""
        kept: list[Taken] = []
        for each in self.taken:
            stretch = each.stretch
            if stretch.end_offset <= end_offset:
                kept.append(each)
                continue
            if stretch.start_offset >= end_offset:
                break
            part, cut = replace(stretch, batches=0, records=0, size_bytes=0), None
            for window in windows_of(self._replicas, stretch):
                headers = window.headers
                whole = int(np.searchsorted(headers.last_offsets, end_offset))
                if whole:
                    part.batches += whole
                    part.records += int(headers.record_counts[:whole].clip(min=1).sum())
                    part.size_bytes += int(headers.sizes_bytes[:whole].sum())
                    part.end_offset = int(headers.last_offsets[whole - 1]) + 1
                if whole < len(headers):
                    if first_offsets(headers, stretch.start_offset)[whole] < end_offset:
                        window.read_batches(np.arange(len(headers)) == whole)
                        cut = bytes(window.bytes_of(whole))
                    break
            if part.batches:
                kept.append(each._replace(stretch=part))
            return kept, cut
        return kept, None


def _first_at(window: Window, instant_ms: int) -> int | None:
    headers = window.headers
    for at in np.flatnonzero(headers.max_timestamps >= instant_ms).tolist():
        window.read_batches(np.arange(len(headers)) == at)
        for record in RecordBatch(window.bytes_of(at)).records():
            if record.timestamp >= instant_ms:
                return record.offset
    return None


def _end(found: SeenTransactions, producer_id: int, marker: Marker, end_offset: int) -> None:
    if marker.kind not in END_TYPES:
        return
    if marker.offset < end_offset:
        found.open.pop(producer_id, None)
        if marker.kind is ControlRecordType.COMMIT:
            found.last_commits[producer_id] = marker
    elif producer_id in found.open and found.open[producer_id].marker is None:
        found.open[producer_id].marker = marker


class EndedLogs(NamedTuple):
    """Where logs end so that transactions are whole, and which of the open ones are committed."""

    ends: dict[TopicPartition, int]
    found: dict[TopicPartition, SeenTransactions]
    committed: dict[TopicPartition, set[int]]


def find_cuts(
    logs: Mapping[TopicPartition, CutLog],
    until: Mapping[TopicPartition, int | Timestamp],
    decided: Mapping[int, bool],
) -> dict[TopicPartition, LogCut]:
    """Return where partitions end, with transactions whole across them.

    ``decided`` has by producer what `decided_by` says.
    """

    def look(ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, SeenTransactions]:
        return {place: logs[place].transactions(end) for place, end in ends.items()}

    wanted = {place: log.offset_at(until[place]) for place, log in logs.items()}
    ended = whole_transactions(wanted, look(wanted), look, decided)
    left_out = {place: log.left_out(ended.ends[place], until[place]) for place, log in logs.items()}
    whole = {place for place, log in logs.items() if log.is_before(until[place])}
    return cuts_of(wanted, ended, left_out, whole)


def whole_transactions(
    wanted: Mapping[TopicPartition, int],
    found: Mapping[TopicPartition, SeenTransactions],
    look: Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, SeenTransactions]],
    decided: Mapping[int, bool],
) -> EndedLogs:
    """Return higher ends than are wanted where a committed transaction has more records.

    ``look`` tells what logs have of transactions for other ends.
    """
    ended = EndedLogs(dict(wanted), dict(found), {})
    while True:
        for place, one in ended.found.items():
            others = [other for other in ended.found.values() if other is not one]
            ended.committed[place] = {
                each.producer_id
                for each in one.open.values()
                if _is_committed(each, others, decided)
            }
        higher: dict[TopicPartition, int] = {}
        for place, producers in ended.committed.items():
            for producer_id in producers:
                each = ended.found[place].open[producer_id]
                if each.last_offset >= ended.ends[place]:
                    last = each.last_offset if each.marker is None else each.marker.offset
                    higher[place] = max(higher.get(place, 0), last + 1)
        if not higher:
            return ended
        ended.ends.update(higher)
        ended.found.update(look(higher))


def cuts_of(
    wanted: Mapping[TopicPartition, int],
    ended: EndedLogs,
    left_out: Mapping[TopicPartition, tuple[int, int]],
    whole: Collection[TopicPartition],
) -> dict[TopicPartition, LogCut]:
    """Return the cuts of logs with these ends."""
    cuts = {}
    for place, end in ended.ends.items():
        by_offset = sorted(ended.found[place].open.values(), key=lambda each: each.first_offset)
        producers = ended.committed[place]
        cuts[place] = LogCut(
            wanted[place],
            end,
            *left_out[place],
            tuple(each for each in by_offset if each.producer_id in producers),
            tuple(each for each in by_offset if each.producer_id not in producers),
            place in whole,
        )
    return cuts


def _is_committed(
    transaction: OpenTransaction,
    others: Iterable[SeenTransactions],
    decided: Mapping[int, bool],
) -> bool:
    known = decided.get(transaction.producer_id)
    if known is not None:
        return known
    own = transaction.marker
    if own is not None and own.kind is not ControlRecordType.COMMIT:
        return False
    for each in others:
        marker = each.last_commits.get(transaction.producer_id)
        if marker is None or marker.timestamp < transaction.first_timestamp:
            continue
        epochs = {transaction.producer_epoch, transaction.producer_epoch + 1}
        if own is not None:
            epochs = {own.producer_epoch}
        if marker.producer_epoch in epochs:
            return True
    return False


def decided_by(instant: Timestamp, logs: Iterable[CutLog]) -> dict[int, bool]:
    """Return by producer whether its last transaction was to be committed at an instant.

    As partitions of ``__transaction_state`` say; of what compaction has removed nothing is said.
    """
    reader = transaction_records()
    last: dict[str, tuple[int, bool]] = {}
    for log in logs:
        for window in log.windows():
            window.read_batches()
            for at in np.flatnonzero(~window.headers.is_control).tolist():
                for record in RecordBatch(window.bytes_of(at)).records():
                    if record.timestamp >= instant.milliseconds or record.key is None:
                        continue
                    value = None if record.value is None else bytes(record.value)
                    try:
                        found = reader.read(bytes(record.key), value)
                    except InvalidRecordError:
                        continue  # a later version's
                    name = found.key["transactionalId"]
                    if found.value is None:
                        last.pop(name, None)
                        continue
                    status = found.value["transactionStatus"]
                    is_known = 0 <= status < len(TRANSACTION_STATES)
                    state = TRANSACTION_STATES[status] if is_known else ""
                    last[name] = found.value["producerId"], state in _COMMITTED
    return dict(last.values())
