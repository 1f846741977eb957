"""Findings about transaction indexes: unreadable, or not what the markers say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import CorruptIndexError, SegmentVanishedError, UnreadableFileError
from pylog.files.file_names import TXN_INDEX_FILE_SUFFIX
from pylog.files.transaction_index import read_transaction_index
from pylog.inspect.finding import warning
from pylog.inspect.transactions_table import transactions_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.inspect.finding import Finding
    from pylog.reading.log_view import LogView

    # Producer id, and the first offset of the transaction by the offset of its marker.
    Aborted = dict[tuple[int, int], int | None]


def transaction_findings(view: LogView) -> Iterator[Finding]:
    """Yield what is wrong with the transaction indexes of a log.

    Parameters
    ----------
    view
        One that skips damage. What markers lie in it is told by the index alone.
    """
    markers = _aborted_by_markers(view)
    log_start = view.segments[0].base_offset if view.segments else 0
    for index, segment in enumerate(view.segments):
        following = view.next_base_offset(index)
        here = {
            (producer, marker): first
            for (producer, marker), first in markers.items()
            if segment.base_offset <= marker and (following is None or marker < following)
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
        told: Aborted = {
            (each.producer_id, each.last_offset): each.first_offset for each in entries
        }
        for producer, marker in sorted(here.keys() - told.keys(), key=lambda each: each[1]):
            first = here[producer, marker]
            # One that began before the log may have had no record in this partition.
            if first is not None and first >= log_start:
                message = f"no entry for producer {producer}, aborted at offset {marker}"
                yield warning("wrong_transaction_index", path, message)
        for key in sorted(here.keys() & told.keys(), key=lambda each: each[1]):
            first = here[key]
            if first is not None and told[key] is not None and told[key] > first:  # type: ignore[operator]
                message = (
                    f"entry of producer {key[0]}, aborted at offset {key[1]}, begins at "
                    f"{told[key]}, its first batch at {first}"
                )
                yield warning("wrong_transaction_index", path, message)


def _aborted_by_markers(view: LogView) -> Aborted:
    found: Aborted = {}
    for batch in transactions_of(view):
        for row in batch.to_pylist():
            if row["state"] == "aborted" and row["batches"]:
                found[row["producer_id"], row["marker_offset"]] = row["first_offset"]
    return found
