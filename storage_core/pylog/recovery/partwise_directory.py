"""A log directory that several tasks make, a partition each, and one process puts together.

==== ============================================ ==============================================
step what is done                                 what a crash after it leaves
==== ============================================ ==============================================
1    ``<to>.pylog-unfinished`` is made            that directory; the next call refuses until it
                                                  is removed
2    each task makes a log directory in it        the same
3    their partitions are moved into one, with    the same
     the checkpoints of all
4    that one is renamed to ``<to>``              the result, and an empty rest
==== ============================================ ==============================================
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from pylog.config.stored_topic_configs import TOPIC_CONFIGS, read_topic_configs, write_topic_configs
from pylog.files.checkpoint_file import read_offset_checkpoint, write_offset_checkpoint
from pylog.files.durable_io import DurableIO
from pylog.files.file_names import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    find_partition_directory_name,
)
from pylog.locations import join, parent_of
from pylog.writing.new_log_directory import UNFINISHED, ensure_empty

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Self

    from pylog.model import TopicPartition

_WHOLE = "whole"
_CHECKPOINTS = (
    *(RECOVERY_POINT_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT),
    *(LOG_START_OFFSET_CHECKPOINT, CLEANER_OFFSET_CHECKPOINT),
)


class PartPlaces(NamedTuple):
    """Where the tasks of a `PartwiseDirectory` make their log directories."""

    directory: str

    def of(self, topic_partition: TopicPartition, attempt: int = 0) -> str:
        """Return where an attempt of a task makes the one that has this partition alone."""
        return join(self.directory, f"{topic_partition}.{attempt}")


class PartwiseDirectory:
    """A log directory in the making; its place is empty until the ``with`` block ends.

    An error in the block leaves nothing. One process has it; `places` tells tasks where to write.

    Parameters
    ----------
    to
        The log directory to be made: it does not exist, or is empty.
    apart_from
        What is read, in which it must not lie.

    Examples
    --------
    >>> place = pylog.TopicPartition("orders", 0)
    >>> with pylog.jobs.PartwiseDirectory("parts") as parts:
    ...     done = pylog.jobs.extract("kafka/intact", to=parts.places.of(place), topics=["orders"],
    ...                               partitions=[0])
    ...     parts.take(done.to)
    >>> pylog.scan("parts", topics="orders").count()
    57
    """

    def __init__(
        self,
        to: str | os.PathLike[str],
        apart_from: Iterable[str | os.PathLike[str]] = (),
    ) -> None:
        self.to = ensure_empty(to, apart_from=apart_from, what="the result")
        self._unfinished = f"{self.to}{UNFINISHED}"
        self._io = DurableIO()
        self._parts: list[str] = []
        self._actions: list[Callable[[str], object]] = []

    @property
    def places(self) -> PartPlaces:
        """Where tasks write; small, and picklable."""
        return PartPlaces(self._unfinished)

    def take(self, place: str) -> None:
        """Have what is there in the result; what no call has named is left out."""
        self._parts.append(place)

    def then(self, action: Callable[[str], object]) -> None:
        """Have something done to the whole before it takes its place."""
        self._actions.append(action)

    def __enter__(self) -> Self:
        self._io.make_directory(self._unfinished)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is None:
            self._put_together()
        with suppress(OSError):  # a task that outlives its driver may still write
            shutil.rmtree(self._unfinished)

    def _put_together(self) -> None:
        io, whole, parts = self._io, join(self._unfinished, _WHOLE), self._parts
        io.make_directory(whole)
        for part in parts:
            self._move(part, whole)
        for name in _CHECKPOINTS:
            there = [each for part in parts if os.path.lexists(each := join(part, name))]
            found = map(read_offset_checkpoint, there)
            entries = {place: offset for each in found for place, offset in each.items()}
            if there:
                write_offset_checkpoint(io, join(whole, name), entries)
        configs: dict[str, dict[str, str]] = {}
        for part in parts:
            configs |= read_topic_configs(join(part, TOPIC_CONFIGS))
        if configs:
            write_topic_configs(io, join(whole, TOPIC_CONFIGS), configs)
        self._move_rest(parts, whole)
        for action in self._actions:
            action(whole)
        io.sync_directory(whole)
        io.replace(whole, self.to)
        io.sync_directory(parent_of(self.to) or os.curdir)

    def _move(self, part: str, whole: str) -> None:
        for name in sorted(os.listdir(part)):  # noqa: PTH208 - kept as text
            if find_partition_directory_name(name) is not None:
                self._io.replace(join(part, name), join(whole, name))

    def _move_rest(self, parts: Sequence[str], whole: str) -> None:
        """Move what is the same in all parts; the marker of a clean stop only if all have it."""
        merged = {*_CHECKPOINTS, TOPIC_CONFIGS, CLEAN_SHUTDOWN}
        for part in parts:
            for name in sorted(os.listdir(part)):  # noqa: PTH208 - kept as text
                there = join(whole, name)
                if name not in merged and not os.path.lexists(there):
                    self._io.replace(join(part, name), there)
        stopped = [join(part, CLEAN_SHUTDOWN) for part in parts]
        if stopped and all(map(os.path.lexists, stopped)):
            self._io.replace(stopped[0], join(whole, CLEAN_SHUTDOWN))
