"""Start, high watermark and first unstable offset of a log, and the rules between them.

Always ``log start <= high watermark <= log end``. The first unstable offset is that of the oldest
transaction that is open, or whose marker is not replicated yet; never below the log's start.

Source: UnifiedLog (Kafka 4.3; KIP-98). Differs from Kafka since 4.0, where a read lowers a high
watermark or a first unstable offset that lies inside a batch, or in a gap, to the base offset of
the batch found there: here a read moves nothing, and readers get the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pylog.producers.producer_state_manager import ProducerStateManager


class LogOffsets:
    """Offsets that move while a log lives; its lock guards every change, readers need none.

    Parameters
    ----------
    log_start_offset
        First offset served; the high watermark begins here.
    producer_state
        Of the log: knows the transactions.
    """

    __slots__ = ("_producer_state", "first_unstable_offset", "high_watermark", "log_start_offset")

    def __init__(self, log_start_offset: int, producer_state: ProducerStateManager) -> None:
        self.log_start_offset = log_start_offset
        self.high_watermark = log_start_offset
        self.first_unstable_offset: int | None = None
        self._producer_state = producer_state
        self.update_first_unstable_offset()

    @property
    def last_stable_offset(self) -> int:
        """Below it every transaction is decided, and everything replicated."""
        unstable, high_watermark = self.first_unstable_offset, self.high_watermark
        return high_watermark if unstable is None else min(unstable, high_watermark)

    def update_first_unstable_offset(self) -> None:
        """Ask the transactions anew."""
        unstable = self._producer_state.first_unstable_offset
        if unstable is not None:
            unstable = max(unstable, self.log_start_offset)
        self.first_unstable_offset = unstable

    def update_high_watermark(self, offset: int, log_end_offset: int) -> None:
        """Move the high watermark to ``offset``, or as near as start and end allow."""
        self.high_watermark = max(self.log_start_offset, min(offset, log_end_offset))
        self._producer_state.on_high_watermark_updated(self.high_watermark)
        self.update_first_unstable_offset()

    def raise_log_start(self, offset: int) -> None:
        """Serve nothing below ``offset`` any more."""
        self.log_start_offset = offset
        self._producer_state.on_log_start_offset_incremented(offset)
        self.update_first_unstable_offset()
