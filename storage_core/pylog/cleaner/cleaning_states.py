"""Which logs are being cleaned, and which must not be.

Source: LogCleaningState, LogCleanerManager (Kafka 4.3). Differs from Kafka, where only one
caller may wait for a cleaning to be aborted: here two threads may truncate a log at a time, and
it is paused for each of them.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import LogStorageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pylog.model import TopicPartition


class CleaningAbortedError(LogStorageError):
    """A cleaning that is given up, because its log is truncated or deleted or the cleaner ends.

    Kafka: LogCleaningAbortedException. Nobody sees it but the cleaner.
    """


class CleaningStateKind(Enum):
    """What is going on; no entry means that nothing is."""

    IN_PROGRESS = "in progress"
    ABORTED = "aborted"
    PAUSED = "paused"


class CleaningState(NamedTuple):
    """The state of one log, and how many callers want it left alone."""

    kind: CleaningStateKind
    pauses: int = 0

    def __str__(self) -> str:
        return f"{self.kind.value} ({self.pauses})" if self.pauses else self.kind.value


class _Event(Enum):
    """What happens to the cleaning of a log."""

    BEGINS = "begins"
    ENDS = "ends"
    IS_PAUSED = "is paused"
    IS_RESUMED = "is resumed"


IN_PROGRESS = CleaningState(CleaningStateKind.IN_PROGRESS)
_ABORTED, _PAUSED = CleaningStateKind.ABORTED, CleaningStateKind.PAUSED
_STEPS: Mapping[tuple[CleaningStateKind | None, _Event], tuple[CleaningStateKind | None, int]] = {
    (None, _Event.BEGINS): (IN_PROGRESS.kind, 0),
    (None, _Event.IS_PAUSED): (_PAUSED, 1),
    (IN_PROGRESS.kind, _Event.ENDS): (None, 0),
    (IN_PROGRESS.kind, _Event.IS_PAUSED): (_ABORTED, 1),
    (_ABORTED, _Event.ENDS): (_PAUSED, 0),
    (_ABORTED, _Event.IS_PAUSED): (_ABORTED, 1),
    (_PAUSED, _Event.IS_PAUSED): (_PAUSED, 1),
    (_PAUSED, _Event.IS_RESUMED): (_PAUSED, -1),  # None once no caller wants it left alone
}
"""The next state, and how many callers more want the log left alone. No other step exists.

A log is never cleaned, or its old segments removed by the cleaner, in another state than *in
progress*, and its state is None while nobody asks for something. A thread that is at work on an
*aborted* log has to stop.
"""


class CleaningStates:
    """The states of all logs. Any number of threads may ask and change.

    Its lock may be held while a checkpoint is written, and comes before the lock of that; whoever
    waits here for a cleaning to end holds no lock that cleaning takes (`pylog.log.log_manager`).
    """

    def __init__(self) -> None:
        self._states: dict[TopicPartition, CleaningState] = {}
        self._changed = threading.Condition(threading.RLock())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let nobody change a state within the block."""
        with self._changed:
            yield

    def state_of(self, topic_partition: TopicPartition) -> CleaningState | None:
        """Return the state of a log, None if nothing is going on."""
        return self._states.get(topic_partition)

    def is_aborted(self, topic_partition: TopicPartition) -> bool:
        """Whether the cleaning of a log is to stop; takes no lock."""
        state = self._states.get(topic_partition)
        return state is not None and state.kind is CleaningStateKind.ABORTED

    def begin(self, topic_partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Mark those logs as in progress of which nothing is going on; return them."""
        with self._changed:
            begun = [each for each in topic_partitions if each not in self._states]
            for each in begun:
                self._take(each, _Event.BEGINS)
            return begun

    def finish(self, topic_partition: TopicPartition) -> None:
        """Note that the thread is done with a log, whether it was aborted or not."""
        with self._changed:
            self._take(topic_partition, _Event.ENDS)
            self._changed.notify_all()

    def abort_and_pause(self, topic_partition: TopicPartition) -> None:
        """Return when nothing is at work on a log; nobody begins until `resume` is called."""
        with self._changed:
            self._take(topic_partition, _Event.IS_PAUSED)
            while self.is_aborted(topic_partition):
                self._changed.wait()

    def resume(self, topic_partition: TopicPartition) -> None:
        """Undo one `abort_and_pause`."""
        with self._changed:
            self._take(topic_partition, _Event.IS_RESUMED)

    def _take(self, topic_partition: TopicPartition, event: _Event) -> None:
        """Take one step of the table; the caller has the lock."""
        state = self._states.get(topic_partition)
        kind, pauses = state or (None, 0)
        if (kind, event) not in _STEPS:
            msg = f"cleaning of {topic_partition} {event.value}, but its state is {state or 'none'}"
            raise RuntimeError(msg)
        kind, more = _STEPS[kind, event]
        pauses += more
        if kind is None or (kind is _PAUSED and not pauses):
            del self._states[topic_partition]
        else:
            self._states[topic_partition] = CleaningState(kind, pauses)
