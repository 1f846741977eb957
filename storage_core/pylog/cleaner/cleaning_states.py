"""Which logs are being cleaned, and which must not be.

A log has one of four states. It is never cleaned, or its old segments removed by the cleaner, in
another one than *in progress*, and has no other than *none* while nobody asks for something:

============ ====================================== ==============================================
state        what it means                          what ends it
============ ====================================== ==============================================
none         may be cleaned                         `begin`, `abort_and_pause`
in progress  a thread is at work on it              `finish`: none; `abort_and_pause`: aborted
aborted (n)  the thread is to stop; n callers wait  `finish`: paused (n); `abort_and_pause`: n + 1
paused (n)   nobody may begin, n callers asked      `resume`: n - 1, from 1 none;
                                                    `abort_and_pause`: n + 1
============ ====================================== ==============================================

Source: LogCleaningState, LogCleanerManager (Kafka 4.3). Differs from Kafka, where only one caller
may wait for a cleaning to be aborted: here a log may be truncated by two threads at a time, and is
paused for each of them.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import LogStorageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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


IN_PROGRESS = CleaningState(CleaningStateKind.IN_PROGRESS)


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
            self._states.update(dict.fromkeys(begun, IN_PROGRESS))
            return begun

    def finish(self, topic_partition: TopicPartition) -> None:
        """Note that the thread is done with a log, whether it was aborted or not.

        Raises
        ------
        RuntimeError
            The log is not in progress, nor aborted.
        """
        with self._changed:
            state = self._states.get(topic_partition)
            if state == IN_PROGRESS:
                del self._states[topic_partition]
            elif state is not None and state.kind is CleaningStateKind.ABORTED:
                self._states[topic_partition] = CleaningState(
                    CleaningStateKind.PAUSED, state.pauses
                )
                self._changed.notify_all()
            else:
                msg = f"cleaning of {topic_partition} ends, but its state is {_text(state)}"
                raise RuntimeError(msg)

    def abort_and_pause(self, topic_partition: TopicPartition) -> None:
        """Return when nothing is at work on a log; nobody begins until `resume` is called."""
        with self._changed:
            state = self._states.get(topic_partition)
            is_at_rest = state is None or state.kind is CleaningStateKind.PAUSED
            kind = CleaningStateKind.PAUSED if is_at_rest else CleaningStateKind.ABORTED
            pauses = 1 if state is None else state.pauses + 1
            self._states[topic_partition] = CleaningState(kind, pauses)
            while self.is_aborted(topic_partition):
                self._changed.wait()

    def resume(self, topic_partition: TopicPartition) -> None:
        """Undo one `abort_and_pause`.

        Raises
        ------
        RuntimeError
            The log is not paused.
        """
        with self._changed:
            state = self._states.get(topic_partition)
            if state is None or state.kind is not CleaningStateKind.PAUSED:
                msg = f"cleaning of {topic_partition} is resumed, but its state is {_text(state)}"
                raise RuntimeError(msg)
            if state.pauses > 1:
                self._states[topic_partition] = state._replace(pauses=state.pauses - 1)
            else:
                del self._states[topic_partition]


def _text(state: CleaningState | None) -> str:
    return "none" if state is None else str(state)
