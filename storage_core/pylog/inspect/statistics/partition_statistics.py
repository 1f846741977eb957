"""What the headers of one partition say, segment by segment and in all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.inspect.header_sums import HeaderSums
from pylog.inspect.header_windows import SegmentHeaders
from pylog.inspect.statistics.batch_runs import RunChoice
from pylog.inspect.statistics.batch_statistics import BatchStatistics
from pylog.record.batch_scan import BatchHeaders

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from pylog.inspect.statistics.batch_runs import BatchRun
    from pylog.model import TopicPartition
    from pylog.reading.log_view import LogView
    from pylog.record.window import Window

    Int64Array = npt.NDArray[np.int64]
    WindowReader = Callable[[LogView, int, Window], None]

_BATCHES_AT_ONCE = 1 << 15


class SegmentStatistics(NamedTuple):
    """One segment: its file, and the sums over its headers."""

    base_offset: int
    next_offset: int
    size_bytes: int
    valid_bytes: int
    sums: HeaderSums
    path: str


@dataclass(slots=True)
class PartitionStatistics:
    """One partition.

    Attributes
    ----------
    view
        What was read.
    segments
        In offset order.
    batches
        The sums over all headers.
    runs
        A sample, each run with its key, see `RunChoice`.
    problems
        What could not be read, a line for each.
    """

    view: LogView
    segments: list[SegmentStatistics] = field(default_factory=list)
    batches: BatchStatistics = field(default_factory=BatchStatistics)
    runs: list[tuple[float, BatchRun]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def topic_partition(self) -> TopicPartition:
        """Which partition."""
        return self.view.topic_partition

    @property
    def size_bytes(self) -> int:
        """Of all ``.log`` files."""
        return sum(each.size_bytes for each in self.segments)


def walk_partition(
    view: LogView,
    now_ms: int,
    *,
    read_window: WindowReader | None = None,
    advance: Callable[[int], None],
) -> PartitionStatistics:
    """Return what all headers of a log say.

    Parameters
    ----------
    view
        The log.
    now_ms
        Timestamps after this are in the future.
    read_window
        Is given every window, whole batches with right checksums; None to look at headers alone.
    advance
        Is called with the bytes of the file that have been passed over.

    Raises
    ------
    CorruptRecordError, SegmentVanishedError
        As of `SegmentHeaders`.
    """
    found = PartitionStatistics(view)
    choice = RunChoice(view.topic_partition)
    pending = _PendingHeaders(found.batches, now_ms)
    for index, segment in enumerate(view.segments):
        headers = SegmentHeaders(view, index, verifies_checksums=read_window is not None)
        sums = HeaderSums()
        for window in headers:
            choice.offer(index, window)
            if read_window is not None:
                read_window(view, index, window)
            pending.add(window.headers, sums)
            advance(window.size_bytes)
        pending.finish(sums)
        found.segments.append(
            SegmentStatistics(
                segment.base_offset,
                headers.next_offset,
                segment.size_bytes,
                headers.end_position,
                sums,
                segment.file_path(),
            )
        )
    pending.flush()
    found.runs = choice.runs()
    return found


class _PendingHeaders:
    """Headers of many windows that are added up at once, which is cheaper."""

    def __init__(self, into: BatchStatistics, now_ms: int) -> None:
        self._into = into
        self._now_ms = now_ms
        self._of_segment: list[Int64Array] = []
        self._of_log: list[Int64Array] = []
        self._batches = 0

    def add(self, headers: BatchHeaders, sums: HeaderSums) -> None:
        self._of_segment.append(headers.columns)
        self._batches += len(headers)
        if self._batches >= _BATCHES_AT_ONCE:
            self.finish(sums)
            self.flush()

    def finish(self, sums: HeaderSums) -> None:
        """Add to the sums of the segment what is of it."""
        if self._of_segment:
            columns = _joined(self._of_segment)
            sums.add(BatchHeaders(columns))
            self._of_log.append(columns)
            self._of_segment = []

    def flush(self) -> None:
        """Add to the sums of the log."""
        if self._of_log:
            self._into.add(BatchHeaders(_joined(self._of_log)), self._now_ms)
            self._of_log = []
            self._batches = 0


def _joined(columns: list[Int64Array]) -> Int64Array:
    return columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)
