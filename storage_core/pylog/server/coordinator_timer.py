"""What a coordinator does later: one timeout for each key (Kafka: CoordinatorTimer)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Hashable


class CoordinatorTimer(Protocol):
    """Calls back in the thread of the coordinator."""

    def schedule(self, key: Hashable, delay_ms: int, callback: Callable[[], None]) -> None:
        """Call ``callback`` in ``delay_ms``, in place of what was scheduled under ``key``."""

    def cancel(self, key: Hashable) -> None:
        """Forget what is scheduled under ``key``, if anything is."""

    def milliseconds(self) -> int:
        """Return the time of a clock that never jumps."""


class EventLoopTimer:
    """The timer of an event loop."""

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
