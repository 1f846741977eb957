"""`follow`: a log directory that others write, looked at again and again.

The cost is that of what has changed. A partition directory whose time of change is that of the last
look holds the same files, and a newest ``.log`` whose length and time are the same ends where it
did. Where it has grown, the walk continues from the last batch that was known, after a look at
whether that batch is still there.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pylog.errors import (
    LogDirectoryError,
)
from pylog.files import disk
from pylog.files.file_names import LOG_START_OFFSET_CHECKPOINT
from pylog.files.looks import Looks
from pylog.files.storage import change_mark
from pylog.lazy_modules import LazyModule
from pylog.locations import is_remote, join
from pylog.model import EARLIEST, IsolationLevel, check_specs, spec_for
from pylog.reading.damage import ReadMode
from pylog.reading.discovery import LogStartOffsets, discover_all
from pylog.reading.followed_partition import FollowedLog, FollowedPartition
from pylog.reading.log_directory import LogDirectory, TopicChoice
from pylog.reading.pending_commit import PendingCommit
from pylog.reading.replicas import one_of_each
from pylog.reading.segments import DEFAULT_ACCESS, FileAccess

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    from pylog.model import IsolationName, OffsetSpecs, TopicPartition
    from pylog.reading import (
        offset_resolution,  # imports NumPy
    )
    from pylog.reading.damage import ReadModeName
    from pylog.reading.discovery import PartitionDirectory
else:
    offset_resolution = LazyModule("pylog.reading.offset_resolution")


_LOGGER = logging.getLogger(__name__)


class FollowedDirectory:
    """The partitions under some paths, with the offsets that each has by now; `follow` makes it.

    A look at partitions in which nothing has changed costs a few system calls for each, however
    many segments they have. Read-only; one thread may use it.

    Attributes
    ----------
    directory
        The partitions as the last look has shown them, for `pylog.scan`.
    """

    def __init__(  # noqa: PLR0913 - what `follow` has
        self,
        paths: Iterable[str | os.PathLike[str]],
        choice: TopicChoice,
        *,
        isolation: IsolationLevel,
        mode: ReadMode,
        include_stray: bool,
        replica: str | int | os.PathLike[str] | None,
        access: FileAccess = DEFAULT_ACCESS,
    ) -> None:
        self._paths = list(paths)
        self._choice = choice
        self._is_committed = isolation is IsolationLevel.READ_COMMITTED
        self._access = access
        self._skips_damage = mode.skips_damage
        self._include_stray = include_stray
        self._replica = replica
        self._known: dict[str, PartitionDirectory] = {}
        self._partitions: dict[TopicPartition, FollowedPartition] = {}
        self._starts: dict[str, tuple[object, LogStartOffsets]] = {}
        self._pending: dict[str, PendingCommit] = {}
        self._logs: dict[TopicPartition, FollowedLog] = {}
        self._rewritten: dict[TopicPartition, int] = {}  # until it has been said
        self.directory = LogDirectory(())

    def refresh(self) -> dict[TopicPartition, FollowedLog]:
        """Return every partition as it is now, new ones included, in topic and partition order.

        Raises
        ------
        LogStorageError
            A directory cannot be listed, or where a log ends is not known because of damage.
        """
        looks = Looks()
        while True:
            directories = one_of_each(
                discover_all(self._paths, known=self._known),
                include_stray=self._include_stray,
                replica=self._replica,
                tells=not self._known,
            )
            self._known = {each.path: each for each in directories}
            live = [each for each in directories if each.is_live(include_stray=self._include_stray)]
            chosen = [each for each in live if each in self._choice]
            self._partitions = {each.topic_partition: self._followed(each) for each in chosen}
            try:
                self._logs = self._look_at(chosen)
            except LogDirectoryError as error:
                if not any(_is_gone(each) for each in chosen):
                    raise
                looks.again(error)
            else:
                break
        self.directory = LogDirectory(
            directories,
            include_stray=self._include_stray,
            views={each: log.view for each, log in self._logs.items()},
        )
        return dict(self._logs)

    def _look_at(self, chosen: Sequence[PartitionDirectory]) -> dict[TopicPartition, FollowedLog]:
        """Return all partitions with what is pending at one moment: a job is seen as a whole."""
        above = {each.log_directory for each in chosen}
        rewritten = self._rewritten
        looks = Looks()
        while True:
            pending = {each: self._pending_in(each) for each in above}
            starts = {each: self._log_start_offsets(each) for each in above}
            logs: dict[TopicPartition, FollowedLog] = {}
            for directory in chosen:
                above_it = directory.log_directory
                log = self._look(directory, starts[above_it], pending[above_it])
                each = directory.topic_partition
                if log.rewritten_below is not None:  # said once: the next look knows the new log
                    rewritten[each] = max(log.rewritten_below, rewritten.get(each, 0))
                logs[each] = log
            if not any(each.has_changed() for each in pending.values()):
                self._rewritten = {}
                return {
                    each: log._replace(rewritten_below=rewritten.get(each))
                    for each, log in logs.items()
                }
            reason = "commits of jobs come and go faster than all partitions can be looked at"
            looks.again(LogDirectoryError(reason, sorted(above)[0]))

    def _look(
        self, directory: PartitionDirectory, starts: LogStartOffsets, pending: PendingCommit
    ) -> FollowedLog:
        return self._partitions[directory.topic_partition].look(starts, pending)

    def _pending_in(self, log_directory: str) -> PendingCommit:
        """Return what is pending; the object of the last look if nothing has changed."""
        known = self._pending.get(log_directory)
        if known is None or known.has_changed():
            known = self._pending[log_directory] = PendingCommit(log_directory)
        return known

    def resolve(
        self,
        start: OffsetSpecs,
        default: str = EARLIEST,
        *,
        fail_on_data_loss: bool = True,
    ) -> dict[TopicPartition, int]:
        """Return the offsets that positions stand for, as the last look has shown the partitions.

        Parameters
        ----------
        start
            As for `pylog.scan`.
        default
            The position in partitions that ``start`` does not name.
        fail_on_data_loss
            Whether an offset outside the log is an error, or gives way to the nearest one.

        Raises
        ------
        LogStorageError
            A position cannot be resolved.
        ValueError
            A position is given for a partition that is not there.
        """
        check_specs(start, list(self._logs))
        resolved = {}
        for topic_partition, log in self._logs.items():
            spec = spec_for(start, topic_partition, default)
            if not fail_on_data_loss:
                spec = offset_resolution.clip(spec, log.view)
            resolved[topic_partition] = offset_resolution.resolve_start(
                spec, log.view, log.end_offset
            )
        return resolved

    def _followed(self, directory: PartitionDirectory) -> FollowedPartition:
        known = self._partitions.get(directory.topic_partition)
        if known is not None and known.goes_on_in(directory):
            return known
        return FollowedPartition(
            directory,
            self._access,
            is_committed=self._is_committed,
            skips_damage=self._skips_damage,
        )

    def _log_start_offsets(self, log_directory: str) -> LogStartOffsets:
        """Return the checkpoint's content; the object of the last look if nothing has changed."""
        places = (log_directory, join(log_directory, LOG_START_OFFSET_CHECKPOINT))
        marks = tuple(change_mark(each) for each in places)
        known = self._starts.get(log_directory)
        if known is None or marks[0] is None or marks != known[0]:
            known = self._starts[log_directory] = marks, LogStartOffsets(log_directory)
        return known[1]


def _is_gone(directory: PartitionDirectory) -> bool:
    return not is_remote(directory.path) and not disk.lexists(directory.path)


def follow(  # noqa: PLR0913 - keyword-only options, those of `pylog.scan`
    *paths: str | os.PathLike[str],
    topics: Iterable[str] | None = None,
    assign: Mapping[str, Iterable[int]] | None = None,
    pattern: str | None = None,
    isolation: IsolationName | IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    mode: ReadModeName | ReadMode = ReadMode.FAILFAST,
    include_stray: bool = False,
    replica: str | int | os.PathLike[str] | None = None,
    use_indexes: bool = True,
) -> FollowedDirectory:
    """Return a log directory that can be looked at again and again for what is new.

    Nothing is read before the first `FollowedDirectory.refresh`.

    Parameters
    ----------
    *paths
        Log directories, topic-partition directories, or several of them.
    topics, assign, pattern
        Which partitions, as for `pylog.scan`, at most one of them. What is chosen need not be there
        yet, and may go.
    isolation
        What ends a log: "read_uncommitted" its last batch, "read_committed" the first record of a
        transaction that is open.
    mode
        "FAILFAST", or one of the modes that pass over damage.
    include_stray, replica, use_indexes
        As for `open_directory` and `pylog.scan`.

    Raises
    ------
    ValueError
        An argument makes no sense.

    Examples
    --------
    >>> followed = pylog.follow("kafka/intact", topics=["orders"])
    >>> {str(each): log.end_offset for each, log in followed.refresh().items()}
    {'orders-0': 60, 'orders-1': 49}
    """
    return FollowedDirectory(
        paths,
        TopicChoice.of(topics=topics, assign=assign, pattern=pattern),
        isolation=IsolationLevel.parse(isolation),
        mode=ReadMode.parse(mode),
        include_stray=include_stray,
        replica=replica,
        access=FileAccess(use_indexes=use_indexes),
    )
