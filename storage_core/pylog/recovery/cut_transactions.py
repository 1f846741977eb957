"""Transactions that are open where a part of a log ends, and where the whole log ends them.

From batch headers and markers alone. A transaction is *cut* at an offset if its producer has data
of it before that, and its marker, or more data, after.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pylog.model import ControlRecordType
from pylog.reading.checked_windows import CheckedWindows
from pylog.reading.open_transactions import END_TYPES, OpenTransactions, transaction_events
from pylog.reading.slicing import open_slice, segment_slices

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pylog.reading.log_view import LogView
    from pylog.reading.open_transactions import TransactionEvent


class CutTransaction(NamedTuple):
    """A transaction that a part of a log has without its marker.

    Attributes
    ----------
    producer_id, first_offset
        Whose it is, and where it begins in the part.
    state
        What the whole log says of it: ``committed``, ``aborted``, or ``open`` without a marker.
    marker_offset
        Where its marker is; None while it is open.
    """

    topic: str
    partition: int
    producer_id: int
    first_offset: int
    state: str
    marker_offset: int | None


def open_at_end_of(view: LogView, start_offset: int, end_offset: int) -> dict[int, int]:
    """Return the first offsets of the transactions that are open in ``[start, end)``, by id."""
    transactions = OpenTransactions({})
    for event in _events(view, start_offset, end_offset):
        transactions.note(event._replace(offset=max(event.offset, start_offset)))
    return transactions.first_offsets


def find_cut(view: LogView, since: Mapping[int, int], end_offset: int) -> list[CutTransaction]:
    """Return those of the transactions that are open at an offset which go on after it."""
    found: dict[int, CutTransaction] = {}
    place = view.topic_partition
    undecided = set(since)
    if undecided:
        for event in _events(view, end_offset, view.log_end_offset):
            producer_id = event.producer_id
            if producer_id not in undecided:
                continue
            state, marker = "open", None
            if event.kind in END_TYPES:
                state = "aborted" if event.kind is ControlRecordType.ABORT else "committed"
                marker = event.offset
                undecided.remove(producer_id)
            elif event.kind is not None:
                continue
            first = since[producer_id]
            found[producer_id] = CutTransaction(*place, producer_id, first, state, marker)
            if not undecided:
                break
    return sorted(found.values(), key=lambda each: each.first_offset)


def whole_end(view: LogView, start_offset: int, end_offset: int) -> int:
    """Return the first offset from ``end_offset`` on at which no transaction is cut.

    Transactions that the log itself leaves open do not count.
    """
    since = open_at_end_of(view, start_offset, end_offset)
    while True:
        markers = [
            each.marker_offset
            for each in find_cut(view, since, end_offset)
            if each.marker_offset is not None
        ]
        if not markers:
            return end_offset
        following = max(markers) + 1
        transactions = OpenTransactions(since)
        for event in _events(view, end_offset, following):
            transactions.note(event)
        since = transactions.first_offsets
        end_offset = following


def _events(view: LogView, start_offset: int, end_offset: int) -> Iterator[TransactionEvent]:
    """Yield what a range has of transactions, batch by batch; only headers are read."""
    for each in segment_slices(view, start_offset, end_offset):
        opened = open_slice(each, None)
        if opened is None:
            continue
        with opened as source:
            for window in CheckedWindows(source, each, verifies_checksums=False):
                yield from transaction_events(window, start_offset, end_offset)
