"""Where the high watermark of each log in a log directory starts.

* Has the checkpoint an entry for the log: at that offset, or as near as the log's start and end
  allow.
* Has it none, or is there no checkpoint: at the log's start, since Kafka takes a missing entry as
  0 (OffsetCheckpoints.fetch, Partition.createLog).
* Is the directory the log's only replica: at the log's end, since a leader without other replicas
  raises it as soon as it leads (Partition.maybeIncrementLeaderHW).

A log has no other replica where the cluster's metadata says so, where the user does, and in a
directory of pylog's own. That is one in which pylog made the first log: it has a file
``.pylog-only-replica``, which counts as long as no broker has taken the directory over. Every
broker since 0.8.2 writes ``meta.properties`` before it makes or opens a log.

So a crash of pylog in a directory of its own, which leaves a checkpoint that is behind the log's
end, holds nothing back. In a broker's directory it does: there the checkpoint is all that tells
what the other replicas have.

Source: Partition, UnifiedLog.updateHighWatermark (Kafka 4.3).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import CorruptCheckpointError
from pylog.files import disk
from pylog.files.checkpoint_file import read_offset_checkpoint
from pylog.files.file_names import (
    HIGH_WATERMARK_CHECKPOINT,
    META_PROPERTIES,
    ONLY_REPLICA,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pylog.files.durable_io import DurableIO
    from pylog.model import TopicPartition

    IsOnlyReplica = Callable[[TopicPartition], bool]


HIGH_WATERMARKS = ("checkpoint", "log-end")
"""Where a high watermark may start: as said above, or at the log's end."""
_CONTENT = b"pylog made this log directory: its logs have no other replicas, until a broker runs\n"


def is_own_directory(log_directory: str) -> bool:
    """Whether pylog made the first log in a directory, and no broker has taken it over."""
    return _has(log_directory, ONLY_REPLICA) and not _has(log_directory, META_PROPERTIES)


def is_known_to_a_broker(log_directory: str) -> bool:
    """Whether a broker has opened a directory, or it is formatted for one."""
    return _has(log_directory, META_PROPERTIES) or _has(log_directory, HIGH_WATERMARK_CHECKPOINT)


def mark_as_own(io: DurableIO, log_directory: str) -> None:
    """Note for good that pylog makes the first log in a directory."""
    path = os.path.join(log_directory, ONLY_REPLICA)  # noqa: PTH118 - kept as text
    io.write_file(path, _CONTENT, sync=True)
    io.sync_directory(log_directory)


def _has(log_directory: str, name: str) -> bool:
    return disk.lexists(os.path.join(log_directory, name))  # noqa: PTH118 - kept as text


class HighWatermarks(NamedTuple):
    """The start of the high watermark of each log in one log directory."""

    checkpoint: Mapping[TopicPartition, int]
    is_only_replica: IsOnlyReplica

    @classmethod
    def read(cls, log_directory: str, is_only_replica: IsOnlyReplica) -> HighWatermarks:
        """Return those of a directory; a checkpoint that cannot be parsed counts as empty."""
        path = os.path.join(log_directory, HIGH_WATERMARK_CHECKPOINT)  # noqa: PTH118
        try:
            checkpoint = read_offset_checkpoint(path)
        except CorruptCheckpointError:
            checkpoint = {}
        is_own = is_own_directory(log_directory)
        return cls(checkpoint, (lambda _: True) if is_own else is_only_replica)

    def start_of(
        self, topic_partition: TopicPartition, log_start_offset: int, log_end_offset: int
    ) -> int:
        """Return where a log's high watermark starts, in ``[log start, log end]``."""
        checkpoint = self.checkpoint.get(topic_partition, 0)
        if checkpoint >= log_end_offset or self.is_only_replica(topic_partition):
            return log_end_offset
        return max(log_start_offset, checkpoint)
