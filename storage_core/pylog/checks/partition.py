"""All findings about one partition, and what else a walk over it tells."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from pylog.checks.batches import (
    EpochFindings,
    LegacyFindings,
    LogWalk,
    damage_findings,
    empty_batch_findings,
    is_filled_empty,
    overlap_findings,
    rest_findings,
    size_findings,
    tail_findings,
    with_torn_records,
)
from pylog.checks.broker_action import with_actions
from pylog.checks.broker_start import broker_start
from pylog.checks.files import (
    checkpoint_findings,
    directory_findings,
    had_more,
    leftover_findings,
    log_start_findings,
    lost_leftover,
    read_checkpoints,
)
from pylog.checks.indexes import IndexFindings
from pylog.checks.lost_times import LostTimes
from pylog.checks.metadata_log import effects_on_node
from pylog.checks.missing_time_indexes import MissingTimeIndexes
from pylog.checks.offsets import OffsetAccount
from pylog.checks.partition_check import PartitionCheck
from pylog.checks.permissions import with_own_limits
from pylog.checks.producers import SequenceFindings, SnapshotFindings
from pylog.checks.rescue import rescue
from pylog.checks.transactions import TransactionFindings, Undecided
from pylog.config import LogConfig
from pylog.errors import LogDirectoryError, LogStorageError, SegmentVanishedError
from pylog.files.clean_shutdown import has_clean_shutdown
from pylog.files.directory_lock import is_in_use
from pylog.files.file_names import (
    CLEANER_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from pylog.files.looks import Patience
from pylog.findings import kinds
from pylog.findings.finding import Effect, Finding, Severity
from pylog.locations import is_remote
from pylog.log_file.segment_windows import DEFAULT_WINDOW_BYTES
from pylog.model import OffsetPosition
from pylog.reading.damage import DamagedRange, DamageReport
from pylog.reading.internal_logs import CLUSTER_METADATA
from pylog.reading.pending_commit import NoPendingCommit
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES
from pylog.record.header_sums import from_offset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pylog.checks.batches import SegmentWalk
    from pylog.checks.broker_start import BrokerStart
    from pylog.files.file_user import FileUser
    from pylog.reading.discovery import PartitionDirectory
    from pylog.reading.log_view import LogView
    from pylog.reading.pending_commit import PendingCommit
    from pylog.record.batch_scan import Window
    from pylog.writing.node import Node


_MOST_LOOKS = 4
"""How often a log is looked at whose files go while it is read, before that is an error."""
_PAUSE_SECONDS = 0.2
_LASTING_SECONDS = 2.0
"""How long a log that a broker works on has to be wrong: its threads write files in turn, and one
that is suspended between two of them has to get its own. A large log takes that long to read."""
_MISSING_FILES = (kinds.MISSING_INDEX, kinds.MISSING_TIME_INDEX)


def check_partition(  # noqa: PLR0913 - keyword-only options
    view: LogView,
    *,
    node: Node | None = None,
    user: FileUser | None = None,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    on_bytes: Callable[[int], None] | None = None,
    window_bytes: int = DEFAULT_WINDOW_BYTES,
    patience: Patience | None = None,
) -> PartitionCheck:
    """Read all of one partition and return what is wrong with it.

    A broker may go on working on it. Where one does, and something seems wrong, the log is looked
    at again for two seconds, and what is not wrong each time has only been on its way.

    ``user`` is whom a broker runs as; None for one who may do anything. ``patience`` is that of all
    partitions that are looked at together.
    """
    check = _check_settled(
        view,
        partial(_check, pending=view.pending, node=node, user=user),
        partial(
            LogWalk,
            max_decompressed_bytes=max_decompressed_bytes,
            on_bytes=on_bytes,
            window_bytes=window_bytes,
        ),
        patience or Patience(),
    )
    if any(each.kind == kinds.UNREADABLE for each in check.findings):
        denied = _denied(check.view, user)
        if denied is not None:
            check = check._replace(findings=[denied, *check.findings])
    return check._replace(findings=with_own_limits(check.findings))


def _denied(view: LogView, user: FileUser | None) -> Finding | None:
    """Return what a broker's user may not do with a log that this process may not read."""
    if user is None:
        return None
    with suppress(LogStorageError):
        start = broker_start(view, 0, user=user)
        refusal = None if start is None else start.refusal
        return refusal if refusal is not None and refusal.kind == kinds.FORBIDDEN else None
    return None


def _check_settled(
    view: LogView,
    check_once: Callable[[LogView, LogWalk], PartitionCheck],
    make_walk: Callable[..., LogWalk],
    patience: Patience,
) -> PartitionCheck:
    """Return what is wrong with a partition once it stays wrong."""
    before: set[tuple[str, str, str]] | None = None
    is_live, first_look = False, 0.0
    for looks_left in range(_MOST_LOOKS - 1, -1, -1):
        damage = DamageReport(is_logged=False)
        # What is wrong with files does not depend on whether readers are given what is in them.
        hidden = NoPendingCommit(view.directory.log_directory)
        view = view.refreshed(pending=hidden).with_damage(damage)
        try:
            check = check_once(view, make_walk(view, damage=damage))
        except SegmentVanishedError:
            if not looks_left:
                raise
            continue
        except LogDirectoryError as error:
            if looks_left and view.directory.was_moved():
                continue
            path = view.directory.path if error.path is None else str(error.path)
            found = kinds.UNREADABLE.found(path, error.reason, error.position)
            return PartitionCheck(view, [found], [])
        if not any(map(_is_wrong, check.findings)):
            return check
        now = _seen_now(view)
        findings = _still_missing(check.findings, now)
        losses = () if check.start is None else check.start.losses
        identity = partial(_identity, view.directory)
        wrong = set(map(identity, (*filter(_is_wrong, findings), *losses)))
        is_first = before is None
        lasting = wrong if before is None else before & wrong
        check = check._replace(
            findings=[
                each for each in findings if not _is_wrong(each) or identity(each) in lasting
            ],
            # A start that would lose what was on its way says nothing.
            start=check.start if lasting.issuperset(map(identity, losses)) else None,
        )
        pause = _PAUSE_SECONDS
        if is_first:
            is_live = _has_changed(view, now) or is_in_use(view.directory.log_directory)
            first_look = time.monotonic()
        else:
            pause = first_look + _LASTING_SECONDS - time.monotonic()
        if not (wrong and looks_left and is_live and pause > 0):
            return check
        if not is_first and not patience.allows(pause):
            return check
        before = lasting or wrong  # something else may be wrong now
        time.sleep(pause)
    raise AssertionError  # the last look returns or raises


def _is_wrong(finding: Finding) -> bool:
    return finding.severity is not Severity.INFO


def _identity(place: PartitionDirectory, finding: Finding) -> tuple[str, str, str]:
    """Return what a finding is, wherever a broker has moved the partition to."""
    # Each of a live log's transactions is open for a while: one that began during the first look,
    # and ended during the second one, is not the same twice.
    message = finding.message if finding.kind == kinds.WRONG_STABLE_OFFSET else ""
    path = finding.path.removeprefix(place.path).removeprefix(place.log_directory)
    return finding.code, path, message


def _seen_now(view: LogView) -> LogView | None:
    """Return a partition as it is now; None if its directory cannot be listed."""
    now = view.refreshed()
    with suppress(LogDirectoryError):
        _ = now.segments  # raises
        return now
    return None


def _still_missing(findings: list[Finding], now: LogView | None) -> list[Finding]:
    """Leave out files that were missing and have come since.

    A broker that puts a compacted segment in its place renames the ``.log`` first. One that
    compacts often may be amid that at each look.
    """
    segments = [] if now is None else now.segments
    here = {each.file_path(suffix) for each in segments for suffix in each.suffixes}
    return [each for each in findings if each.kind not in _MISSING_FILES or each.path not in here]


def _has_changed(view: LogView, now: LogView | None) -> bool:
    """Whether files have come, gone or grown since the view was taken."""
    if now is None:
        return False
    before, after = view.listing, now.listing
    return (
        after.segments != before.segments
        or after.file_count != before.file_count
        or sorted(after.producer_snapshot_offsets) != sorted(before.producer_snapshot_offsets)
    )


def _check(
    view: LogView,
    walk: LogWalk,
    *,
    pending: PendingCommit,
    node: Node | None,
    user: FileUser | None,
) -> PartitionCheck:
    about_directory = list(directory_findings(view, node, pending))
    return _Check(view, walk, node).run(about_directory, user)


class _Check:
    """Everything that looks at the batches of one log. All but the ``.log`` files is read first.

    A broker appends to a log before it writes what is about the appended batches: so what is read
    before the end of the log is known is about batches that are there.
    """

    def __init__(self, view: LogView, walk: LogWalk, node: Node | None) -> None:
        self._view = view
        self._node = node
        self._walk = walk
        self._checkpoints = read_checkpoints(view)
        newest = None if node is None else node.next_leader_epoch(view.topic_partition)
        self._epochs = EpochFindings(view, self._checkpoints.epochs, newest)
        self._snapshots = SnapshotFindings(view)
        self._transactions = TransactionFindings(view)
        self._sequences = SequenceFindings(view)
        self._last_indexes = IndexFindings(view.segments[-1]) if view.segments else None
        self._time_indexes = MissingTimeIndexes(view)
        self._legacy = LegacyFindings(walk.options.max_decompressed_bytes)
        self._account = OffsetAccount(
            view,
            self._cleaner_offset(),
            self._checkpoints.offsets.get(RECOVERY_POINT_CHECKPOINT),
            is_compacted=None if node is None else node.is_compacted(view.topic),
            keeps_records=self._keeps_records(),
        )
        self._times = LostTimes(view)
        # A node closes neither the log of the metadata, nor what it is about to delete.
        is_metadata = view.topic_partition == CLUSTER_METADATA
        is_open = is_metadata or bool(view.directory.state)
        self._is_closed = has_clean_shutdown(view.directory.log_directory) and not is_open
        self._ends: list[OffsetPosition] = []
        self._scanned_bytes = 0

    def _cleaner_offset(self) -> int | None:
        """Return up to where the log was compacted; a broker looks on all of its disks."""
        view, own = self._view, self._checkpoints.offsets.get(CLEANER_OFFSET_CHECKPOINT)
        known = [] if own is None else [own]
        if self._node is not None:
            place = view.directory.log_directory
            known += self._node.offsets_elsewhere(
                CLEANER_OFFSET_CHECKPOINT, view.topic_partition, place
            ).values()
        return max(known, default=None)

    def _keeps_records(self) -> bool:
        """Whether it is known that no cleaner removes records of the log."""
        node = self._node
        return (
            node is not None
            and node.is_compacted(self._view.topic) is False
            and self._cleaner_offset() is None
        )

    def run(self, about_directory: list[Finding], user: FileUser | None) -> PartitionCheck:
        view, damage = self._view, self._walk.damage
        about_segments: list[Finding] = []
        end_offset = view.local_log_start_offset
        for segment_walk in self._walk:
            about_segments += self._about_segment(segment_walk)
            self._ends.append(OffsetPosition(segment_walk.next_offset, segment_walk.end_position))
            end_offset = segment_walk.next_offset
        damaged = sorted(
            [*damage.ranges, *self._walk.refused.ranges], key=attrgetter("path", "position")
        )
        about_damage = list(damage_findings(view, damaged))
        is_unreadable = any(
            each.kind == kinds.UNREADABLE and each.effect is Effect.UNKNOWN
            for each in [*about_damage, *about_directory]
        )
        start = None
        if not is_unreadable:
            start = broker_start(
                view,
                end_offset,
                self._ends,
                {each.path for each in damaged},
                user,
                keeps_records=self._keeps_records(),
                config=LogConfig() if self._node is None else self._node.log_config(view.topic),
            )
        last = end_offset
        if start is not None and start.cut_path is None:
            # A batch that cannot be decoded has its offsets all the same.
            last = max(last, start.log_end_offset)
        findings = [
            *about_damage,
            *about_directory,
            *tail_findings(view, start),
            *overlap_findings(view, self._ends),
            *self._account.findings(damaged),
            *about_segments,
            *self._about_log(None if self._is_last_unreadable() else last, start),
        ]
        findings = with_torn_records(findings)
        self._times.add_lost_segments()
        findings = [self._times.dated(each) for each in with_actions(findings, view, start)]
        if start is not None and start.loses_records:
            losses = map(self._times.dated, start.found_losses())
            start = start._replace(losses=tuple(losses))
        refusal = None if start is None else start.refusal
        is_refusal_said = any(
            refusal is not None
            and refusal.kind != kinds.FORBIDDEN
            and each.refuses_start
            and each.path == refusal.path
            for each in findings
        )
        if refusal is not None and not is_refusal_said:
            findings.insert(0, refusal)
        is_said = any(each.severity is Severity.ERROR for each in findings)
        if start is not None and start.loses_records and (start.broken_swap or not is_said):
            findings = [*start.losses, *findings]
        if view.topic_partition == CLUSTER_METADATA:
            findings = effects_on_node(view, findings, start)
        check = PartitionCheck(
            view,
            findings,
            damaged,
            sum(each.size_bytes for each in view.segments),
            self._scanned_bytes,
            view.local_log_start_offset,
            end_offset,
            self._account.totals(damaged, end_offset),
            start,
            tuple(each.position for each in self._ends),
            self._checkpoints.offsets,
        )
        return _with_leftovers(check)

    def _about_segment(self, walk: SegmentWalk) -> Iterator[Finding]:
        segment = walk.segment
        is_last = walk.slice.next_base_offset is None
        indexes = self._last_indexes if is_last and self._last_indexes else IndexFindings(segment)
        self._account.begin(walk.segment)
        for window in walk:
            yield from self._about_window(walk, window, indexes)
        damaged = self._damaged_in(segment.file_path())
        if any(each.is_unreadable for each in damaged):
            return  # and nothing can be held against its batches
        yield from size_findings(walk)
        yield from rest_findings(walk, damaged)
        # A broker makes the indexes of a new segment when it first appends to it.
        is_new = is_last and not segment.size_bytes
        yield from indexes.findings(
            walk.end_position,
            walk.next_offset,
            damaged,
            is_expected=not is_new,
            is_last=is_last,
            is_closed=self._is_closed,
        )

    def _about_window(
        self, walk: SegmentWalk, window: Window, indexes: IndexFindings
    ) -> Iterator[Finding]:
        is_lost = walk.is_refused | is_filled_empty(window.headers)
        lost_bytes = int(window.headers.sizes_bytes[is_lost].sum())
        self._scanned_bytes += window.size_bytes - lost_bytes
        yield from empty_batch_findings(window)
        indexes.add(window, self._walk.timestamps.latest_in(window))
        self._time_indexes.add(window)
        is_consumed = window.headers.last_offsets >= self._view.first_consumed(walk.index)
        if not is_consumed.any():
            return  # another segment has these offsets, too
        window = from_offset(window, self._view.first_consumed(walk.index))
        walk.is_refused, is_lost = walk.is_refused[is_consumed], is_lost[is_consumed]
        self._transactions.add(window)
        self._snapshots.add(window)
        self._account.add(window, self._legacy.add(window), is_lost, walk.is_refused)
        self._times.add(window, is_lost)
        yield from self._epochs.add(window)
        yield from self._sequences.add(walk.segment, window)

    def _is_last_unreadable(self) -> bool:
        """Return whether the last segment is unreadable, so that the log's end is unknown."""
        return bool(self._view.segments) and any(
            each.is_unreadable for each in self._damaged_in(self._view.segments[-1].file_path())
        )

    def _about_log(self, end_offset: int | None, start: BrokerStart | None) -> Iterator[Finding]:
        yield from self._legacy.findings()
        yield from self._walk.timestamps.findings()
        yield from self._time_indexes.findings()
        is_whole = not self._walk.damage.ranges and not self._walk.refused.ranges
        yield from self._transactions.findings(
            is_intact=is_whole,
            is_compacted=self._account.is_compacted,
            is_whole=self._account.is_whole,
        )
        about_snapshots = list(self._snapshots.findings(end_offset))
        is_disputed = any(each.kind == kinds.WRONG_SNAPSHOT for each in about_snapshots)
        if start is not None and start.refusal is None and end_offset is not None:
            undecided = Undecided(*self._transactions.undecided(), start.first_undecided_offset)
            # A broker has appended between the two looks: they are not of the same moment.
            has_grown = is_whole and start.log_end_offset > start.end_offset
            if undecided.first is not None and not has_grown:
                end = end_offset if start.leaves_log else start.log_end_offset
                has_all = self._account.is_whole(undecided.first, end)
                is_cut = start.loses_records or had_more(self._view, self._checkpoints, end_offset)
                found = undecided.finding(
                    self._view.directory.path,
                    end,
                    is_whole=is_whole and has_all and not is_cut and not is_disputed,
                )
                yield from () if found is None else (found,)
        yield from self._sequences.findings()
        yield from about_snapshots
        yield from checkpoint_findings(self._view, self._checkpoints, end_offset)
        if self._node is not None:
            yield from log_start_findings(self._view, self._checkpoints, self._node)

    def _damaged_in(self, path: str) -> Sequence[DamagedRange]:
        ranges = [*self._walk.damage.ranges, *self._walk.refused.ranges]
        return [each for each in ranges if each.path == path]


def _with_leftovers(check: PartitionCheck) -> PartitionCheck:
    """Return a check with what is said of files that a broker removes, or takes, at its start."""
    leftovers = list(leftover_findings(check.view))
    if not leftovers or is_remote(check.view.directory.path):
        return check._replace(findings=[*check.findings, *leftovers])
    held = rescue(check).in_leftovers
    lost = [lost_leftover(path, *each) for path, ranges in held.items() for each in ranges]
    others = [each for each in leftovers if each.path not in held]
    start = min((each.next_offset or 0 for each in lost), default=0)
    end = max((each.end_offset or 0 for each in lost), default=0)
    known = [
        # They are not gone yet.
        each._replace(own_effect=Effect.LOSES)
        if each.effect is Effect.GONE and start <= (each.next_offset or 0) < end
        else each
        for each in check.findings
    ]
    return check._replace(findings=[*lost, *known, *others])
