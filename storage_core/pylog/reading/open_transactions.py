"""Which transactions are open where a walk over a log has got to: the one rule of all readers.

======== ========= ================= ====================
producer data      ABORT             COMMIT
======== ========= ================= ====================
idle     begins    nothing           nothing
open     goes on   ended and aborted ended and committed
======== ========= ================= ====================

Damage in between may have been the marker: a transaction that was open then counts as aborted at
its next marker, and as undecidable until that.

Others that look at the same batches ask something else: `pylog.reading.producer_transactions` what
each transaction consists of, `pylog.producers.producer_state_manager` what a producer may append,
and `pylog.cleaner.batch_retention` which markers may go.

Source: ProducerAppendInfo (Kafka 4.3); KIP-98.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pylog.model import ControlRecordType
from pylog.reading.checked_windows import transactional_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.record.batch_scan import Window

END_TYPES = (ControlRecordType.ABORT, ControlRecordType.COMMIT)
"""The markers that end a transaction."""


class TransactionEvent(NamedTuple):
    """A batch of a transaction: data, or a marker."""

    producer_id: int
    offset: int
    kind: ControlRecordType | None  # of a marker


def transaction_events(
    window: Window, start_offset: int, end_offset: int
) -> Iterator[TransactionEvent]:
    """Yield the events of the batches of a window that have offsets of a range."""
    headers = window.headers
    in_range = (headers.last_offsets >= start_offset) & (headers.offsets < end_offset)
    which, *described = transactional_batches(window, in_range)
    columns = headers.producer_ids[which], headers.offsets[which], *described
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for producer_id, offset, is_marker, kind in rows:
        yield TransactionEvent(producer_id, offset, ControlRecordType(kind) if is_marker else None)


class OpenTransactions:
    """The transactions that are open, by producer id."""

    def __init__(self, since: dict[int, int]) -> None:
        self._since = since
        self._undecidable: set[int] = set()
        # Producer ids and first offsets of those that a marker ended which is in no file
        self.ended_unseen: list[tuple[int, int]] = []

    def note_damage(self) -> None:
        """Note that batches are missing here."""
        self._undecidable.update(self._since)

    def note(self, event: TransactionEvent) -> int | None:
        """Note a batch; return the first offset of the transaction if it ends one as aborted."""
        if event.kind is None:
            self._since.setdefault(event.producer_id, event.offset)
        elif event.kind in END_TYPES:
            return self._end(event.producer_id, event.kind)
        return None

    def _end(self, producer_id: int, kind: ControlRecordType) -> int | None:
        since = self._since.pop(producer_id, None)
        is_aborted = kind is ControlRecordType.ABORT or producer_id in self._undecidable
        self._undecidable.discard(producer_id)
        return since if is_aborted else None

    def end_unseen(self, still_open: dict[int, int]) -> None:
        """Note which transactions are open after a gap; the markers of the others were in it."""
        for producer_id, since in list(self._since.items()):
            if producer_id in self._undecidable or still_open.get(producer_id, -1) == since:
                continue
            self.ended_unseen.append((producer_id, self._since.pop(producer_id)))
            if producer_id in still_open:
                self._since[producer_id] = still_open[producer_id]

    def __bool__(self) -> bool:
        return bool(self._since)

    @property
    def first_offsets(self) -> dict[int, int]:
        """First offset by producer id, of all that are open."""
        return self._since

    @property
    def undecidable(self) -> dict[int, int]:
        """First offset by producer id, of those whose marker damage may have taken."""
        return {each: at for each, at in self._since.items() if each in self._undecidable}

    @property
    def decidable(self) -> list[int]:
        """First offsets of the transactions that a marker may still decide."""
        return [at for each, at in self._since.items() if each not in self._undecidable]
