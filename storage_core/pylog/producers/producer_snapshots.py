"""The producer snapshot files of one partition: which there are, and which may go.

===================== ===========================================================
step                  what a crash in it leaves, and what happens then
===================== ===========================================================
write a snapshot      a short file: its checksum is wrong, so loading deletes it
                      and takes the next older snapshot
rename to .deleted    one of both names; start-up deletes ``*.deleted`` files
delete                nothing, or the file: a stray, deleted when the log is loaded
===================== ===========================================================

Source: ProducerStateManager, SnapshotFile (Kafka 4.3).
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from pylog.errors import KafkaStorageError
from pylog.files import disk
from pylog.files.file_names import (
    DELETED_FILE_SUFFIX,
    PRODUCER_SNAPSHOT_FILE_SUFFIX,
    file_name_prefix,
    find_segment_file_name,
)
from pylog.files.producer_snapshot import read_producer_snapshot, write_producer_snapshot

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pylog.files.durable_io import DurableIO
    from pylog.files.producer_snapshot import ProducerStateEntry


class ProducerSnapshots:
    """Offsets of the snapshots in a directory; an offset is known if and only if its file is ours.

    Changes files and knowledge together. Guarded by the log's lock.
    """

    def __init__(self, directory: str, io: DurableIO) -> None:
        self._directory = directory
        self._io = io
        self._offsets: set[int] = set()
        self.reload()

    def reload(self) -> None:
        """Know the snapshots that are in the directory now."""
        suffix = PRODUCER_SNAPSHOT_FILE_SUFFIX
        try:
            with disk.scandir(self._directory) as entries:
                names = [e.name for e in entries if e.name.endswith(suffix) and e.is_file()]
        except FileNotFoundError:
            names = []
        except OSError as error:
            reason = f"I/O error on listing the directory: {error.strerror}"
            raise KafkaStorageError(reason, self._directory, errno=error.errno) from error
        file_names = (find_segment_file_name(name) for name in names)
        self._offsets = {
            each.base_offset
            for each in file_names
            if each is not None and (each.suffix, each.state) == (suffix, "")
        }

    def move_to(self, directory: str) -> None:
        """Look for the files in ``directory``, to which the partition has been renamed."""
        self._directory = directory

    @property
    def offsets(self) -> list[int]:
        """Offsets of all snapshots, ascending."""
        return sorted(self._offsets)

    @property
    def latest_offset(self) -> int | None:
        """Offset of the newest snapshot, None if there is none."""
        return max(self._offsets, default=None)

    @property
    def oldest_offset(self) -> int | None:
        """Offset of the oldest snapshot, None if there is none."""
        return min(self._offsets, default=None)

    def find(self, offset: int) -> str | None:
        """Return the path of the snapshot at ``offset``, None if there is none."""
        return self._path(offset) if offset in self._offsets else None

    def read(self, offset: int) -> list[ProducerStateEntry]:
        """Return the entries of the snapshot at ``offset``; errors of `read_producer_snapshot`."""
        return read_producer_snapshot(self._path(offset))

    def write(self, offset: int, entries: Iterable[ProducerStateEntry], *, sync: bool) -> str:
        """Write a snapshot and return its path; with ``sync``, it survives a power failure."""
        path = self._path(offset)
        write_producer_snapshot(self._io, path, entries, sync=sync)
        self._offsets.add(offset)
        return path

    def remove(self, offsets: Iterable[int]) -> None:
        """Delete the snapshots at ``offsets``; those that are gone already do not matter."""
        for offset in offsets:
            self._io.remove(self._path(offset), missing_ok=True)
            self._offsets.discard(offset)

    def remove_strays(self, segment_base_offsets: Collection[int]) -> None:
        """Delete every snapshot where no segment begins, but the one of a clean shutdown."""
        self.reload()
        strays = sorted(self._offsets - set(segment_base_offsets))
        if strays and strays[-1] >= max(segment_base_offsets, default=0):
            strays.pop()
        self.remove(strays)

    def mark_for_deletion(self, offset: int) -> str | None:
        """Append ``.deleted`` to a snapshot's name and forget it; return its path now."""
        if offset not in self._offsets:
            return None
        path = self._path(offset)
        marked = path + DELETED_FILE_SUFFIX
        try:
            self._io.replace(path, marked)
        except KafkaStorageError as error:
            if error.errno != errno.ENOENT:
                raise
            self._offsets.discard(offset)
            return None
        self._offsets.discard(offset)
        return marked

    def _path(self, offset: int) -> str:
        name = file_name_prefix(offset) + PRODUCER_SNAPSHOT_FILE_SUFFIX
        return os.path.join(self._directory, name)  # noqa: PTH118 - kept as text
