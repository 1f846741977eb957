"""A transaction that its coordinator is being asked about before its first batch is appended.

A partition must not take transactional data that the coordinator knows nothing of: nobody would
ever write the marker, and the last stable offset would stand still. So a leader asks first, and
the guard that it drew before asking has to come back with the batch. A marker or a batch in
between takes the guard away, and the batch is refused.

Source: VerificationStateEntry, VerificationGuard (Kafka 4.3; KIP-890).
"""

from __future__ import annotations

from dataclasses import dataclass, field


class VerificationGuard:
    """Stands for one verification; equal to itself only."""

    __slots__ = ()


@dataclass(slots=True)
class VerificationStateEntry:
    """A verification under way for one producer id. Guarded by the log's lock.

    Parameters
    ----------
    timestamp
        When it began, ms.
    lowest_sequence
        The lowest first sequence that waits for it. A higher one is refused, since the lower
        could never be appended after it.
    epoch
        The producer epoch of that sequence.
    supports_epoch_bump
        Whether the client is of transactions version 2, whose epoch rises with each transaction.
    verification_guard
        What the batch has to bring along.
    """

    timestamp: int
    lowest_sequence: int
    epoch: int
    supports_epoch_bump: bool = False
    verification_guard: VerificationGuard = field(default_factory=VerificationGuard)

    def maybe_update_lowest_sequence_and_epoch(self, sequence: int, epoch: int) -> None:
        """Take a lower sequence of the same epoch, or any of a higher epoch."""
        if epoch > self.epoch or (epoch == self.epoch and sequence < self.lowest_sequence):
            self.epoch = epoch
            self.lowest_sequence = sequence
