"""Findings about transactions that are open in a log, and that no coordinator will end.

Consumers of committed records wait at the first of them for ever.

Source: LogTransactionState of ``kafka-transactions.sh find-hanging`` (KIP-664).
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from pylog.checks.group_findings import chosen_replicas
from pylog.findings import kinds
from pylog.findings.finding import Effect, Finding
from pylog.reading.damage import DamageReport
from pylog.reading.transactional_ids import transactional_ids

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pylog.checks.broker_start import BrokerStart
    from pylog.internal_topics.metadata_image import MetadataImage
    from pylog.producers.producer_state_entry import TxnMetadata
    from pylog.reading.log_view import LogView
    from pylog.reading.transactional_ids import CoordinatedTransaction, Coordinators


class HangingTransactions:
    """What a cluster's ``__transaction_state`` has, read once something is open. For all threads.

    A coordinator writes which partitions a transaction is in before anything is written there, and
    that it has ended after its last marker. So it is asked after the log was read; what it has
    written since ``began_ms``, when the first log was looked at, says nothing of that log.
    """

    def __init__(self, views: Sequence[LogView], image: MetadataImage, began_ms: int) -> None:
        self._views = chosen_replicas(views)
        self._image = image
        self._began_ms = began_ms
        self._lock = Lock()
        self._ends: list[int] = []
        self._coordinators: Coordinators | None = None

    def findings(self, view: LogView, start: BrokerStart | None) -> Iterator[Finding]:
        """Yield what a log has open that nobody ends, once it has been read."""
        if start is None or not start.open_transactions or not self._views:
            return
        coordinators = self._read()
        for each in start.open_transactions:
            known = coordinators.find(each.producer_id, view.topic, view.partition)
            if known is None or known.updated_ms >= self._began_ms:
                continue
            if not known.covers(each.producer_id, view.topic, view.partition):
                yield _finding(view, each, known, start)

    def _read(self) -> Coordinators:
        """Return what the coordinators have written up to now."""
        with self._lock:
            views = [
                each.refreshed().with_damage(DamageReport(is_logged=False)) for each in self._views
            ]
            ends = [each.log_end_offset for each in views]
            if self._coordinators is None or ends != self._ends:
                # Damage is found by itself.
                self._coordinators = transactional_ids(views, self._image, None, [])
                self._ends = ends
            return self._coordinators


def _finding(
    view: LogView, transaction: TxnMetadata, known: CoordinatedTransaction, start: BrokerStart
) -> Finding:
    message = (
        f"a transaction of producer {transaction.producer_id} is open since offset "
        f"{transaction.first_offset}, and nothing will end it: of its transactional id "
        f"{known.transactional_id}, the coordinator has {known.state} without this partition"
    )
    return kinds.HANGING_TRANSACTION.found(
        view.directory.path,
        message,
        next_offset=max(transaction.first_offset, start.log_start_offset),
        end_offset=start.log_end_offset,
        own_effect=Effect.CONSUMERS,
    )
