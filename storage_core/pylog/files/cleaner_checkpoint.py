"""The ``cleaner-offset-checkpoint`` of a log directory that we own: how far each log is clean.

Below its entry a log has been cleaned. An entry that is too low costs work; one that lies above
records that were never cleaned loses the deletion of keys: their tombstones would be taken for
clean and dropped, and older records of these keys would come back. So entries are brought down
*before* a log's end goes back, and removed before a partition of the same name is made, whether
or not a cleaner runs.

Source: LogCleanerManager.updateCheckpoints, maybeTruncateCheckpoint (Kafka 4.3). Differs from
Kafka, which lowers entries after the truncation, and only while a cleaner runs.
"""

from __future__ import annotations

import logging
import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pylog.errors import CorruptCheckpointError
from pylog.files.checkpoint_file import read_offset_checkpoint, write_offset_checkpoint
from pylog.files.file_names import (
    CLEANER_OFFSET_CHECKPOINT,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from pylog.files.durable_io import DurableIO
    from pylog.files.log_dir_failure_channel import LogDirFailureChannel
    from pylog.model import TopicPartition

    IsOnlyReplica = Callable[[TopicPartition], bool]


_LOGGER = logging.getLogger(__name__)


class CleanerCheckpoint:
    """The checkpoint of one log directory. Any number of threads may read and change it.

    Its lock is held while the file is written; whoever holds it waits for no log.
    """

    def __init__(
        self,
        log_directory: str,
        io: DurableIO,
        failures: LogDirFailureChannel,
        partitions: Callable[[], Collection[TopicPartition]],
    ) -> None:
        self._log_directory = log_directory
        self._path = os.path.join(log_directory, CLEANER_OFFSET_CHECKPOINT)  # noqa: PTH118
        self._io = io
        self._failures = failures
        self._partitions = partitions
        self._offsets: dict[TopicPartition, int] = {}
        self._lock = threading.Lock()
        self._is_held_back = self._is_behind = False

    def load(self) -> None:
        """Read the file. One that does not follow the format counts as empty: all is dirty then."""
        try:
            self._offsets = read_offset_checkpoint(self._path)
        except CorruptCheckpointError as error:
            _LOGGER.log(self._io.warning_level, "taking a checkpoint for empty: %s", error)
            self._offsets = {}

    def offsets(self) -> dict[TopicPartition, int]:
        """Return the first dirty offset of each log that has been cleaned; a copy."""
        with self._lock:
            return dict(self._offsets)

    def find(self, topic_partition: TopicPartition) -> int | None:
        """Return the first dirty offset of a log, None if it has no entry."""
        return self._offsets.get(topic_partition)

    def offset(self, topic_partition: TopicPartition) -> int:
        """Return the first dirty offset of a log, 0 if it has no entry."""
        return self._offsets.get(topic_partition, 0)

    def hold_back(self) -> None:
        """Keep changes in memory until `write`: for whoever cleans thousands of logs in a row.

        After a crash these logs count as dirty again, which they may at any time.
        """
        self._is_held_back = True

    def write(self) -> None:
        """Write the entries that were held back."""
        with self._changing():
            if self._is_behind:
                self._is_held_back = False
                self._write(self._offsets)

    def update(self, topic_partition: TopicPartition, offset: int) -> None:
        """Note that a log is clean below ``offset``, and return when that is on the disk."""
        with self._changing():
            if self._offsets.get(topic_partition) != offset:
                self._write({**self._offsets, topic_partition: offset})

    def lower(self, topic_partition: TopicPartition, offset: int) -> None:
        """Bring a log's entry down to ``offset`` if it is higher; errors as of `update`."""
        with self._changing():
            if self._offsets.get(topic_partition, offset) > offset:
                self._write({**self._offsets, topic_partition: offset})

    def remove(self, topic_partition: TopicPartition) -> None:
        """Remove a log's entry if there is one; errors as of `update`."""
        with self._changing():
            if topic_partition in self._offsets:
                kept = {each: at for each, at in self._offsets.items() if each != topic_partition}
                self._write(kept)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        self._io.ensure_own_process(self._path)  # a fork may have copied a lock that is held
        with self._lock:
            yield

    def _write(self, offsets: dict[TopicPartition, int]) -> None:
        self._is_behind = self._is_held_back
        if self._is_held_back:
            self._offsets = offsets
            return
        present = set(self._partitions())
        offsets = {each: at for each, at in offsets.items() if each in present}
        with self._failures.watching(self._log_directory):
            write_offset_checkpoint(self._io, self._path, offsets)
        self._offsets = offsets
