"""Transactions of one partition in the order in which they began."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class TxnMetadata(NamedTuple):
    """Where a transaction begins and, once it has a marker, where that is (Kafka: TxnMetadata)."""

    producer_id: int
    first_offset: int
    last_offset: int | None = None


def _first_offset(transaction: TxnMetadata) -> int:
    return transaction.first_offset


class TransactionsByFirstOffset:
    """Transactions, each at its first offset, which no other one has; iterates in that order.

    Transactions begin in the order of their offsets, so adding one is almost always an append.
    Guarded by the log's lock.
    """

    def __init__(self) -> None:
        self._transactions: list[TxnMetadata] = []

    def __len__(self) -> int:
        return len(self._transactions)

    def __iter__(self) -> Iterator[TxnMetadata]:
        return iter(self._transactions)

    @property
    def first(self) -> TxnMetadata | None:
        """The one that began first, None if there is none."""
        return self._transactions[0] if self._transactions else None

    def put(self, transaction: TxnMetadata) -> None:
        """Add a transaction, in the place of the one that began at the same offset."""
        at = self._slot(transaction.first_offset)
        if self._is_at(at, transaction.first_offset):
            self._transactions[at] = transaction
        else:
            self._transactions.insert(at, transaction)

    def pop(self, first_offset: int) -> TxnMetadata | None:
        """Remove and return the transaction that began at ``first_offset``, if there is one."""
        at = self._slot(first_offset)
        return self._transactions.pop(at) if self._is_at(at, first_offset) else None

    def remove_completed_before(self, offset: int) -> None:
        """Remove every transaction whose marker is below ``offset``."""
        self._transactions = [
            each
            for each in self._transactions
            if each.last_offset is None or each.last_offset >= offset
        ]

    def clear(self) -> None:
        """Remove all."""
        self._transactions.clear()

    def _slot(self, first_offset: int) -> int:
        return bisect_left(self._transactions, first_offset, key=_first_offset)

    def _is_at(self, at: int, first_offset: int) -> bool:
        return at < len(self) and self._transactions[at].first_offset == first_offset
