"""Findings about transaction indexes: unreadable, or not what the markers say."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from pylog.errors import CorruptIndexError, SegmentVanishedError, UnreadableFileError
from pylog.files.file_names import TXN_INDEX_FILE_SUFFIX
from pylog.files.transaction_index import read_transaction_index
from pylog.inspect.findings.finding import warning
from pylog.inspect.transactions import TransactionsInOrder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pylog.files.transaction_index import TransactionIndexEntry
    from pylog.inspect.findings.finding import Finding
    from pylog.log_file.segment_windows import SegmentWindow
    from pylog.reading.log_segment_view import LogSegmentView
    from pylog.reading.log_view import LogView

    # First offset of each transaction, None if unknown, by producer id and offset of its marker.
    Aborted = dict[tuple[int, int], int | None]


class TransactionFindings:
    """Holds the transaction indexes of a log against the markers in it. One thread.

    Parameters
    ----------
    view
        One that skips damage, of which `TransactionsInOrder` is given all windows. Of markers
        inside damage the index alone knows. The indexes are read now.
    """

    def __init__(self, view: LogView) -> None:
        self._view = view
        self._transactions = TransactionsInOrder(view)
        self._indexes = [_read_index(segment) for segment in view.segments]
        self._aborted: Aborted = {}
        self._markers: set[tuple[int, int]] = set()

    def add(self, window: SegmentWindow) -> None:
        """Note the transactions that end in a window."""
        for each in self._transactions.add(window):
            if each.marker_offset is None or each.state == "committed":
                continue
            self._markers.add((each.producer_id, each.marker_offset))
            if each.state == "aborted" and each.batches:
                self._aborted[each.producer_id, each.marker_offset] = each.first_offset

    def findings(self, *, judges_entries: bool) -> Iterator[Finding]:
        """Yield what is wrong, once all windows have been added.

        Parameters
        ----------
        judges_entries
            Whether an entry without a marker is wrong: not where damage or compaction may have
            taken the marker.
        """
        view = self._view
        log_start = view.segments[0].base_offset if view.segments else 0
        bases = [segment.base_offset for segment in view.segments]
        by_segment: dict[int, Aborted] = {}
        for (producer_id, marker), first in self._aborted.items():
            expected = by_segment.setdefault(bisect_right(bases, marker) - 1, {})
            expected[producer_id, marker] = first
        for index, segment in enumerate(view.segments):
            expected = by_segment.get(index, {})
            path = segment.file_path(TXN_INDEX_FILE_SUFFIX)
            entries = self._indexes[index]
            if isinstance(entries, str):
                yield warning("damaged_transaction_index", path, entries)
                continue
            stored = {(each.producer_id, each.last_offset): each.first_offset for each in entries}
            yield from _missing_entries(path, expected, stored, log_start)
            yield from _late_entries(path, expected, stored)
            if judges_entries:
                yield from _extra_entries(path, stored, self._markers, view.next_offset)


def _read_index(segment: LogSegmentView) -> list[TransactionIndexEntry] | str:
    """Return the entries of a segment's transaction index, or why it cannot be read."""
    if not segment.has_transaction_index:
        return []
    try:
        return read_transaction_index(segment.file_path(TXN_INDEX_FILE_SUFFIX))
    except (CorruptIndexError, UnreadableFileError) as error:
        return str(error.reason)
    except SegmentVanishedError:
        return []  # deleted since the directory was listed


def _missing_entries(
    path: str, expected: Aborted, stored: dict[tuple[int, int], int], log_start: int
) -> Iterator[Finding]:
    for key in _by_marker(expected.keys() - stored.keys()):
        first = expected[key]
        # One that began before the log may have had no record in this partition.
        if first is not None and first >= log_start:
            message = f"no entry for producer {key[0]}, aborted at offset {key[1]}"
            yield warning("wrong_transaction_index", path, message)


def _late_entries(
    path: str, expected: Aborted, stored: dict[tuple[int, int], int]
) -> Iterator[Finding]:
    for key in _by_marker(expected.keys() & stored.keys()):
        first = expected[key]
        if first is not None and stored[key] > first:
            message = (
                f"entry of producer {key[0]}, aborted at offset {key[1]}, begins at "
                f"{stored[key]}, its first batch at {first}"
            )
            yield warning("wrong_transaction_index", path, message)


def _extra_entries(
    path: str, stored: dict[tuple[int, int], int], markers: set[tuple[int, int]], end_offset: int
) -> Iterator[Finding]:
    for producer_id, marker in _by_marker(stored.keys() - markers):
        what = "no such marker is in the log"
        if marker >= end_offset:
            what = f"the log ends at offset {end_offset}"
        message = f"entry of producer {producer_id}, aborted at offset {marker}, but {what}"
        yield warning("wrong_transaction_index", path, message)


def _by_marker(keys: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    return sorted(keys, key=lambda key: key[1])
