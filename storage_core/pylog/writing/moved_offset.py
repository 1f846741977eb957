"""Where a log's start or end is after records were taken away, or would be."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pylog.reading.removal_preview import Removal


class MovedOffset(NamedTuple):
    """The log start offset, or the log end offset (exclusive), of one partition.

    Attributes
    ----------
    before, after
        The removal.
    removal
        What would go, if nothing has been removed yet; None once it is done.
    """

    before: int
    after: int
    removal: Removal | None = None
