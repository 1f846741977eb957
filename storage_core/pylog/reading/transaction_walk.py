"""A walk over the batches and markers of a range, for what they say of transactions.

A transactional data batch is decided by the next marker of its producer: COMMIT delivers it, ABORT
drops it, and where no marker follows the transaction is open.

Source: ProducerStateManager, ProducerAppendInfo (Kafka 4.3); KIP-98.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.model import AbortedTransaction, ControlRecordType
from pylog.reading.checked_windows import CheckedWindows
from pylog.reading.control_batches import control_types
from pylog.reading.slicing import open_slice, segment_slices

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.reading.log_view import LogView
    from pylog.reading.open_transactions import OpenTransactions
    from pylog.record.window import Window

END_TYPES = (ControlRecordType.ABORT, ControlRecordType.COMMIT)
"""The markers that end a transaction."""


def follow_transactions(
    view: LogView,
    transactions: OpenTransactions,
    offsets: tuple[int, int],
    below: int | None = None,
) -> Iterator[AbortedTransaction | None]:
    """Note what the batches of a range say of transactions; yield each that is aborted.

    Parameters
    ----------
    view
        The log.
    transactions
        What is open where the range begins; kept up to date on the way.
    offsets
        The range, ``[start, end)``.
    below
        Only transactions that began below this offset are of interest; then None is yielded after
        every window, for a look at what is still open.

    Raises
    ------
    CorruptRecordError
        A batch is damaged, and the view has no damage report.
    """
    start, end = offsets
    for scan, is_behind_damage in _windows(view, start, end):
        if is_behind_damage:
            transactions.note_damage()
        for producer_id, offset, kind in _transaction_events(scan, start):
            if kind is None:
                if below is None or offset < below:
                    transactions.note_data(producer_id, offset)
            elif kind in END_TYPES:
                since = transactions.end(producer_id, kind)
                if since is not None:
                    yield AbortedTransaction(producer_id, since, offset)
        if below is not None:
            yield None


def _windows(view: LogView, start_offset: int, end_offset: int) -> Iterator[tuple[Window, bool]]:
    """Yield the scans of all windows that hold offsets ``[start_offset, end_offset)``.

    With each comes whether damage was left out before it. Checksums are verified: a marker of
    another producer, or a batch that does not look transactional, would make wrong rows of right
    ones elsewhere.
    """
    damage = view.damage
    gaps = 0 if damage is None else damage.skip_count
    for segment_slice in segment_slices(view, start_offset, end_offset):
        opened = open_slice(segment_slice, damage)
        if opened is None:
            continue
        with opened as source:
            for window in CheckedWindows(source, segment_slice, damage=damage):
                now = 0 if damage is None else damage.skip_count
                yield window, now > gaps
                gaps = now


def _transaction_events(
    scan: Window, from_offset: int
) -> Iterator[tuple[int, int, ControlRecordType | None]]:
    """Yield (producer id, offset, marker type or None for data) of transactional batches."""
    headers = scan.headers
    which = np.flatnonzero(headers.is_transactional & (headers.last_offsets >= from_offset))
    if not which.size:
        return
    kinds = np.full(which.size, -1, dtype=np.int64)
    control = headers.is_control[which]
    kinds[control] = control_types(scan, which[control])
    rows = zip(
        headers.producer_ids[which].tolist(),
        headers.offsets[which].tolist(),
        control.tolist(),
        kinds.tolist(),
        strict=True,
    )
    for producer_id, offset, is_control, kind in rows:
        yield producer_id, offset, ControlRecordType(kind) if is_control else None
