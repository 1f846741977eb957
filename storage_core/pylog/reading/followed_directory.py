"""`follow`: a log directory that others write, looked at again and again.

The cost is that of what has changed. A partition directory whose time of change is that of the last
look holds the same files, and a newest ``.log`` whose length and time are the same ends where it
did. Where it has grown, the walk continues from the last batch that was known, after a look at
whether that batch is still there.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from pylog.errors import (
    CorruptCheckpointError,
    LogDirectoryError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.files.file_names import LOG_START_OFFSET_CHECKPOINT
from pylog.files.leader_epochs import UNDEFINED_EPOCH, end_offset_for
from pylog.files.looks import Looks
from pylog.files.partition_metadata import format_uuid
from pylog.files.storage import change_mark
from pylog.lazy_modules import LazyModule
from pylog.locations import join
from pylog.model import EARLIEST, LATEST, IsolationLevel, check_specs, spec_for
from pylog.reading.damage import DamageReport, ReadMode
from pylog.reading.discovery import (
    LogStartOffsets,
    NoPendingCommit,
    PendingCommit,
    directory_identity,
    discover_all,
)
from pylog.reading.log_directory import LogDirectory, TopicChoice
from pylog.reading.log_end import continue_log_end, holds_batch
from pylog.reading.log_view import LogView
from pylog.reading.replicas import one_of_each
from pylog.reading.row_limit import check_limit, limited
from pylog.reading.segments import DEFAULT_ACCESS, FileAccess

if TYPE_CHECKING:
    import datetime as dt
    import os
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from pylog.files.leader_epochs import EpochEntry
    from pylog.model import OffsetSpec, OffsetSpecs, TopicPartition
    from pylog.reading import (
        offset_resolution,  # imports NumPy
        scan,  # imports Arrow
        transactions,  # imports NumPy
    )
    from pylog.reading.damage import DamagedRange
    from pylog.reading.discovery import PartitionDirectory
    from pylog.reading.segments import LogSegmentView
else:
    transactions = LazyModule("pylog.reading.transactions")
    offset_resolution = LazyModule("pylog.reading.offset_resolution")
    scan = LazyModule("pylog.reading.scan")


_LOGGER = logging.getLogger(__name__)


class FollowedLog(NamedTuple):
    """What a look at a partition has shown.

    Attributes
    ----------
    view
        The partition, for a `pylog.scan`.
    log_start_offset
        The first offset that can be read.
    end_offset
        The offset after the last one that can be read: the log end offset or, under
        read_committed, the last stable offset.
    topic_id
        From ``partition.metadata``, as Kafka writes it; None where there is none (before 2.8).
    rewritten_below
        An offset up to which the log was known before, if this look has shown that records below
        it are others now: the log was truncated, or the topic made anew. Else None.
    """

    view: LogView
    log_start_offset: int
    end_offset: int
    topic_id: str | None
    rewritten_below: int | None = None


class FollowedPartition:
    """Remembers a partition from look to look. One thread may use it."""

    def __init__(
        self,
        directory: PartitionDirectory,
        access: FileAccess = DEFAULT_ACCESS,
        *,
        is_committed: bool,
        skips_damage: bool,
    ) -> None:
        self.directory = directory
        self._access = access
        self._is_committed = is_committed
        self._skips_damage = skips_damage
        self._seen: FollowedLog | None = None
        self._given: tuple[LogView, LogView] | None = None
        self._starts: LogStartOffsets | None = None
        self._directory_mark: tuple[int, ...] | None = None
        self._identity: str | tuple[int, int] = ""
        self._file_mark: tuple[int, ...] | None = None
        self._transactions: transactions.FollowedTransactions | None = None

    def look(self, starts: LogStartOffsets, pending: PendingCommit) -> FollowedLog:
        """Return the partition as it is now.

        What is remembered is the log as its files are; a commit that is pending only ends what this
        returns, so that its records are new ones once it is published.
        """
        log = self._look_at_files(starts)
        if pending.end_offset_of(self.directory.topic_partition) is None:
            return log._replace(view=self._with_pending(log.view, pending))
        return self._without_pending(log, starts, pending)

    def _with_pending(self, view: LogView, pending: PendingCommit) -> LogView:
        """Return the view, which nothing is hidden of; the same one as long as nothing changes."""
        if self._given is None or self._given[0] is not view or self._given[1].pending != pending:
            self._given = view, view.with_pending(pending)
        return self._given[1]

    def _without_pending(
        self, log: FollowedLog, starts: LogStartOffsets, pending: PendingCommit
    ) -> FollowedLog:
        """Return the partition as it was before the commit that is pending in it."""
        damage = DamageReport(is_logged=False) if self._skips_damage else None
        view = LogView(self.directory, starts, damage, pending, self._access)
        end_offset = view.log_end_offset
        if self._is_committed:
            end_offset = transactions.FollowedTransactions().last_stable_offset(view)
            view.known_last_stable_offset = end_offset
        return log._replace(
            view=view, log_start_offset=view.log_start_offset, end_offset=end_offset
        )

    def _look_at_files(self, starts: LogStartOffsets) -> FollowedLog:
        looks = Looks()
        while True:
            try:
                return self._look(starts)
            except SegmentVanishedError as error:
                looks.again(error)
                self._directory_mark = None  # retention was faster

    def _look(self, starts: LogStartOffsets) -> FollowedLog:
        seen, known_mark = self._seen, self._directory_mark
        mark = change_mark(self.directory.path)
        self._directory_mark = None  # an error on the way leaves nothing to be believed
        if seen is None:
            self._identity = directory_identity(self.directory.path)
            now = self._as_seen(self._listed(starts))
        elif mark is None or mark != known_mark:
            identity = directory_identity(self.directory.path)
            is_same = identity == self._identity
            view = self._carried_on(self._listed(starts), seen, is_same_directory=is_same)
            now = self._or_rewritten(view, seen)
            self._identity = identity
        else:
            now = self._with_same_files(seen, starts)
        self._seen, self._starts, self._directory_mark = now, starts, mark
        return now

    def _with_same_files(self, seen: FollowedLog, starts: LogStartOffsets) -> FollowedLog:
        """Return what there is now in a directory in which no file has come or gone."""
        view = seen.view
        if self._file_mark is not None and self._file_mark == mark_of_last(view):
            if starts is self._starts:
                return seen._replace(rewritten_below=None)
            return self._as_seen(view.with_log_start_offsets(starts))
        return self._or_rewritten(self._grown(view.with_log_start_offsets(starts), seen), seen)

    def _or_rewritten(self, view: LogView | None, seen: FollowedLog) -> FollowedLog:
        """Return what is known of ``view`` or, if it is None, of a log that is another one now."""
        if view is not None:
            return self._as_seen(view)
        self._transactions = None
        log = self._as_seen(self._listed(LogStartOffsets(self.directory.log_directory)))
        return log._replace(rewritten_below=seen.view.log_end_offset)

    def _listed(self, starts: LogStartOffsets) -> LogView:
        """Return a view of the files that are there, whose end has not been looked for."""
        damage = DamageReport(is_logged=False) if self._skips_damage else None
        nothing = NoPendingCommit(self.directory.log_directory)
        view = LogView(self.directory, starts, damage, nothing, self._access)
        self._file_mark = mark_of_last(view)
        return view

    def _carried_on(
        self, listed: LogView, seen: FollowedLog, *, is_same_directory: bool
    ) -> LogView | None:
        """Return a new view with what is still known of its end; None if it is another log."""
        if not is_same_directory and (seen.topic_id is None or _topic_id(listed) != seen.topic_id):
            return None
        before = seen.view
        if not before.segments:
            return listed
        last = before.segments[-1]
        same = [each for each in listed.segments if each.base_offset == last.base_offset]
        if not same or not last.file_id or same[0].file_id != last.file_id:
            # Retention or compaction has taken what was known, or a truncation.
            self._transactions = None
            return None if _is_truncated(listed, before) else listed
        segment = same[0]
        if segment is listed.segments[-1]:
            return self._grown(listed, seen)
        return listed if self._holds_last_batch(segment, before) else None

    def _grown(self, view: LogView, seen: FollowedLog) -> LogView | None:
        """Return ``view`` with its end, walked to from the one that was seen; None if rewritten."""
        if self._skips_damage:
            return self._grown_around_damage(view, seen)
        self._file_mark = mark_of_last(view)
        if not view.segments:
            return view
        end = continue_log_end(view.segments[-1], seen.view.end)
        return None if end is None else view.with_end(end)

    def _grown_around_damage(self, view: LogView, seen: FollowedLog) -> LogView | None:
        listed = self._listed(view.log_start_offsets)
        if not listed.segments:
            return listed
        return listed if self._holds_last_batch(listed.segments[-1], seen.view) else None

    def _holds_last_batch(self, segment: LogSegmentView, before: LogView) -> bool:
        """Whether what was the last batch of the log is still in the segment."""
        last = before.end.last
        if last is None:
            return True
        try:
            with segment.open_log() as source:
                return holds_batch(source, last, source.size())
        except UnreadableFileError:
            if not self._skips_damage:
                raise
            return True  # reading it reports the error

    def _as_seen(self, view: LogView) -> FollowedLog:
        end_offset = view.log_end_offset
        _last_epoch(view)  # of this moment: the view remembers it
        if self._is_committed:
            if self._transactions is None or self._skips_damage:
                self._transactions = transactions.FollowedTransactions()
            end_offset = self._transactions.last_stable_offset(view)
            view.known_last_stable_offset = end_offset
        return FollowedLog(view, view.log_start_offset, end_offset, _topic_id(view))


def mark_of_last(view: LogView) -> tuple[int, ...] | None:
    """Return the mark of the last ``.log`` file; see `change_mark`."""
    return change_mark(view.segments[-1].file_path()) if view.segments else None


def _is_truncated(listed: LogView, before: LogView) -> bool:
    """Whether a log of which the last file is gone has lost records at its end.

    Retention and compaction leave a log that ends later; and where it ended before, the leader
    epoch of its last batch has not ended, as a follower asks its leader before it truncates.
    """
    end_offset = before.next_offset
    if listed.next_offset < end_offset:
        return True
    epoch = _last_epoch(before)
    known_epoch, known_end = end_offset_for(_leader_epochs(listed), epoch, listed.next_offset)
    if known_epoch == UNDEFINED_EPOCH:
        return False
    return known_epoch < epoch or known_end < end_offset


def _last_epoch(view: LogView) -> int:
    """Return the leader epoch at the end of a log; -1 if it is not known."""
    last = view.end.last
    if last is not None:
        return last.header.partition_leader_epoch
    epochs = _leader_epochs(view)
    return epochs[-1].epoch if epochs else UNDEFINED_EPOCH


def _leader_epochs(view: LogView) -> list[EpochEntry]:
    """Return what the checkpoint says; [] where it cannot be read: it is a hint."""
    try:
        return view.leader_epochs
    except (CorruptCheckpointError, LogDirectoryError):
        return []


def _topic_id(view: LogView) -> str | None:
    """Return the topic id; None where there is none or the file cannot be read: it is a hint."""
    try:
        return None if view.metadata is None else format_uuid(view.metadata.topic_id)
    except (CorruptCheckpointError, LogDirectoryError):
        return None


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
        self.directory = LogDirectory(())

    def refresh(self) -> dict[TopicPartition, FollowedLog]:
        """Return every partition as it is now, new ones included, in topic and partition order.

        Raises
        ------
        LogStorageError
            A directory cannot be listed, or where a log ends is not known because of damage.
        """
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
        looks = Looks()
        while True:
            pending = {each: self._pending_in(each) for each in above}
            starts = {each: self._log_start_offsets(each) for each in above}
            logs = {
                each.topic_partition: self._look(
                    each, starts[each.log_directory], pending[each.log_directory]
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
        if known is not None and known.directory.path == directory.path:
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


def follow(  # noqa: PLR0913 - keyword-only options, those of `pylog.scan`
    *paths: str | os.PathLike[str],
    topics: Iterable[str] | None = None,
    assign: Mapping[str, Iterable[int]] | None = None,
    pattern: str | None = None,
    isolation: str | IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    mode: str | ReadMode = ReadMode.FAILFAST,
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


class FollowedRecords:
    """Gives what has been appended since it was asked last. One thread may use it.

    Invariant: every record below a partition's position has been given, or was left out by the
    arguments of the scan, or is named in a warning.

    Parameters
    ----------
    followed
        The logs; its isolation level decides where they end. Nobody else may refresh it.
    start
        Where to begin, as for `pylog.scan`, in the partitions that the first look shows. Those that
        come later are read from their beginning.
    partitions
        Only partitions with these numbers; none means all.
    limit
        The most records, over all looks together; None for no end.
    **arguments
        Further arguments of `pylog.scan`.

    Attributes
    ----------
    damage
        The damaged ranges that have been left out (modes that skip damage).
    """

    def __init__(
        self,
        followed: FollowedDirectory,
        *,
        start: OffsetSpecs = EARLIEST,
        partitions: Collection[int] = (),
        limit: int | None = None,
        **arguments: Any,  # noqa: ANN401 - of `pylog.scan`
    ) -> None:
        check_limit(limit)
        self._rest = limit
        self._followed = followed
        self._start = start
        self._numbers = frozenset(partitions)
        self._arguments = arguments
        self.damage: list[DamagedRange] = []
        self._positions: dict[TopicPartition, int] | None = None
        self._topic_ids: dict[TopicPartition, str | None] = {}
        self._shown: dict[TopicPartition, FollowedLog] = {}

    @property
    def partitions(self) -> list[TopicPartition]:
        """The partitions that the last look has shown."""
        return list(self._shown)

    def poll(self) -> Iterator[pa.RecordBatch]:
        """Yield the records that are there by now, partition by partition, in offset order.

        A partition counts as given once all its records of this look have been; where the caller
        stops before, they come again.

        Raises
        ------
        LogStorageError
            See `FollowedDirectory.refresh` and `pylog.results.Scan.to_batches`.
        """
        for batch in limited(self._appended(), self._rest):
            if self._rest is not None:
                self._rest -= batch.num_rows
            yield batch

    def _appended(self) -> Iterator[pa.RecordBatch]:
        logs = {
            each: log
            for each, log in self._followed.refresh().items()
            if not self._numbers or each.partition in self._numbers
        }
        self._shown = logs
        if self._positions is None:
            starts: dict[TopicPartition | tuple[str, int] | str, OffsetSpec | dt.datetime] = {
                each: spec_for(self._start, each, EARLIEST) for each in logs
            }
            # What is not followed has no position that could be wrong.
            resolved = self._followed.resolve(starts, LATEST, fail_on_data_loss=False)
            self._positions = {each: resolved[each] for each in logs}
        for each, log in logs.items():
            begin = self._begin_of(each, log, self._positions.get(each))
            if begin < log.end_offset:
                yield from self._records(each, begin, log.end_offset)
                begin = log.end_offset
            self._positions[each] = begin
            self._topic_ids[each] = log.topic_id

    def _begin_of(self, partition: TopicPartition, log: FollowedLog, known: int | None) -> int:
        """Return where to continue in a partition, and warn of what is lost."""
        if known is None:
            return log.log_start_offset
        known_id = self._topic_ids.get(partition, log.topic_id)
        if known_id != log.topic_id:
            _LOGGER.warning("%s has been deleted and made anew: read from its beginning", partition)
            return log.log_start_offset
        if log.log_start_offset > known:
            _LOGGER.warning(
                "%s: records of offsets %d to %d (exclusive) have been deleted before they were "
                "read",
                *(partition, known, log.log_start_offset),
            )
            return log.log_start_offset
        if log.rewritten_below is not None:
            _LOGGER.warning(
                "%s has been truncated: some of the records below offset %d are others now than "
                "those that have been read, or gone",
                *(partition, log.rewritten_below),
            )
        return min(known, log.end_offset)

    def _records(self, partition: TopicPartition, begin: int, end: int) -> Iterator[pa.RecordBatch]:
        planned = scan.scan(
            self._followed.directory,
            assign={partition.topic: [partition.partition]},
            start=begin,
            end=end,
            fail_on_data_loss=False,
            **self._arguments,
        )
        try:
            yield from planned.to_batches()
        finally:
            self.damage += planned.damage
