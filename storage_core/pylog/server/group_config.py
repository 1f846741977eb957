"""What groups are given: limits and times, and a timer; and how a request is refused.

Source: GroupCoordinatorConfig, OffsetConfig, CoordinatorTimer (Kafka 4.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Hashable

    from pylog.server.protocol import Errors


INITIAL_REBALANCE_DELAY_MS = 100
GROUP_MAX_SIZE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCoordinatorConfig:
    """Limits and times of groups; names are those of Kafka's properties.

    Differs from Kafka, where a group may have any number of members and metadata of any size, there
    may be any number of groups, the first rebalance waits 3 s for others to join, and members of
    the consumer protocol send a heartbeat every 5 s.
    """

    group_initial_rebalance_delay_ms: int = INITIAL_REBALANCE_DELAY_MS  # of classic groups
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_new_member_join_timeout_ms: int = 300_000  # of one that waits for a rebalance
    group_max_size: int = GROUP_MAX_SIZE
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 1_000
    consumer_metadata_refresh_interval_ms: int = 1_000
    consumer_assignment_interval_ms: int = 1_000  # of groups that are assigned in a thread
    consumer_regex_refresh_interval_ms: int = 10_000
    offset_metadata_max_bytes: int = 4_096
    max_groups: int = 10_000  # of all kinds, with those that have only committed offsets
    max_group_id_length: int = 1_000  # in characters
    max_group_bytes: int = 64 << 20  # all groups, and what their members subscribe to and have
    max_offsets_bytes: int = 64 << 20  # what all groups have committed


class GroupError(Exception):
    """A request about a group that is refused (Kafka: ApiException)."""

    def __init__(self, error: Errors, message: str | None = None) -> None:
        super().__init__(error, message)
        self.error = error
        self.message = message


class CoordinatorTimer:
    """Calls back in the thread of an event loop: one timeout for each key."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handles: dict[Hashable, asyncio.TimerHandle] = {}

    def schedule(self, key: Hashable, delay_ms: int, callback: Callable[[], None]) -> None:
        """Call ``callback`` in ``delay_ms``, in place of what was scheduled under ``key``."""
        self.cancel(key)

        def run() -> None:
            del self._handles[key]
            callback()

        self._handles[key] = self._loop.call_later(delay_ms / 1000, run)

    def cancel(self, key: Hashable) -> None:
        """Forget what is scheduled under ``key``, if anything is."""
        handle = self._handles.pop(key, None)
        if handle is not None:
            handle.cancel()

    def milliseconds(self) -> int:
        """Return the time of a clock that never jumps."""
        return int(self._loop.time() * 1000)

    def close(self) -> None:
        """Forget everything."""
        for key in list(self._handles):
            self.cancel(key)
