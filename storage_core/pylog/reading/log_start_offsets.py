"""Where the logs of a directory start, as its ``log-start-offset-checkpoint`` says."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from pylog.files.checkpoint_file import read_offset_checkpoint
from pylog.files.file_names import LOG_START_OFFSET_CHECKPOINT
from pylog.locations import join

if TYPE_CHECKING:
    from pylog.model import TopicPartition


class LogStartOffsets:
    """What a log directory's ``log-start-offset-checkpoint`` says; read at the first question."""

    def __init__(self, log_directory: str) -> None:
        self._path = join(log_directory, LOG_START_OFFSET_CHECKPOINT)

    @cached_property
    def _offsets(self) -> dict[TopicPartition, int]:
        return read_offset_checkpoint(self._path)

    def find(self, topic_partition: TopicPartition) -> int | None:
        """Return the offset that the checkpoint has for a partition, None if it has none.

        Raises
        ------
        CorruptCheckpointError, UnreadableFileError
            The file does not follow its format, or cannot be read.
        """
        return self._offsets.get(topic_partition)
