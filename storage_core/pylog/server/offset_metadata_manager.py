"""`OffsetMetadataManager`: what groups have committed, in memory and, if asked, in a file.

It begins with what the served directory's ``__consumer_offsets`` says; what is committed to this
server replaces it, and stays in memory or in the file of ``--offsets``. The directory is never
changed.

The file is a segment of ``__consumer_offsets``: v2 batches with the records that a broker writes
there, a tombstone where offsets are deleted. ``pylog dump`` and ``kafka-dump-log`` read it. Of each
key the last record counts; the file is rewritten as a whole when it is opened, and when most of it
is out of date.

==================================== ===========================================================
step                                 a crash after it leaves
==================================== ===========================================================
the first commit, a rewriting        the old file or the new one, whole (`DurableIO`)
a batch is written at the end        it whole, or part of it: no answer has been sent yet
the file is synced                   the batch; commits are answered from here on
==================================== ===========================================================

So nothing but the last batch can be torn. A batch that is broken and has others after it is damage,
and a file that does not begin with a batch is somebody else's: both are refused and left alone.

Source: OffsetMetadataManager, GroupCoordinatorRecordHelpers.newOffsetCommitRecord (Kafka 4.4).
"""

from __future__ import annotations

import asyncio
import fcntl
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from pylog.errors import (
    CorruptRecordError,
    InvalidRecordError,
    LogLockedError,
    LogStorageError,
    SegmentVanishedError,
)
from pylog.files.durable_io import DurableIO
from pylog.internal_topics.consumer_offsets import (
    OFFSET_COMMIT,
    group_records,
)
from pylog.internal_topics.group_state import StoredOffset
from pylog.internal_topics.offset_commits import offset_commit_key, offset_commit_value
from pylog.record.batch_header import (
    MAGIC_OFFSET,
    MAGIC_VALUE_V2,
    RECORD_BATCH_OVERHEAD,
    peek_entry_size,
)
from pylog.record.record_batch import RecordBatch
from pylog.record.record_batch_builder import RecordBatchBuilder
from pylog.server.group_config import GroupError
from pylog.server.protocol import Errors
from pylog.server.rate_limited_log import server_logger

if TYPE_CHECKING:
    import os
    import uuid
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pylog.admin.consumer_groups import GroupListing
    from pylog.files.writable_file import WritableFile

    Places = dict[tuple[str, int], StoredOffset]

_LOGGER = server_logger(__name__)
_BATCH_RECORDS = 1_000
_MAX_BATCH_BYTES = 64 << 20
"""More than 1,000 records with names and metadata of the longest can have."""
_LEAST_REWRITTEN_BYTES = 1 << 20
_GROWTH = 4
"""The file is rewritten when it is so many times as long as it was."""
_OFFSET_BYTES = 300


class CommitKey(NamedTuple):
    """The group and the partition that an offset is committed for."""

    group_id: str
    topic: str
    partition: int


class _Change(NamedTuple):
    """Commits that wait for the file, and who waits for them."""

    offsets: Mapping[CommitKey, StoredOffset | None]
    is_stored: asyncio.Future[None]


class OffsetMetadataManager:
    """Committed offsets of all groups. One thread, that of the event loop.

    The caller opens and closes the file; without one, offsets are in memory alone.
    """

    def __init__(self, file: OffsetsFile | None = None) -> None:
        self._file = file
        self._offsets: dict[str, Places] = {}
        self._size_bytes = 0
        self._waiting: list[_Change] = []
        self._writer: asyncio.Task[None] | None = None

    def load(
        self,
        listing: GroupListing | None,
        topic_id: Callable[[str], uuid.UUID | None] = lambda _: None,
    ) -> None:
        """Begin with what a directory says; what the file says comes before it.

        ``topic_id`` returns the id of the topic that has a name now.
        """
        for group in listing.groups if listing is not None else ():
            for each in group.offsets:
                if each.offset is not None and not each.is_of_earlier_topic:
                    self._set(
                        CommitKey(group.group_id, each.topic, each.partition),
                        StoredOffset(
                            each.offset,
                            each.leader_epoch,
                            each.metadata or "",
                            -1 if each.commit_timestamp is None else each.commit_timestamp,
                            topic_id(each.topic),
                        ),
                    )
        if self._file is not None:
            for key in self._file.deleted:
                self._set(key, None)
            for key, offset in self._file.offsets.items():
                self._set(key, offset)

    @property
    def group_ids(self) -> list[str]:
        """The groups that have committed offsets."""
        return list(self._offsets)

    def of_group(self, group_id: str) -> Places:
        """Return what a group has committed, by topic and partition."""
        return self._offsets.get(group_id, {})

    def ensure_room(self, offsets: Mapping[CommitKey, StoredOffset | None], max_bytes: int) -> None:
        """Raise `GroupError` if all that is committed would take more memory than is allowed."""
        added = sum(
            _size_of(each) - _size_of(self.of_group(key.group_id).get((key.topic, key.partition)))
            for key, each in offsets.items()
        )
        if added > 0 and self._size_bytes + added > max_bytes:
            message = (
                f"committed offsets take {self._size_bytes} bytes, at most {max_bytes} are kept"
            )
            _LOGGER.warning("a commit is refused: %s", message)
            raise GroupError(Errors.COORDINATOR_NOT_AVAILABLE, message)

    async def commit(self, offsets: Mapping[CommitKey, StoredOffset | None]) -> None:
        """Return when offsets are committed (None deletes one), or raise `GroupError`: none is."""
        if self._file is None:
            self._apply(offsets)
            return
        loop = asyncio.get_running_loop()
        change = _Change(offsets, loop.create_future())
        self._waiting.append(change)
        if self._writer is None:
            self._writer = loop.create_task(self._write_waiting(self._file))
        await change.is_stored

    async def _write_waiting(self, file: OffsetsFile) -> None:
        """Store what waits, all of it with one sync, until nothing waits."""
        while self._waiting:
            changes, self._waiting = self._waiting, []
            merged = {key: each for change in changes for key, each in change.offsets.items()}
            failure = None
            try:
                await asyncio.to_thread(file.store, merged)
                self._apply(merged)
            except LogStorageError as error:
                # What is wrong, not where in the code it was found.
                message = "offsets are not stored, and clients are told so: %s"
                _LOGGER.error(message, error)  # noqa: TRY400
                # Clients try again: there may be room on the disk by then.
                failure = GroupError(Errors.COORDINATOR_NOT_AVAILABLE, str(error))
            for change in changes:
                if change.is_stored.done():
                    continue  # its client is gone
                if failure is None:
                    change.is_stored.set_result(None)
                else:
                    change.is_stored.set_exception(failure)
        self._writer = None

    async def close(self) -> None:
        """Return when nothing is being written."""
        if self._writer is not None:
            await self._writer

    def _apply(self, offsets: Mapping[CommitKey, StoredOffset | None]) -> None:
        for key, offset in offsets.items():
            self._set(key, offset)

    def _set(self, key: CommitKey, offset: StoredOffset | None) -> None:
        places = self._offsets.setdefault(key.group_id, {})
        before = places.pop((key.topic, key.partition), None)
        self._size_bytes += _size_of(offset) - _size_of(before)
        if offset is not None:
            places[key.topic, key.partition] = offset
        if not places:
            del self._offsets[key.group_id]


def _size_of(offset: StoredOffset | None) -> int:
    """Return the memory that a committed offset takes, estimated."""
    return 0 if offset is None else _OFFSET_BYTES + sys.getsizeof(offset.metadata)


class OffsetsFile:
    """Committed offsets in a file of their own, as a context manager. One thread at a time.

    ``<path>.lock`` keeps other servers out.
    """

    def __init__(self, path: str | os.PathLike[str], io: DurableIO | None = None) -> None:
        self.path = str(path)
        self.offsets: dict[CommitKey, StoredOffset] = {}
        self._io = io or DurableIO()
        self._lock: WritableFile | None = None
        self._file: WritableFile | None = None
        self._end = 0
        self._rewritten_bytes = 0
        self._next_offset = 0
        self._is_consistent = True
        self._tombstones: dict[CommitKey, None] = {}

    def __enter__(self) -> Self:
        lock = self._io.open(f"{self.path}.lock", create=True)
        try:
            fcntl.flock(lock.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            reason = "another server has this file of offsets: stop it, or give another file"
            raise LogLockedError(reason, self.path) from error
        self._lock = lock
        self._read()
        return self

    def __exit__(self, *_error: object) -> None:
        for file in (self._file, self._lock):
            if file is not None:
                file.close()
        self._file = self._lock = None

    def store(self, changes: Mapping[CommitKey, StoredOffset | None]) -> None:
        """Return when offsets are on the disk; None deletes one.

        After an error they are not, `offsets` is as before, and the next call begins a new file.
        """
        limit = max(_LEAST_REWRITTEN_BYTES, _GROWTH * self._rewritten_bytes)
        if self._file is None or not self._is_consistent or self._end > limit:
            self._rewrite({**self._tombstones, **self.offsets, **changes})
        else:
            self._append(self._file, changes)
        for key, offset in changes.items():
            self.offsets.pop(key, None)
            self._tombstones.pop(key, None)
            if offset is None:
                self._tombstones[key] = None
            else:
                self.offsets[key] = offset

    @property
    def deleted(self) -> frozenset[CommitKey]:
        """What was deleted here, and may be committed in the served directory."""
        return frozenset(self._tombstones)

    def _append(self, file: WritableFile, changes: Mapping[CommitKey, StoredOffset | None]) -> None:
        self._is_consistent = False
        for data in self._batches(changes.items()):
            # One at a time: a batch that is torn must be the last.
            file.write_at(self._end, data)
            file.sync()
            self._end += len(data)
        self._is_consistent = True

    def _rewrite(self, last: Mapping[CommitKey, StoredOffset | None]) -> None:
        """Replace the file by one that has the last record of each key, tombstones, too."""
        self._is_consistent = False
        self._next_offset = 0
        data = b"".join(self._batches(last.items()))
        self._io.write_atomically(self.path, data)
        if self._file is not None:
            self._file.close()
        self._file = self._io.open(self.path)
        self._end = self._rewritten_bytes = len(data)
        self._is_consistent = True

    def _batches(self, changes: Iterable[tuple[CommitKey, StoredOffset | None]]) -> Iterator[bytes]:
        """Yield records in batches of a bounded size."""
        records = [
            (offset_commit_key(key.group_id, key.topic, key.partition), offset)
            for key, offset in changes
        ]
        for start in range(0, len(records), _BATCH_RECORDS):
            builder = RecordBatchBuilder(base_offset=self._next_offset)
            for key, offset in records[start : start + _BATCH_RECORDS]:
                value = None if offset is None else offset_commit_value(offset)
                builder.append(max(offset.commit_timestamp, -1) if offset else -1, key, value)
            self._next_offset = builder.next_offset
            yield builder.build()

    def _read(self) -> None:
        """Take in the file, if there is one, and rewrite it."""
        try:
            file = self._io.open(self.path)
        except SegmentVanishedError:
            return
        if not file.size():  # replaced as a whole, too, by the first commit
            file.close()
            return
        self._file = file
        reader = group_records()
        for batch in self._intact_batches(file):
            for record in batch.records():
                try:
                    found = reader.read(record.key or b"", record.value)
                except InvalidRecordError as error:
                    raise self._not_ours(error.reason) from error
                if found.type_id != OFFSET_COMMIT:
                    raise self._not_ours(f"a record of type {found.type_id}")
                self._take(found.key, found.value)
        self._rewrite({**self._tombstones, **self.offsets})

    def _take(self, key_fields: dict[str, Any], value: dict[str, Any] | None) -> None:
        key = CommitKey(key_fields["group"], key_fields["topic"], key_fields["partition"])
        self._tombstones.pop(key, None)
        self.offsets.pop(key, None)
        if value is None:
            self._tombstones[key] = None
        else:
            self.offsets[key] = StoredOffset.of(value)

    def _intact_batches(self, file: WritableFile) -> Iterator[RecordBatch]:
        """Yield all batches but a torn last one."""
        position, size = 0, file.size()
        while position < size:
            try:
                data = self._read_batch(file, position, size)
                batch = RecordBatch(data)
                batch.ensure_valid()
            except CorruptRecordError as error:
                if position == 0:
                    raise self._not_ours(error.reason) from error
                if not self._is_torn(file, position, size):
                    reason = (
                        f"{error.reason}; batches follow it, so it was not cut short by a crash. "
                        "Repair the file from a copy, or move it away to begin without it"
                    )
                    raise CorruptRecordError(reason, self.path, position) from error
                _LOGGER.warning(
                    "%s: the last %d bytes were not written as a whole and are dropped; no client "
                    "was told that they are stored",
                    self.path,
                    size - position,
                )
                return
            yield batch
            position += len(data)

    def _read_batch(self, file: WritableFile, position: int, size: int) -> bytes:
        head = file.read_at(position, RECORD_BATCH_OVERHEAD)
        if len(head) < RECORD_BATCH_OVERHEAD:
            reason = f"only {len(head)} bytes where a batch header should be"
            raise CorruptRecordError(reason, self.path, position)
        length = peek_entry_size(head)
        if length > min(size - position, _MAX_BATCH_BYTES):
            reason = f"batch of {length} bytes does not end before byte {size}"
            raise CorruptRecordError(reason, self.path, position)
        return file.read_at(position, length)

    def _is_torn(self, file: WritableFile, position: int, size: int) -> bool:
        """Whether no intact batch follows the broken one at ``position``.

        Of a batch that was written last, any part may be missing, its length, too.
        """
        if size - position > _MAX_BATCH_BYTES:
            return False
        rest = memoryview(file.read_at(position, size - position))
        for start in range(1, len(rest) - RECORD_BATCH_OVERHEAD + 1):
            if rest[start + MAGIC_OFFSET] != MAGIC_VALUE_V2:
                continue
            try:
                RecordBatch(rest[start:]).ensure_valid()
            except LogStorageError:
                continue
            return False
        return True

    def _not_ours(self, reason: str) -> CorruptRecordError:
        return CorruptRecordError(
            f"not a file of committed offsets ({reason}): give another one", self.path
        )
