"""Findings about transaction indexes: unreadable, or not what the markers say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import CorruptIndexError, SegmentVanishedError, UnreadableFileError
from pylog.files.file_names import TXN_INDEX_FILE_SUFFIX
from pylog.files.transaction_index import read_transaction_index
from pylog.inspect.findings.finding import warning
from pylog.inspect.transactions import find_transactions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pylog.inspect.findings.finding import Finding
    from pylog.reading.log_view import LogView

    # First offset of each transaction, None if unknown, by producer id and offset of its marker.
    Aborted = dict[tuple[int, int], int | None]


def transaction_findings(view: LogView) -> Iterator[Finding]:
    """Yield what is wrong with the transaction indexes of a log.

    Parameters
    ----------
    view
        One that skips damage. Of markers inside damage the index alone knows.
    """
    by_markers = _aborted_by_markers(view)
    log_start = view.segments[0].base_offset if view.segments else 0
    for index, segment in enumerate(view.segments):
        next_base_offset = view.next_base_offset(index)
        expected = {
            (producer, marker): first
            for (producer, marker), first in by_markers.items()
            if segment.base_offset <= marker
            and (next_base_offset is None or marker < next_base_offset)
        }
        path = segment.file_path(TXN_INDEX_FILE_SUFFIX)
        entries = []
        if segment.has_transaction_index:
            try:
                entries = read_transaction_index(path)
            except (CorruptIndexError, UnreadableFileError) as error:
                yield warning("damaged_transaction_index", path, str(error.reason))
                continue
            except SegmentVanishedError:
                pass  # deleted since the directory was listed
        stored = {(each.producer_id, each.last_offset): each.first_offset for each in entries}
        yield from _missing_entries(path, expected, stored, log_start)
        yield from _late_entries(path, expected, stored)


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


def _by_marker(keys: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    return sorted(keys, key=lambda key: key[1])


def _aborted_by_markers(view: LogView) -> Aborted:
    return {
        (each.producer_id, each.marker_offset): each.first_offset
        for each in find_transactions(view)
        if each.state == "aborted" and each.batches and each.marker_offset is not None
    }
