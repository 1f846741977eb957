"""A partition that is looked at again and again: what is remembered of it from look to look."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import (
    CorruptCheckpointError,
    LogDirectoryError,
    SegmentVanishedError,
    UnreadableFileError,
)
from pylog.files.leader_epochs import UNDEFINED_EPOCH, end_offset_for
from pylog.files.looks import Looks
from pylog.files.partition_metadata import format_uuid
from pylog.files.storage import change_mark
from pylog.lazy_modules import LazyModule
from pylog.reading.damage import DamageReport
from pylog.reading.discovery import LogStartOffsets, directory_identity
from pylog.reading.log_end import continue_log_end, holds_batch
from pylog.reading.log_view import LogView
from pylog.reading.pending_commit import NoPendingCommit, PendingCommit
from pylog.reading.segments import DEFAULT_ACCESS, FileAccess

if TYPE_CHECKING:
    from pylog.files.leader_epochs import EpochEntry
    from pylog.reading import (
        transactions,  # imports NumPy
    )
    from pylog.reading.discovery import PartitionDirectory
    from pylog.reading.segments import LogSegmentView
else:
    transactions = LazyModule("pylog.reading.transactions")


class FollowedLog(NamedTuple):
    """The state of a partition at one look.

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

    def goes_on_in(self, directory: PartitionDirectory) -> bool:
        """Whether it is followed in a directory from now on: it is there, or has been moved there.

        On another disk of its node lies the same log, or that of a new topic of this name: its id
        tells. Of another node it is a replica.
        """
        is_here = directory.path == self.directory.path
        was_moved = not is_here and self.directory.now().path == directory.path
        if is_here or (was_moved and self._seen is not None and self._seen.topic_id is not None):
            self.directory = directory
            return True
        return False

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
