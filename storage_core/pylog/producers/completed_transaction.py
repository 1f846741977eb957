"""A transaction that has just got its marker."""

from __future__ import annotations

from typing import NamedTuple


class CompletedTransaction(NamedTuple):
    """Offsets and outcome of a transaction that wrote data here (Kafka: CompletedTxn).

    ``first_offset`` is that of its first data record, ``last_offset`` that of its marker; both
    are inclusive.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool
