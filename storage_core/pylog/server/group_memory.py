"""How much memory groups and their members take: one count, and one limit.

Strings and bytes count as what they take; what stands around them counts by the constants below,
which a test compares with the memory that is really taken.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pylog.server.group_config import GroupError
from pylog.server.protocol import Errors
from pylog.server.rate_limited_log import server_logger

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylog.server.assignors import Assignment

_LOGGER = server_logger(__name__)

GROUP_BYTES = 2_000
MEMBER_BYTES = 3_000
PENDING_BYTES = 1_000
NAME_BYTES = 100


class GroupMemory:
    """What all groups take, each of them telling what it takes more or less.

    One thread, that of the event loop.
    """

    def __init__(self, most: int) -> None:
        self.total = 0
        self._most = most

    def has_room(self, added: int) -> bool:
        """Return whether so many more bytes may be kept."""
        return self.total + added <= self._most

    def ensure_room(self, added: int) -> None:
        """Raise `GroupError` if so much more may not be kept."""
        if not self.has_room(added):
            _LOGGER.warning(
                "a member is refused: all groups take %d bytes, at most %d are kept",
                self.total + added,
                self._most,
            )
            raise GroupError(Errors.GROUP_MAX_SIZE_REACHED)


def size_of_names(*names: str | bytes | None) -> int:
    """Return what names and values take that a client has sent."""
    return sum(NAME_BYTES + sys.getsizeof(each) for each in names if each is not None)


def size_of_assignments(assignments: Iterable[Assignment]) -> int:
    """Return the memory that partitions by topic take."""
    return sum(
        NAME_BYTES + sys.getsizeof(partitions)
        for assignment in assignments
        for partitions in assignment.values()
    )
