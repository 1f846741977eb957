"""What has become of every offset of a log: records, markers, compaction, or loss.

Brokers give offsets without a gap. One is missing afterwards where

* compaction has removed its record: inside a batch, which counts fewer records than it has offsets,
  or a whole batch, or a whole segment;
* damage has cost its batch, or the batch cannot be decoded, which is a finding by itself;
* a ``.log`` file, or part of one, is gone; or the log was truncated inside a batch.

The first differs from the last by what compaction leaves elsewhere: a line in the cleaner's
checkpoint, on any disk of the node, which says up to where it has come, or batches with such holes,
without any record, or with a delete horizon, or empty segments below what is flushed (KAFKA-12889),
or files of a compaction that has not finished. A topic that Kafka itself compacts, or that the
cluster's metadata says is compacted, needs no such sign.

Between two segments of a compacted log a lost one looks as a cleaned one does, unless something of
it is left: its index; or its producer snapshot, or a cleaner that has not come so far. An index
proves the loss. A single snapshot says nothing: a broker takes one within a segment when it stops,
and keeps it over its next start, which removes older ones (ProducerStateManager, Kafka 2.8).

Where a compressed message of v0 or v1 begins, its header does not say; who decompresses it does.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.checks.namesakes import may_hold
from pylog.checks.partition_report import OffsetTotals
from pylog.checks.swaps import offsets_in_batches
from pylog.config.stored_topic_configs import INTERNAL_TOPIC_PROPERTIES
from pylog.errors import LogDirectoryError, SegmentVanishedError
from pylog.files.clean_shutdown import has_clean_shutdown
from pylog.files.file_names import (
    CLEANED_FILE_SUFFIX,
    INDEX_FILE_SUFFIX,
    LOG_FILE_SUFFIX,
    SWAP_FILE_SUFFIX,
    find_segment_file_name,
)
from pylog.files.storage import list_directory, open_file
from pylog.findings import kinds
from pylog.findings.finding import Effect, Finding, Severity
from pylog.locations import parent_of
from pylog.record.header_sums import has_horizon
from pylog.text.words import counted, offsets_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from pylog.checks.batches import WrappedOffsets
    from pylog.files.file_names import SegmentFileName
    from pylog.reading.damage import DamagedRange
    from pylog.reading.log_view import LogView
    from pylog.reading.segments import LogSegmentView
    from pylog.record.batch_scan import Window


_MOST_GAPS = 10_000
"""Of how many gaps the places are kept; the others are only counted."""
_MOST_LISTED = 100
_OF_A_CLEAN_STOP = 1
"""How many producer snapshots without a segment are below the last one of a log that is whole."""
_OF_COMPACTION = (CLEANED_FILE_SUFFIX, SWAP_FILE_SUFFIX)


class OffsetGap(NamedTuple):
    """Offsets ``[start, end)`` that no batch has; ``position`` is where the next batch begins."""

    start: int
    end: int
    path: str
    position: int
    is_between_segments: bool


class OffsetAccount:
    """Counts offsets, window by window, of a log or of what begins at an offset. One thread."""

    def __init__(
        self,
        view: LogView,
        cleaner_offset: int | None,
        recovery_point: int | None = None,
        *,
        is_compacted: bool | None = None,
        keeps_records: bool = False,
        start_offset: int | None = None,
    ) -> None:
        self._keeps_records = keeps_records
        self._is_compacted = bool(is_compacted) or "compact" in INTERNAL_TOPIC_PROPERTIES.get(
            view.topic, {}
        ).get("cleanup.policy", "")
        # After a crash an empty file that was not flushed may be a loss.
        flushed = None if has_clean_shutdown(view.directory.log_directory) else recovery_point
        self._is_compacted = self._is_compacted or any(
            # Nobody else empties files, and that the topic is not compacted is not known.
            is_compacted is None
            and not each.size_bytes
            and (flushed is None or each.base_offset < flushed)
            and not _has_entries(each)
            for each in view.segments[:-1]
        )
        self._path = view.directory.path
        self._bases_without_log = view.listing.base_offsets_without_log
        here = {each.base_offset for each in view.segments}  # empty ones, too
        alone = [
            each
            for each in view.listing.producer_snapshot_offsets
            if each not in here and each < max(here, default=0)
        ]
        self._snapshots_alone = alone if len(alone) > _OF_A_CLEAN_STOP else []
        self._cleaner_offset = cleaner_offset
        self._next_offset = view.local_log_start_offset if start_offset is None else start_offset
        self._segment_path = self._path
        self._gaps: list[OffsetGap] = []
        self._more_gaps = 0
        self._more_offsets = 0
        self._records = 0
        self._control_records = 0
        self._holes = 0
        self._hidden = 0  # in batches that hold something, and say that they do not

    @property
    def is_compacted(self) -> bool:
        """Whether compaction has been at the log, as far as has been seen."""
        return self._is_compacted or self._cleaner_offset is not None

    def is_whole(self, start: int, end: int) -> bool:
        """Whether a batch has each offset in ``[start, end)``, as far as has been seen."""
        return not self._more_gaps and not any(
            each.start < end and start < each.end for each in self._gaps
        )

    def begin(self, segment: LogSegmentView) -> None:
        """Note that a segment begins."""
        base, path = segment.base_offset, segment.file_path()
        self._segment_path = path
        if base > self._next_offset:
            self._add(OffsetGap(self._next_offset, base, path, 0, is_between_segments=True))
        self._next_offset = max(self._next_offset, base)

    def end(self, end_offset: int) -> None:
        """Note up to where there is to be something."""
        if end_offset > self._next_offset:
            path = self._segment_path
            gap = OffsetGap(self._next_offset, end_offset, path, 0, is_between_segments=False)
            self._add(gap)

    def add(
        self,
        window: Window,
        wrapped: dict[int, WrappedOffsets] | None = None,
        is_lost: npt.NDArray[np.bool_] | None = None,
        is_refused: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        """Count the offsets of these batches, and of compressed messages, by their place.

        No record of a lost offset is read. Batches that are refused cannot be decoded.
        """
        headers, wrapped = window.headers, wrapped or {}
        none = np.zeros(len(headers), dtype=np.bool_)
        is_lost = none if is_lost is None else is_lost
        is_refused = none if is_refused is None else is_refused
        lasts, counts = headers.last_offsets, headers.record_counts
        before = np.concatenate(([self._next_offset], lasts[:-1] + 1))
        is_hidden = counts < 0
        firsts = np.where(is_hidden, before, np.maximum(before, headers.offsets))
        wrapped = {place: each for place, each in wrapped.items() if not is_lost[place]}
        if wrapped:
            places = list(wrapped)
            firsts[places] = np.clip(
                [each.first for each in wrapped.values()], before[places], lasts[places]
            )
            counts, is_hidden = counts.copy(), is_hidden.copy()
            counts[places] = [each.messages for each in wrapped.values()]
            is_hidden[places] = False
        for at in np.flatnonzero(firsts > before).tolist():
            position = window.position_of(at)
            self._add(
                OffsetGap(
                    int(before[at]),
                    int(firsts[at]),
                    self._segment_path,
                    position,
                    is_between_segments=False,
                )
            )
        spans = lasts - firsts + 1
        held = np.where(is_hidden, spans, np.minimum(counts, spans))
        self._hidden += int(spans[is_lost & ~is_refused].sum())
        spans, held = (np.where(is_lost, 0, each) for each in (spans, held))
        control = int(held[headers.is_control].sum())
        self._control_records += control
        self._records += int(held.sum()) - control
        self._holes += int((spans - held).sum())
        if not self._is_compacted:
            self._is_compacted = self._holes > 0 or bool(has_horizon(headers).any())
        self._next_offset = int(lasts[-1]) + 1

    def _add(self, gap: OffsetGap) -> None:
        if len(self._gaps) < _MOST_GAPS:
            self._gaps.append(gap)
        else:
            self._more_gaps += 1
            self._more_offsets += gap.end - gap.start

    def totals(self, damaged: Sequence[DamagedRange], end_offset: int) -> OffsetTotals:
        """Return the sums up to the log's end, once all windows have been added."""
        gaps = self._gaps_without(damaged)
        missing = sum(each.end - each.start for each in gaps if not self._is_explained(each))
        compacted = sum(each.end - each.start for each in gaps) - missing + self._more_offsets
        return OffsetTotals(
            self._records,
            self._control_records,
            compacted + self._holes,
            missing,
            self._hidden + _covered(damaged, end_offset),
        )

    def findings(self, damaged: Sequence[DamagedRange]) -> Iterator[Finding]:
        """Yield what the gaps mean, once all windows have been added.

        ``damaged`` is what has been left out, and what cannot be decoded.
        """
        gaps = self._gaps_without(damaged)
        missing = self.missing(damaged)
        for gap in missing[:_MOST_LISTED]:
            yield _missing(gap)
        if len(missing) > _MOST_LISTED:
            rest = missing[_MOST_LISTED:]
            offsets = sum(each.end - each.start for each in rest)
            follow = "1 more gap follows" if len(rest) == 1 else f"{len(rest)} more gaps follow"
            message = f"{follow}, of {counted(offsets, 'offset')} together"
            yield _missing(rest[0])._replace(message=message, end_offset=rest[-1].end)
        doubtful = list(self._doubtful(gaps))
        for gap, reason in doubtful[:_MOST_LISTED]:
            yield _cleaned_or_lost(gap, reason)
        removed = self.totals(damaged, self._next_offset).compacted
        if removed:
            count = len(gaps) - len(missing) + self._more_gaps
            between = sum(each.is_between_segments for each in gaps if self._is_explained(each))
            message = f"compaction has removed {counted(removed, 'offset')}; {_gaps_text(count)}"
            if between:
                message += (
                    f", {between} of them between segments, where a lost segment looks the same: "
                    "compare with another replica"
                )
            yield kinds.COMPACTED_OFFSETS.found(self._path, message)

    def missing(self, damaged: Sequence[DamagedRange] = ()) -> list[OffsetGap]:
        """Return the gaps that no compaction explains, once all windows have been added."""
        return [each for each in self._gaps_without(damaged) if not self._is_explained(each)]

    def cleaned_or_lost(self) -> list[OffsetGap]:
        """Return the gaps that compaction explains, and something is left of a segment there."""
        return [gap for gap, _ in self._doubtful(self._gaps_without(()))]

    def _doubtful(self, gaps: Sequence[OffsetGap]) -> Iterator[tuple[OffsetGap, str]]:
        for gap in gaps:
            if not gap.is_between_segments or not self._is_explained(gap):
                continue
            left = [each for each in self._snapshots_alone if self._has_lost(each, gap)]
            mark = self._cleaner_offset
            if left:
                yield gap, f"a producer snapshot of offset {left[0]} is here without its segment"
            elif mark is not None and mark <= gap.start:
                yield gap, f"the cleaner has come to offset {mark} only"

    def _gaps_without(self, damaged: Sequence[DamagedRange]) -> list[OffsetGap]:
        return [
            gap
            for gap in self._gaps
            if not any(_meet(gap, each) or _fills(each, gap) for each in damaged)
        ]

    def _is_explained(self, gap: OffsetGap) -> bool:
        """Return whether compaction may have made the gap between two batches.

        A cleaner that removes a segment removes its index, too.
        """
        if any(self._has_lost(base, gap) for base in self._bases_without_log):
            return False
        below = self._cleaner_offset is not None and gap.end <= self._cleaner_offset
        return self._is_compacted or below or self._is_unfinished(gap)

    def _has_lost(self, base_offset: int, gap: OffsetGap) -> bool:
        """Whether a segment of which a file is left was in a gap, and is not on its way out."""
        return gap.start <= base_offset < gap.end and not any(
            each.base_offset == base_offset for each in self._leftovers
        )

    def _is_unfinished(self, gap: OffsetGap) -> bool:
        """Whether the topic is being compacted, and no file that waits to go belongs to the gap."""
        if self._keeps_records:
            return False
        is_here = any(gap.start <= each.base_offset < gap.end for each in self._leftovers)
        return not is_here and any(each.state in _OF_COMPACTION for each in self._leftovers)

    @cached_property
    def _leftovers(self) -> list[SegmentFileName]:
        """The ``.log`` files that are not under their final names."""
        try:
            names = [each.name for each in list_directory(self._path)]
        except LogDirectoryError:
            return []  # a finding
        found = filter(None, map(find_segment_file_name, names))
        return [each for each in found if each.state and each.suffix == LOG_FILE_SUFFIX]


def _has_entries(segment: LogSegmentView) -> bool:
    """Whether the offset index of a segment shows that there were batches."""
    try:
        with open_file(segment.file_path(INDEX_FILE_SUFFIX)) as source:
            return source.size() > 0
    except (LogDirectoryError, SegmentVanishedError):
        return False


def _meet(gap: OffsetGap, damaged: DamagedRange) -> bool:
    return damaged.next_offset < gap.end and (
        damaged.end_offset is None or damaged.end_offset > gap.start
    )


def _fills(damaged: DamagedRange, gap: OffsetGap) -> bool:
    """Whether the segment after a gap has its offsets, under a wrong name: consumers get them."""
    if not gap.is_between_segments or damaged.path != gap.path or damaged.position:
        return False
    start, end = offsets_in_batches(gap.path)
    return start <= gap.start and gap.end <= end


def _covered(damaged: Sequence[DamagedRange], end_offset: int) -> int:
    """Return how many offsets are in any of these ranges; none goes on after the log's end."""
    count = before = 0
    for start, known in sorted(
        (each.next_offset, each.end_offset or end_offset) for each in damaged if not each.is_kept
    ):
        end = min(known, end_offset)
        count += max(0, end - max(start, before))
        before = max(before, end)
    return count


def _gaps_text(count: int) -> str:
    if not count:
        return "there is no gap between batches"
    return "there is 1 gap between batches" if count == 1 else f"there are {count} gaps"


def _cleaned_or_lost(gap: OffsetGap, reason: str) -> Finding:
    offsets = offsets_text(gap.start, gap.end)
    verb = "is" if gap.end == gap.start + 1 else "are"
    message = f"{offsets} before this segment {verb} cleaned or lost: {reason}"
    message += may_hold(parent_of(gap.path), gap.start, gap.end)
    where = (gap.path, message, gap.position, None, gap.start, gap.end)
    return kinds.MISSING_SEGMENT.found(*where, severity=Severity.WARNING)


def _missing(gap: OffsetGap) -> Finding:
    is_one = gap.end == gap.start + 1
    offsets = f"{offsets_text(gap.start, gap.end)} {'is' if is_one else 'are'} missing"
    if gap.is_between_segments:
        severity, kind = Severity.ERROR, kinds.MISSING_SEGMENT
        message = f"{offsets} before this segment, and the log shows no sign of compaction"
        message += may_hold(parent_of(gap.path), gap.start, gap.end)
    else:
        severity, kind = Severity.WARNING, kinds.OFFSET_GAP
        message = f"{offsets} before this batch, and the log shows no sign of compaction"
    found = kind.found(gap.path, message, gap.position, None, gap.start, gap.end, severity=severity)
    return found._replace(own_effect=Effect.GONE)
