"""An iterator whose first items are made by another thread, before they are asked for."""

from __future__ import annotations

from concurrent.futures import wait
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from pylog.errors import LogStorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from pylog.scheduling.worker_threads import WorkerThreads


class _Sized(Protocol):
    """A record batch, say, or some text."""

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        ...


_Item = TypeVar("_Item", bound=_Sized)


class _Made(NamedTuple, Generic[_Item]):
    """What a thread has made; ``rest`` goes on where it has stopped."""

    items: list[_Item]
    rest: Iterator[_Item]
    is_finished: bool
    error: LogStorageError | None


class HeadStart(Generic[_Item]):
    """What is made one by one, the first ones by a worker thread. To be iterated once.

    The thread stops when it has made so much that memory counts; the rest is made by whoever
    iterates. So it never waits, and nobody who stops iterating leaves it waiting.

    Parameters
    ----------
    workers
        Whose thread it is.
    make
        Returns the iterator; called by the thread, or by whoever iterates in a forked child, which
        has no threads.
    most_bytes
        The thread stops after the item that reaches it.
    """

    def __init__(
        self,
        workers: WorkerThreads,
        make: Callable[[], Iterator[_Item]],
        most_bytes: int,
    ) -> None:
        self._workers = workers
        self._make = make
        self._most_bytes = most_bytes
        self._is_abandoned = False
        self._future: Future[_Made[_Item]] = workers.submit(self._start)

    def _start(self) -> _Made[_Item]:
        made: list[_Item] = []
        rest = self._make()
        size = 0
        try:
            for item in rest:
                made.append(item)
                size += item.nbytes
                if size >= self._most_bytes or self._is_abandoned:
                    return _Made(made, rest, is_finished=False, error=None)
        except LogStorageError as error:
            return _Made(made, rest, is_finished=True, error=error)
        return _Made(made, rest, is_finished=True, error=None)

    @property
    def is_here(self) -> bool:
        """Whether its thread is one of this process."""
        return self._workers.are_here

    def __iter__(self) -> Iterator[_Item]:
        """Yield them, and then raise what stopped them."""
        if not self._workers.are_here:
            yield from self._make()
            return
        made = self._future.result()
        made.items.reverse()
        while made.items:
            yield made.items.pop()
        if made.error is not None:
            raise made.error
        if not made.is_finished:
            yield from made.rest

    def wait(self) -> None:
        """Return once the thread has made what it makes; only where `is_here`."""
        self._future.result()

    def stop(self) -> bool:
        """Have the thread stop, and return once it has; False where it is not of this process."""
        self.abandon()
        if not self._workers.are_here:
            return False
        if not self._future.cancelled():
            wait((self._future,))
        return True

    def abandon(self) -> None:
        """Have the thread stop soon: nobody will iterate."""
        self._is_abandoned = True
        if self._workers.are_here:
            self._future.cancel()
