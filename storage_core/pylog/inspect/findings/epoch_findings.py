"""Findings about leader epochs: they never go back, and the checkpoint says where each begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.files.file_names import LEADER_EPOCH_CHECKPOINT
from pylog.inspect.findings.finding import Finding
from pylog.inspect.findings.severity import Severity
from pylog.locations import join
from pylog.model import NO_PARTITION_LEADER_EPOCH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pylog.files.leader_epoch_checkpoint import EpochEntry
    from pylog.reading.log_view import LogView
    from pylog.reading.segments import LogSegmentView
    from pylog.record.window import Window


class EpochFindings:
    """Follows the leader epochs of a log, window by window; reports the first of each kind.

    Parameters
    ----------
    view
        Whose log.
    entries
        Of the checkpoint; empty where there is none, or none that can be read.
    """

    def __init__(self, view: LogView, entries: Sequence[EpochEntry]) -> None:
        self._path = join(view.directory.path, LEADER_EPOCH_CHECKPOINT)
        self._starts = np.array([entry.start_offset for entry in entries], dtype=np.int64)
        self._epochs = np.array([entry.epoch for entry in entries], dtype=np.int64)
        self._latest = NO_PARTITION_LEADER_EPOCH
        self._has_gone_back = self._has_disagreed = False

    def add(self, segment: LogSegmentView, window: Window) -> Iterator[Finding]:
        """Yield what is wrong with the epochs of these batches."""
        headers = window.headers
        epochs = headers.partition_leader_epochs
        which = np.flatnonzero(epochs != NO_PARTITION_LEADER_EPOCH)
        if not which.size:
            return
        known, offsets = epochs[which], headers.offsets[which]
        before = np.concatenate(([self._latest], known[:-1]))
        back = np.flatnonzero(known < before)
        self._latest = int(known[-1])
        if back.size and not self._has_gone_back:
            self._has_gone_back = True
            at = int(back[0])
            place = int(which[at])
            position = window.position_of(place)
            yield Finding(
                Severity.WARNING,
                "leader_epoch_back",
                segment.file_path(),
                f"batch has leader epoch {known[at]}, but the one before it has {before[at]}",
                position,
                position + int(headers.sizes_bytes[place]),
                int(headers.offsets[place]),
                int(headers.last_offsets[place]) + 1,
            )
        if self._starts.size and not self._has_disagreed:
            entry = np.searchsorted(self._starts, offsets, side="right") - 1
            wrong = np.flatnonzero((entry >= 0) & (self._epochs[entry] != known))
            if wrong.size:
                self._has_disagreed = True
                at = int(wrong[0])
                yield Finding(
                    Severity.WARNING,
                    "leader_epoch_disagrees",
                    self._path,
                    f"offset {offsets[at]} is in leader epoch {self._epochs[entry[at]]} according "
                    f"to the checkpoint, but its batch has {known[at]}",
                    next_offset=int(offsets[at]),
                )
