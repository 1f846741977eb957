"""`follow`: a log directory that others write, looked at again and again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pylog.errors import LogDirectoryError
from pylog.files.file_names import LOG_START_OFFSET_CHECKPOINT
from pylog.files.storage import change_mark
from pylog.lazy_modules import LazyModule
from pylog.locations import join
from pylog.model import IsolationLevel
from pylog.positions import EARLIEST, check_specs, spec_for
from pylog.reading.damage import ReadMode
from pylog.reading.discovery import discover_all
from pylog.reading.followed_partition import FollowedPartition
from pylog.reading.log_directory import LogDirectory
from pylog.reading.log_start_offsets import LogStartOffsets
from pylog.reading.pending_commit import PendingCommit
from pylog.reading.topic_choice import TopicChoice

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    from pylog.model import TopicPartition
    from pylog.positions import OffsetSpecs
    from pylog.reading import offset_resolution  # imports NumPy
    from pylog.reading.discovery import PartitionDirectory
    from pylog.reading.followed_partition import FollowedLog
else:
    offset_resolution = LazyModule("pylog.reading.offset_resolution")

_MOST_LOOKS = 20


class FollowedDirectory:
    """The partitions under some paths, with the offsets that each has by now; `follow` makes it.

    A look at partitions in which nothing has changed costs a few system calls for each, however
    many segments they have. Read-only; one thread may use it.

    Attributes
    ----------
    directory
        The partitions as the last look has shown them, for `pylog.scan`.
    """

    def __init__(
        self,
        paths: Iterable[str | os.PathLike[str]],
        choice: TopicChoice,
        *,
        isolation: IsolationLevel,
        mode: ReadMode,
        include_stray: bool,
        use_indexes: bool,
    ) -> None:
        self._paths = list(paths)
        self._choice = choice
        self._is_committed = isolation is IsolationLevel.READ_COMMITTED
        self._skips_damage = mode.skips_damage
        self._include_stray = include_stray
        self._use_indexes = use_indexes
        self._known: dict[str, PartitionDirectory] = {}
        self._partitions: dict[TopicPartition, FollowedPartition] = {}
        self._starts: dict[str, tuple[object, LogStartOffsets]] = {}
        self._pending: dict[str, PendingCommit] = {}
        self._logs: dict[TopicPartition, FollowedLog] = {}
        self.directory = LogDirectory(())

    def refresh(self) -> dict[TopicPartition, FollowedLog]:
        """Return every partition as it is now, new ones included, in topic and partition order.

        Raises
        ------
        LogStorageError
            A directory cannot be listed, or where a log ends is not known because of damage.
        """
        directories = discover_all(
            self._paths, include_stray=self._include_stray, known=self._known
        )
        self._known = {each.path: each for each in directories}
        live = [each for each in directories if self._include_stray or not each.state]
        chosen = [each for each in live if each in self._choice]
        self._partitions = {each.topic_partition: self._followed(each) for each in chosen}
        self._logs = self._look_at(chosen)
        self.directory = LogDirectory(
            directories,
            include_stray=self._include_stray,
            views={each: log.view for each, log in self._logs.items()},
        )
        return dict(self._logs)

    def _look_at(self, chosen: Sequence[PartitionDirectory]) -> dict[TopicPartition, FollowedLog]:
        """Return all partitions with what is pending at one moment: a job is seen as a whole."""
        above = {each.log_directory for each in chosen}
        rewritten: dict[TopicPartition, int] = {}
        for _ in range(_MOST_LOOKS):
            pending = {each: self._pending_in(each) for each in above}
            starts = {each: self._log_start_offsets(each) for each in above}
            logs = {
                each.topic_partition: self._partitions[each.topic_partition].look(
                    starts[each.log_directory], pending[each.log_directory]
                )
                for each in chosen
            }
            for each, log in logs.items():
                if log.rewritten_below is not None:  # said once: the next look knows the new log
                    rewritten[each] = max(log.rewritten_below, rewritten.get(each, 0))
            if not any(each.has_changed() for each in pending.values()):
                return {
                    each: log._replace(rewritten_below=rewritten.get(each))
                    for each, log in logs.items()
                }
        reason = "commits of jobs come and go faster than all partitions can be looked at"
        raise LogDirectoryError(reason, sorted(above)[0])

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
        if known is not None and known.directory.path == directory.path:
            return known
        return FollowedPartition(
            replace(directory, uses_indexes=self._use_indexes),
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


def follow(  # noqa: PLR0913 - keyword-only options, those of `pylog.scan`
    *paths: str | os.PathLike[str],
    topics: Iterable[str] | None = None,
    assign: Mapping[str, Iterable[int]] | None = None,
    pattern: str | None = None,
    isolation: str | IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    mode: str | ReadMode = ReadMode.FAILFAST,
    include_stray: bool = False,
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
    include_stray, use_indexes
        As for `open_directory` and `pylog.scan`.

    Raises
    ------
    ValueError
        An argument makes no sense.

    Examples
    --------
    >>> followed = pylog.follow("/mnt/kafka-logs", topics=["orders"])
    >>> read_to = {each: log.end_offset for each, log in followed.refresh().items()}
    >>> time.sleep(10)
    >>> ends = {each: log.end_offset for each, log in followed.refresh().items()}
    >>> pylog.scan(followed.directory, topics="orders", start=read_to, end=ends).to_table()
    """
    return FollowedDirectory(
        paths,
        TopicChoice.of(topics=topics, assign=assign, pattern=pattern),
        isolation=IsolationLevel.parse(isolation),
        mode=ReadMode.parse(mode),
        include_stray=include_stray,
        use_indexes=use_indexes,
    )
