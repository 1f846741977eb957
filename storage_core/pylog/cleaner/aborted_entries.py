"""The aborted transactions that a cleaning needs to know of.

Source: UnifiedLog.collectAbortedTransactions, LocalLog.collectAbortedTransactions (Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.files.transaction_index import collect_entries

if TYPE_CHECKING:
    from pylog.cleaner.cleanable_log import CleanableLog
    from pylog.files.transaction_index import TransactionIndexEntry
    from pylog.log.log_segment import LogSegment


def collect_aborted_entries(
    log: CleanableLog, segment: LogSegment, end_offset: int
) -> list[TransactionIndexEntry]:
    """Return what the transaction indexes from ``segment`` on say of offsets below ``end_offset``.

    A transaction whose marker lies below the log's start is left out, as in Kafka: then its data,
    which nobody is served, are kept and dropped like all others.
    """
    collected: list[TransactionIndexEntry] = []
    following: LogSegment | None = segment
    while following is not None:
        entries, is_complete = collect_entries(
            following.transaction_index.entries(), log.log_start_offset, end_offset
        )
        collected += entries
        if is_complete:
            break
        following = log.local_log.segments.higher_segment(following.base_offset)
    return collected
