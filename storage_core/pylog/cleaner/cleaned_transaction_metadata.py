"""Which transactions a cleaning has met, batch by batch, and which of their markers may go.

A marker outlives the data of its transaction: a reader that finds data without their marker would
take the transaction for open, or aborted data for committed.

Source: CleanedTransactionMetadata (Kafka 4.3).
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from pylog.model import ControlRecordType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pylog.files.transaction_index import TransactionIndexEntry


class CleanedTransactionMetadata:
    """The transactions that are open at a batch, as those before it show. One thread.

    Batches without a transaction need not be shown.

    Attributes
    ----------
    keep_aborted
        Called with each aborted transaction of which data have been met, when its marker comes:
        the marker stays, and so does the entry in the transaction index. None to do nothing.
    """

    def __init__(self) -> None:
        self.keep_aborted: Callable[[TransactionIndexEntry], object] | None = None
        self._committed: set[int] = set()
        self._aborted: dict[int, TransactionIndexEntry] = {}
        self._with_data: set[int] = set()
        self._coming: list[tuple[int, int, TransactionIndexEntry]] = []  # a heap by first offset
        self._added = 0

    def add_aborted_transactions(self, entries: Iterable[TransactionIndexEntry]) -> None:
        """Note transactions that were aborted; one may be noted again while it is open."""
        for entry in entries:
            self._added += 1
            heapq.heappush(self._coming, (entry.first_offset, self._added, entry))

    def on_batch_read(self, producer_id: int, last_offset: int) -> bool:
        """Return whether a transactional data batch was aborted."""
        self._begin_aborted(last_offset)
        if producer_id in self._aborted:
            self._with_data.add(producer_id)
            return True
        self._committed.add(producer_id)
        return False

    def on_control_batch_read(
        self, producer_id: int, last_offset: int, control_type: ControlRecordType | None
    ) -> bool:
        """Return whether a control batch may be discarded; ``control_type`` None for an empty one.

        A marker may if no data of its transaction have been met.
        """
        self._begin_aborted(last_offset)
        if control_type is None:
            return True  # emptied by an earlier cleaning
        if control_type is ControlRecordType.ABORT:
            entry = self._aborted.pop(producer_id, None)
            if entry is None or producer_id not in self._with_data:
                return True
            self._with_data.remove(producer_id)
            if self.keep_aborted is not None:
                self.keep_aborted(entry)
            return False
        if control_type is ControlRecordType.COMMIT:
            has_data = producer_id in self._committed
            self._committed.discard(producer_id)
            return not has_data
        return False

    def _begin_aborted(self, offset: int) -> None:
        """Take the aborted transactions that begin up to ``offset`` for open."""
        while self._coming and self._coming[0][0] <= offset:
            entry = heapq.heappop(self._coming)[2]
            self._aborted.setdefault(entry.producer_id, entry)
