"""A partition that is served: its offsets, its epochs, and the bytes for a fetch.

============================= ==================================================================
offset                        what it is
============================= ==================================================================
log start offset              as `pylog.scan` has it
log end offset                after the last whole batch; where damage hides the end, one more than
                              what is in front of the damage, so that no client takes that for all
high watermark                the log end offset, as for a leader without other replicas; on request
                              that of the log directory's checkpoint
last stable offset            the first offset of the oldest transaction that is open at the high
                              watermark, at most the high watermark
leader epoch                  the latest one that the checkpoint, the last batch, or an earlier look
                              has: clients ignore a lower one than they have seen
============================= ==================================================================

Source: UnifiedLog.read, LocalLog.read, Partition.lastOffsetForLeaderEpoch, Partition.makeLeader
(Kafka 4.4).
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from pylog.errors import (
    CorruptRecordError,
    LogStorageError,
    OffsetOutOfRangeError,
    SegmentVanishedError,
    TooManyOpenFilesError,
    UnreadableFileError,
)
from pylog.files.leader_epochs import EpochEntry, end_offset_for
from pylog.locations import is_remote
from pylog.log_file.batch_walk import HIGHEST_OFFSET
from pylog.model import NO_PARTITION_LEADER_EPOCH
from pylog.reading.checked_windows import CheckedWindows
from pylog.reading.log_end import find_log_end
from pylog.reading.slicing import open_slice, slice_of
from pylog.server.log_transactions import LogTransactions, NotWalkedError
from pylog.server.protocol import NO_EPOCH, Errors
from pylog.server.rate_limited_log import server_logger
from pylog.server.segment_proof import BatchCache, NotProvedError, SegmentProof

if TYPE_CHECKING:
    from collections.abc import Callable

    from pylog.files.byte_source import ByteSource
    from pylog.model import AbortedTransaction, TopicPartition
    from pylog.reading.discovery import PartitionDirectory
    from pylog.reading.log_view import LogView
    from pylog.server.log_transactions import AbortedInSegment

_LOGGER = server_logger(__name__)
_MOST_LOOKS = 64
_KEPT_PROOFS = 4_000
_SHORT_WALK_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class LogOffsets:
    """The offsets of a partition at one moment (Kafka: LogOffsetSnapshot)."""

    log_start_offset: int
    log_end_offset: int
    high_watermark: int


class PartitionError(Exception):
    """An error code for one partition of a response."""

    def __init__(self, code: Errors) -> None:
        super().__init__(code)
        self.code = code


class ReadLog(NamedTuple):
    """The bytes and aborted transactions of a fetch (Kafka: LogReadInfo).

    ``next_offset`` is where proved batches end, if that is near, ``base_offset`` that of the one
    batch that is read where it says another one.
    """

    source: ByteSource | None
    position: int
    size_bytes: int
    aborted: tuple[AbortedTransaction, ...] | None = ()
    next_offset: int = -1
    base_offset: int | None = None


_NOTHING = ReadLog(None, 0, 0)


class SegmentKey(NamedTuple):
    """The file that a proof is about."""

    topic_partition: TopicPartition
    base_offset: int
    path: str
    file_id: int


class ProofCache:
    """The proofs of the segments that were used last; of fewer, the files are held open."""

    def __init__(self, max_files: int, *, each_time: bool = False) -> None:
        self._each_time = each_time
        self._batches = BatchCache()
        self._kept: OrderedDict[SegmentKey, SegmentProof] = OrderedDict()
        self._open: OrderedDict[SegmentKey, SegmentProof] = OrderedDict()
        self._max_files = max_files
        self._lock = threading.Lock()

    def of(self, key: SegmentKey) -> SegmentProof:
        """Return the proof of a segment."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                found = self._kept[key] = SegmentProof(
                    self._batches, key.path, each_time=self._each_time
                )
                if len(self._kept) > _KEPT_PROOFS:
                    dropped, _ = self._kept.popitem(last=False)
                    self._open.pop(dropped, None)
            else:
                self._kept.move_to_end(key)
            return found

    def forget(self, topic_partition: TopicPartition) -> None:
        """Forget all segments of a partition."""
        self.keep_only(lambda key: key.topic_partition != topic_partition)

    def has_opened(self, key: SegmentKey) -> None:
        """Give back the files that were used the longest ago, if too many are open."""
        with self._lock:
            proof = self._kept.get(key)
            if proof is not None and proof.source is not None:
                self._open[key] = proof
                self._open.move_to_end(key)
            while len(self._open) > self._max_files:
                self._open.popitem(last=False)[1].release()

    def release_all(self) -> None:
        """Give back all files, since others are needed."""
        with self._lock:
            while self._open:
                self._open.popitem()[1].release()

    def keep_only(self, is_current: Callable[[SegmentKey], bool]) -> None:
        """Forget the other segments: a deleted file takes its space on the disk while it is open.

        A response that is being sent holds its file by itself.
        """
        with self._lock:
            for key in [each for each in self._kept if not is_current(each)]:
                del self._kept[key]
                self._open.pop(key, None)


class Partition:
    """One partition, as a view shows it. A later view makes another one.

    Any number of threads. What needs a look at files is found at first use, by `load` and by the
    methods that say so; the others never block. ``open_view`` is called once; of a view with a
    damage report, damage is left out. ``transactions`` and ``least_epoch`` are what an earlier view
    of the same log has found, and what its clients were told.
    """

    def __init__(
        self,
        directory: PartitionDirectory,
        open_view: Callable[[], LogView],
        proofs: ProofCache,
        *,
        high_watermark: int | None = None,
        transactions: LogTransactions | None = None,
        least_epoch: int = 0,
    ) -> None:
        self.directory = directory
        self.topic_partition: TopicPartition = directory.topic_partition
        self._open_view = open_view
        self._proofs = proofs
        self.checkpointed_high_watermark = high_watermark
        self.transactions = transactions or LogTransactions()
        self._least_epoch = least_epoch
        self._lock = threading.Lock()
        self.offsets: LogOffsets | None = None
        self.last_stable_offset: int | None = None
        self.told_stable_offset: int | None = None
        self.unreadable: LogStorageError | None = None
        self.epochs: tuple[EpochEntry, ...] = ()
        self._base_offsets: list[int] = []
        self._ends: list[int] = []
        self._keys: dict[int, SegmentKey] = {}
        self._first_looks: dict[int, int] = {}  # by segment: see `SegmentProof.look`
        self._transactions: dict[int, AbortedInSegment] = {}
        self._walk_errors: dict[int | None, LogStorageError] = {}

    @cached_property
    def view(self) -> LogView:
        """The partition's segments; lists the directory."""
        return self._open_view()

    @property
    def is_loaded(self) -> bool:
        """Whether the log's offsets and epochs are loaded."""
        return self.offsets is not None

    def load(self) -> None:
        """Find offsets and epochs; reads the end of the log and small files."""
        if self.is_loaded:
            return
        with self._lock:
            if self.offsets is not None:
                return
            batch_epoch = NO_PARTITION_LEADER_EPOCH
            try:
                offsets = self._find_offsets()
                self._base_offsets = [each.base_offset for each in self.view.segments]
                self._ends = [self.view.segment_end(at) for at in range(len(self._base_offsets))]
                batch_epoch = _epoch_of_last_batch(self.view)
            except TooManyOpenFilesError:
                raise  # it will be found later
            except LogStorageError as error:
                self.unreadable = error
                offsets = LogOffsets(0, 0, 0)
            self.epochs = self._find_epochs(offsets.log_end_offset, batch_epoch)
            self.offsets = offsets

    @property
    def is_told(self) -> bool:
        """Whether `find_told_stable_offset` has been called."""
        return self.told_stable_offset is not None

    def find_told_stable_offset(self) -> None:
        """Find the last stable offset for clients that do not wait for a walk; after `load`.

        They are told -1 where the walk is long, whether or not others have waited for it.
        """
        told = None
        if self.unreadable is None and self._is_short_walk():
            with suppress(LogStorageError):  # who waits for a walk gets the error
                self._walk_to_high_watermark()
                told = self.last_stable_offset
        self.told_stable_offset = -1 if told is None else told

    def _is_short_walk(self) -> bool:
        """Whether a producer snapshot, or the log's start, is near the high watermark.

        In many partitions with many segments each, walks would keep the first records waiting.
        """
        watermark = self.known.high_watermark
        offsets = (each for each in self.view.producer_snapshot_offsets if each <= watermark)
        newest = max(offsets, default=0)
        if is_remote(self.directory.path):
            return False  # each look is a request
        is_in_last = not self._base_offsets or newest >= self._base_offsets[-1]
        return newest == watermark or (is_in_last and sum(self._ends[-1:]) <= _SHORT_WALK_BYTES)

    def _find_offsets(self) -> LogOffsets:
        view = self.view
        start = view.log_start_offset
        try:
            end = view.log_end_offset
        except CorruptRecordError:
            last = view.end.last
            bases = [0, *(each.base_offset for each in view.segments)]
            before = bases[-1] if last is None else last.header.next_offset
            end = max(start, before) + 1
        if view.damage is not None and view.segments:
            end = max(start, min(end, _readable_end(view)))
        watermark = self.checkpointed_high_watermark
        watermark = end if watermark is None else watermark
        return LogOffsets(start, end, min(max(watermark, start), end))

    def _find_epochs(self, log_end_offset: int, batch_epoch: int) -> tuple[EpochEntry, ...]:
        """Return the leader epochs as a leader has them; reads the checkpoint.

        A leader drops entries at or after the log's end, and adds one there for its own epoch,
        which is never below that of a batch.
        """
        checkpointed = self._checkpointed_epochs()
        known = [each for each in checkpointed if each.start_offset < log_end_offset]
        latest = max([self._least_epoch, batch_epoch, *(each.epoch for each in checkpointed)])
        if not known or known[-1].epoch < latest:
            known.append(EpochEntry(latest, log_end_offset))
        return tuple(known)

    def _checkpointed_epochs(self) -> list[EpochEntry]:
        try:
            return self.view.leader_epochs
        except TooManyOpenFilesError:
            raise
        except LogStorageError as error:
            _LOGGER.warning("%s: leader epochs are not known: %s", self.topic_partition, error)
            return []

    @property
    def leader_epoch(self) -> int:
        """The epoch that clients are told; see `load`, which this calls."""
        self.load()
        return self.epochs[-1].epoch

    @property
    def known(self) -> LogOffsets:
        """The offsets; `load` must have been called."""
        if self.offsets is None:
            raise AssertionError(f"{self.topic_partition} has not been loaded")
        if self.unreadable is not None:
            raise self.unreadable
        return self.offsets

    def find_last_stable_offset(self) -> int:
        """Return the last stable offset; `NotWalkedError` if the log must be read first."""
        if self.last_stable_offset is None:
            self._raise_for_walk(None, self._walk_to_high_watermark)
        return self.last_stable_offset

    def _walk_to_high_watermark(self) -> None:
        if self.last_stable_offset is not None:
            return  # a client asked just as the walk of another one came to its end
        offsets = self.known
        try:
            stable = self.transactions.last_stable_offset(self.view, offsets.high_watermark)
        except CorruptRecordError:
            # Nothing at or after the damage is served; in front of it, only what is decided
            # there.
            stable = offsets.log_end_offset
        self.last_stable_offset = min(stable, offsets.high_watermark)

    def _raise_for_walk(self, key: int | None, walk: Callable[[], None]) -> NoReturn:
        """Raise the error that a walk has met, or `NotWalkedError` to have it done."""
        error = self._walk_errors.get(key)
        if error is not None:
            raise error
        raise NotWalkedError(self.transactions, partial(self._walk, key, walk))

    def _walk(self, key: int | None, walk: Callable[[], None]) -> None:
        try:
            walk()
        except TooManyOpenFilesError:
            raise  # the next walk may succeed
        except LogStorageError as error:
            self._walk_errors[key] = error

    def end_offset_for(self, epoch: int) -> tuple[int, int]:
        """Return where a leader epoch ended (OffsetForLeaderEpoch)."""
        return end_offset_for(self.epochs, epoch, self.known.log_end_offset)

    def epoch_for_offset(self, offset: int) -> int | None:
        """Return the leader epoch under which an offset was written; None if it is not known."""
        at = bisect_right(self.epochs, offset, key=lambda each: each.start_offset)
        return self.epochs[at - 1].epoch if at else None

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        is_committed: bool,
        whole_batch: bool,
        is_fresh: bool = False,
    ) -> ReadLog:
        """Return the bytes for a fetch, if they can be told without a look at files.

        At `NotProvedError`, `prove` must be called, in a thread; then once more, ``is_fresh``.
        """
        offsets = self.known
        if not offsets.log_start_offset <= offset <= offsets.log_end_offset:
            raise OffsetOutOfRangeError(
                str(self.topic_partition), offset, offsets.log_start_offset, offsets.log_end_offset
            )
        limit = offsets.high_watermark
        if is_committed:
            if self.last_stable_offset is None:
                raise NotProvedError
            limit = self.last_stable_offset
        if offset >= limit:
            return _NOTHING
        if max_bytes < 0:  # as a broker, which finds it an illegal argument
            raise PartitionError(Errors.UNKNOWN_SERVER_ERROR)
        index = max(0, bisect_right(self._base_offsets, offset) - 1)
        while index < len(self._base_offsets):
            found = self._read_segment(
                index,
                offset,
                max_bytes,
                limit,
                is_committed=is_committed,
                whole_batch=whole_batch,
                is_fresh=is_fresh,
            )
            if found is not None:
                return found
            index += 1
        self.view.next_offset  # noqa: B018 - for its error: what follows is damage
        return _NOTHING

    def _read_segment(  # noqa: PLR0913 - what a fetch asks for
        self,
        index: int,
        offset: int,
        max_bytes: int,
        limit: int,
        *,
        is_committed: bool,
        whole_batch: bool,
        is_fresh: bool,
    ) -> ReadLog | None:
        proof = self._proof(index)
        source = proof.source  # it may be released at any time
        if is_committed and proof.has_transactions:
            limit = min(limit, self._decided_limit(index, offset))
        locate = partial(
            proof.locate,
            offset,
            whole_batch=whole_batch,
            end=self._ends[index],
            is_fresh=is_fresh,
        )
        found = locate(max_bytes, limit)
        may_read = max_bytes > 0 or whole_batch
        if found is not None and may_read and not (found.size_bytes or found.exceeds):
            # A broker bounds a fetch by a position, in the segment that the limit is in. So of a
            # segment before that, a batch that goes on above the limit is given.
            own = bisect_right(self._base_offsets, limit) - 1
            found = locate(1, HIGHEST_OFFSET) if own > index else found
        self._first_looks.setdefault(index, proof.look)
        if found is None:
            return None
        if found.size_bytes and source is None:
            raise NotProvedError
        if found.exceeds:
            return ReadLog(None, 0, 0, None)
        aborted: tuple[AbortedTransaction, ...] = ()
        if is_committed and found.has_transactions:
            known = self._transactions.get(index)
            if known is None:
                raise NotProvedError
            aborted = tuple(
                each
                for each in known.aborted
                if each.last_offset >= offset and each.first_offset < min(found.next_offset, limit)
            )
        ahead = -1 if found.is_ahead else found.next_offset
        return ReadLog(source, found.position, found.size_bytes, aborted, ahead, found.base_offset)

    def _decided_limit(self, index: int, offset: int) -> int:
        """Return up to where it is known which transactions were committed."""
        known = self._transactions.get(index)
        if known is None:
            raise NotProvedError
        if known.undecided_offset is None or known.error is None:
            return self.known.log_end_offset
        if offset >= known.undecided_offset:
            raise known.error
        return known.undecided_offset

    def prove(self, offset: int, max_bytes: int, *, is_committed: bool) -> None:
        """Have a look at what `read` needs; `NotWalkedError` if the log must be read first."""
        limit = self.known.high_watermark
        if is_committed:
            limit = self.find_last_stable_offset()
        index = max(0, bisect_right(self._base_offsets, offset) - 1)
        is_fresh = False
        for _ in range(_MOST_LOOKS):
            if index >= len(self._base_offsets):
                return
            proof = self._proof(index)
            if is_committed and proof.has_transactions and index not in self._transactions:
                self._raise_for_walk(index, partial(self._find_transactions, index))
            try:
                found = proof.locate(
                    offset,
                    max_bytes,
                    limit,
                    whole_batch=True,
                    end=self._ends[index],
                    is_fresh=is_fresh,
                )
            except NotProvedError:
                try:
                    outdated = proof.prove(self.view, index, offset, max_bytes, limit)
                except TooManyOpenFilesError:
                    self._proofs.release_all()
                    outdated = proof.prove(self.view, index, offset, max_bytes, limit)
                self._proofs.has_opened(self._key(index))
                since = self._first_looks.setdefault(index, proof.look)
                if outdated is not None and outdated >= since:
                    reason = "file holds other records since the directory was looked at"
                    path = self.view.segments[index].file_path()
                    raise SegmentVanishedError(reason, path) from None
                is_fresh = True
                continue
            if found is not None:
                return
            index += 1
            is_fresh = False

    def _proof(self, index: int) -> SegmentProof:
        return self._proofs.of(self._key(index))

    def _key(self, index: int) -> SegmentKey:
        key = self._keys.get(index)
        if key is None:
            segment = self.view.segments[index]
            path = segment.file_path()
            key = SegmentKey(self.topic_partition, segment.base_offset, path, segment.file_id)
            self._keys[index] = key
        return key

    def holds(self, key: SegmentKey) -> bool:
        """Return whether the view has that segment."""
        at = bisect_left(self._base_offsets, key.base_offset)
        return at < len(self._base_offsets) and self._key(at) == key

    def _find_transactions(self, index: int) -> None:
        if index not in self._transactions:
            self._transactions[index] = self.transactions.of_segment(self.view, index)


def check_epoch(partition: Partition, current_leader_epoch: int) -> None:
    """Raise `PartitionError` unless the client knows the leader epoch that Metadata tells."""
    if current_leader_epoch == NO_EPOCH:
        return
    epoch = partition.leader_epoch
    if current_leader_epoch < epoch:
        raise PartitionError(Errors.FENCED_LEADER_EPOCH)
    if current_leader_epoch > epoch:
        raise PartitionError(Errors.UNKNOWN_LEADER_EPOCH)


def _epoch_of_last_batch(view: LogView) -> int:
    last = view.end.last
    if last is None and len(view.segments) > 1:  # nothing has been written since the log was rolled
        with suppress(SegmentVanishedError, UnreadableFileError):
            last = find_log_end(view.segments[-2], skips_damage=True).last
    return NO_PARTITION_LEADER_EPOCH if last is None else last.header.partition_leader_epoch


def _readable_end(view: LogView) -> int:
    """Return the offset after the last batch that is served, of a view that leaves damage out.

    The end of the log is that of its last batch, whatever its count of records says, or that of the
    last segment's name, whatever is in it: clients would wait for records before it.
    """
    last, index = view.end.last, len(view.segments) - 1
    if last is None and view.segment_end(index) == 0:
        return view.next_offset
    if last is not None and last.header.record_count <= (
        last.header.next_offset - last.header.offset
    ):
        return view.next_offset
    while index >= 0:
        segment_slice = slice_of(view, index)
        opened = open_slice(segment_slice, view.damage)
        end = None
        if opened is not None:
            with opened as source:
                for window in CheckedWindows(
                    source, segment_slice, damage=view.damage, checks_counts=True
                ):
                    end = int(window.headers.last_offsets[-1]) + 1
        if end is not None:
            return end
        index -= 1
    return view.log_start_offset
