"""Which transactions are open at some point of a log that is walked through."""

from __future__ import annotations

from pylog.model import ControlRecordType


class OpenTransactions:
    """The transactions that are open, by producer id.

    After damage nobody knows whether a transaction that was open before it has been decided in
    it. Its batches count as aborted, up to the next marker of its producer.

    Parameters
    ----------
    since
        First offset of each that is open at the start, by producer id.
    """

    def __init__(self, since: dict[int, int]) -> None:
        self._since = since
        self._undecidable: set[int] = set()

    def note_damage(self) -> None:
        """Note that batches are missing here."""
        self._undecidable.update(self._since)

    def note_data(self, producer_id: int, offset: int) -> None:
        """Note a data batch."""
        self._since.setdefault(producer_id, offset)

    def end(self, producer_id: int, kind: ControlRecordType) -> int | None:
        """Note a marker; return the first offset of the transaction if it counts as aborted."""
        since = self._since.pop(producer_id, None)
        is_aborted = kind is ControlRecordType.ABORT or producer_id in self._undecidable
        self._undecidable.discard(producer_id)
        return since if is_aborted else None

    def __bool__(self) -> bool:
        return bool(self._since)

    @property
    def first_offsets(self) -> dict[int, int]:
        """First offset by producer id, of all that are open."""
        return self._since

    @property
    def decidable(self) -> list[int]:
        """First offsets of those that a marker may still decide."""
        return [at for each, at in self._since.items() if each not in self._undecidable]
