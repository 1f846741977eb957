"""`OffsetMetadataManager`: what groups have committed, in memory and, if asked, in a file.

It begins with what the served directory's ``__consumer_offsets`` says; what is committed to this
server replaces it, and stays in memory or in the file of ``--offsets``. The directory is never
changed.

Source: OffsetMetadataManager (Kafka 4.4).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import LogStorageError
from pylog.internal_topics.group_state import StoredOffset
from pylog.server.group_config import GroupError
from pylog.server.offsets_file import CommitKey
from pylog.server.protocol import Errors

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Mapping

    from pylog.admin.consumer_groups import GroupListing
    from pylog.server.offsets_file import OffsetsFile

    Places = dict[tuple[str, int], StoredOffset]

_LOGGER = logging.getLogger(__name__)
_OFFSET_BYTES = 300


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
    """Return what an offset takes in memory, about."""
    return 0 if offset is None else _OFFSET_BYTES + len(offset.metadata)
