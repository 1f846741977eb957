"""Findings about producer snapshots: unreadable, of no offset of the log, or not what it holds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.checks.indexes import LIVE_PAUSES
from pylog.checks.report import info, warning
from pylog.errors import CorruptSnapshotError, SegmentVanishedError, UnreadableFileError
from pylog.files.file_names import PRODUCER_SNAPSHOT_FILE_SUFFIX, file_name_prefix
from pylog.files.producer_snapshot import read_producer_snapshot
from pylog.locations import join

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.checks.report import Finding
    from pylog.files.producer_snapshot import ProducerStateEntry
    from pylog.reading.log_view import LogView
    from pylog.record.batch_scan import Window


_MOST_CLAIMS = 1 << 18
"""How many entries of snapshots are held against the log, the oldest first."""


class _Claim(NamedTuple):
    """What one snapshot says of one producer: which batch was its last."""

    path: str
    entry: ProducerStateEntry


class SnapshotFindings:
    """Holds producer snapshots against the headers of batches, window by window. One thread."""

    def __init__(self, view: LogView) -> None:
        self._found: list[Finding] = []
        self._snapshots: list[tuple[int, str]] = []
        self._claims: list[_Claim] = []
        self._contradicted: dict[str, str] = {}
        newest = max(view.producer_snapshot_offsets, default=None)
        for offset in sorted(view.producer_snapshot_offsets):
            name = file_name_prefix(offset) + PRODUCER_SNAPSHOT_FILE_SUFFIX
            self._read(offset, join(view.directory.path, name), is_newest=offset == newest)
        self._claims.sort(key=lambda claim: claim.entry.last_offset)
        self._offsets = np.array(
            [claim.entry.last_offset for claim in self._claims], dtype=np.int64
        )

    def _read(self, offset: int, path: str, *, is_newest: bool) -> None:
        try:
            entries = _read_once_written(path) if is_newest else read_producer_snapshot(path)
        except (CorruptSnapshotError, UnreadableFileError) as error:
            self._found.append(warning("damaged_snapshot", path, str(error.reason)))
            return
        except SegmentVanishedError:
            return  # a broker deletes old ones
        self._snapshots.append((offset, path))
        for entry in entries:
            if entry.last_offset >= offset or entry.current_txn_first_offset >= offset:
                message = (
                    f"producer {entry.producer_id} has last offset {entry.last_offset} and a "
                    f"transaction from {entry.current_txn_first_offset} on (-1: none), expected "
                    f"both below {offset}, the offset of the snapshot"
                )
                self._contradicted.setdefault(path, message)
            elif entry.last_offset >= 0 and len(self._claims) < _MOST_CLAIMS:
                self._claims.append(_Claim(path, entry))

    def add(self, window: Window) -> None:
        """Hold what is said of these batches against them."""
        if not self._offsets.size:
            return
        headers = window.headers
        lasts = headers.last_offsets
        first, end = np.searchsorted(self._offsets, (headers.offsets[0], lasts[-1] + 1)).tolist()
        if first == end:
            return
        places = np.searchsorted(lasts, self._offsets[first:end])
        is_there = lasts[places] == self._offsets[first:end]
        for claim, place, there in zip(
            self._claims[first:end], places.tolist(), is_there.tolist(), strict=True
        ):
            if not there:
                continue
            entry = claim.entry
            stored = (entry.producer_id, entry.producer_epoch)
            held = (int(headers.producer_ids[place]), int(headers.producer_epochs[place]))
            if stored != held:
                message = (
                    f"the batch that ends at offset {entry.last_offset} is the last one of "
                    f"producer {stored[0]}, epoch {stored[1]}, according to the snapshot, but it "
                    f"has producer {held[0]}, epoch {held[1]}"
                )
                self._contradicted.setdefault(claim.path, message)

    def findings(self, end_offset: int) -> Iterator[Finding]:
        """Yield what is wrong, once all windows have been added; ``end_offset`` is the log's."""
        yield from self._found
        for offset, path in self._snapshots:
            if path in self._contradicted:
                yield warning("wrong_snapshot", path, self._contradicted[path])
            elif offset > end_offset:
                message = f"the log ends at offset {end_offset}, before that of the snapshot"
                yield info("snapshot_above_log_end", path, message)


def _read_once_written(path: str) -> list[ProducerStateEntry]:
    """Return what a snapshot holds; of one that a broker is just writing, once it is whole.

    A broker makes the file and writes into it then.
    """
    for pause in LIVE_PAUSES:
        try:
            return read_producer_snapshot(path)
        except CorruptSnapshotError:
            time.sleep(pause)
    return read_producer_snapshot(path)
