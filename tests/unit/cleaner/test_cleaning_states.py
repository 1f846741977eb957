"""States of cleaning: a model that any order of calls is held against, and threads that wait."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pylog.cleaner.cleaning_states import CleaningStates
from pylog.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

FOO, BAR = TopicPartition("foo", 0), TopicPartition("bar", 0)
PATIENCE_SECONDS = 20.0


def text_of(states: CleaningStates, topic_partition: TopicPartition) -> str:
    state = states.state_of(topic_partition)
    return "none" if state is None else str(state)


def in_thread(task: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=task, daemon=True)
    thread.start()
    return thread


def wait_for(states: CleaningStates, topic_partition: TopicPartition, text: str) -> None:
    for _ in range(20_000):
        if text_of(states, topic_partition) == text:
            return
        threading.Event().wait(PATIENCE_SECONDS / 20_000)
    pytest.fail(f"state is {text_of(states, topic_partition)}, not {text}")


def test_what_is_in_progress_is_not_begun_again() -> None:
    states = CleaningStates()
    assert states.begin([FOO]) == [FOO]
    assert states.begin([FOO, BAR]) == [BAR]
    states.finish(FOO)
    assert states.begin([FOO]) == [FOO]


def test_what_nobody_is_at_is_paused_at_once_and_counts_its_pauses() -> None:
    states = CleaningStates()
    states.abort_and_pause(FOO)
    assert text_of(states, FOO) == "paused (1)"
    states.abort_and_pause(FOO)
    assert text_of(states, FOO) == "paused (2)"
    assert states.begin([FOO]) == []
    states.resume(FOO)
    assert (text_of(states, FOO), states.begin([FOO])) == ("paused (1)", [])
    states.resume(FOO)
    assert (text_of(states, FOO), states.begin([FOO])) == ("none", [FOO])


def test_callers_wait_until_a_cleaning_has_ended_and_each_of_them_pauses_it() -> None:
    states = CleaningStates()
    states.begin([FOO])
    first = in_thread(lambda: states.abort_and_pause(FOO))
    wait_for(states, FOO, "aborted (1)")
    second = in_thread(lambda: states.abort_and_pause(FOO))
    wait_for(states, FOO, "aborted (2)")
    assert states.is_aborted(FOO)
    assert first.is_alive()
    assert second.is_alive()
    states.finish(FOO)
    first.join(PATIENCE_SECONDS)
    second.join(PATIENCE_SECONDS)
    assert not first.is_alive()
    assert not second.is_alive()
    assert text_of(states, FOO) == "paused (2)"


@pytest.mark.parametrize(("pauses", "state"), [(0, "none"), (1, "paused (1)")])
def test_what_is_not_in_progress_cannot_be_finished(pauses: int, state: str) -> None:
    states = CleaningStates()
    for _ in range(pauses):
        states.abort_and_pause(FOO)
    with pytest.raises(RuntimeError) as caught:
        states.finish(FOO)
    assert str(caught.value) == f"cleaning of foo-0 ends, but its state is {state}"
    assert text_of(states, FOO) == state


def test_what_is_not_paused_cannot_be_resumed() -> None:
    states = CleaningStates()
    with pytest.raises(RuntimeError, match="its state is none"):
        states.resume(FOO)
    states.begin([FOO])
    with pytest.raises(RuntimeError, match="its state is in progress"):
        states.resume(FOO)


class StatesMachine(RuleBasedStateMachine):
    """Any order of calls, of which those that have to wait wait in threads, against a model.

    The model of a log: whether a thread is at work, and how many callers have asked for a pause.
    """

    def __init__(self) -> None:
        super().__init__()
        self.states = CleaningStates()
        self.working = {FOO: False, BAR: False}
        self.pauses = {FOO: 0, BAR: 0}
        self.waiting: dict[TopicPartition, list[threading.Thread]] = {FOO: [], BAR: []}

    @rule(log=st.sampled_from([FOO, BAR]))
    def begin(self, log: TopicPartition) -> None:
        may_begin = not self.working[log] and self.pauses[log] == 0
        assert self.states.begin([log]) == ([log] if may_begin else [])
        self.working[log] = self.working[log] or may_begin

    @rule(log=st.sampled_from([FOO, BAR]))
    def finish(self, log: TopicPartition) -> None:
        if not self.working[log]:
            with pytest.raises(RuntimeError):
                self.states.finish(log)
            return
        self.states.finish(log)
        self.working[log] = False
        for thread in self.waiting[log]:
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive()
        self.waiting[log] = []

    @rule(log=st.sampled_from([FOO, BAR]))
    def pause(self, log: TopicPartition) -> None:
        self.pauses[log] += 1
        if self.working[log]:
            thread = in_thread(lambda: self.states.abort_and_pause(log))
            wait_for(self.states, log, f"aborted ({self.pauses[log]})")
            self.waiting[log].append(thread)
        else:
            self.states.abort_and_pause(log)

    @rule(log=st.sampled_from([FOO, BAR]))
    def resume(self, log: TopicPartition) -> None:
        if self.working[log] or self.pauses[log] == 0:
            with pytest.raises(RuntimeError):
                self.states.resume(log)
            return
        self.states.resume(log)
        self.pauses[log] -= 1

    @invariant()
    def states_are_those_of_the_model(self) -> None:
        for log in (FOO, BAR):
            pauses = self.pauses[log]
            if self.working[log]:
                expected = f"aborted ({pauses})" if pauses else "in progress"
            else:
                expected = f"paused ({pauses})" if pauses else "none"
            assert text_of(self.states, log) == expected
            assert self.states.is_aborted(log) == expected.startswith("aborted")
            assert all(thread.is_alive() for thread in self.waiting[log])

    def teardown(self) -> None:
        for log in (FOO, BAR):
            if self.working[log]:
                self.finish(log)


TestStatesMachine = StatesMachine.TestCase
TestStatesMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
