"""Where a log starts or ends before and after a removal of records."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from pylog.reading.removal_preview import Removal
    from pylog.writing.held_back import HeldBack

PartitionT = TypeVar("PartitionT", bound=tuple[str, int])
"""A partition, as a pair of topic and number; `TopicPartition` is one."""


class MovedOffset(NamedTuple):
    """The log start offset, or the log end offset (exclusive), of one partition.

    Attributes
    ----------
    before, after
        The offset before and after the removal.
    removal
        What would be removed, if this is a plan; None if the removal has been done.
    held_back
        What stays of the records that were all to go, because it may not be replicated.
    """

    before: int
    after: int
    removal: Removal | None = None
    held_back: HeldBack | None = None
