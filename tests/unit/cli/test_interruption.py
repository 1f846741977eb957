from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

import pytest

from pylog.cli.progress import Interruption, stopped_by

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def ctrl_c_is_pythons_to_answer() -> Iterator[None]:
    """Whatever started the tests: a shell's background jobs ignore SIGINT, Spark takes it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_ctrl_c_waits_until_it_is_allowed() -> None:
    steps = []
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGINT)
        steps.append("not interrupted")
        with pytest.raises(KeyboardInterrupt), interruption.allowed():
            steps.append("never reached")
    assert steps == ["not interrupted"]


def test_a_ctrl_c_while_waiting_comes_at_once() -> None:
    steps = []

    def wait(interruption: Interruption) -> None:
        with interruption.allowed():
            steps.append("waiting")
            signal.raise_signal(signal.SIGINT)
            steps.append("never reached")

    with Interruption() as interruption, pytest.raises(KeyboardInterrupt):
        wait(interruption)
    assert steps == ["waiting"]


def test_the_handler_of_before_comes_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interruption():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before


def test_other_threads_may_use_it_and_change_nothing() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def use() -> None:
        with Interruption() as interruption, interruption.allowed():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert seen == [before]


def do_nothing() -> None:
    pass


def test_foreign_code_is_stopped_by_another_thread() -> None:
    stopped = threading.Event()
    stoppers: list[str] = []

    def stop() -> None:
        stoppers.append(threading.current_thread().name)
        stopped.set()

    with pytest.raises(KeyboardInterrupt), stopped_by(stop):
        signal.raise_signal(signal.SIGINT)
    # Leaving the block has waited for it.
    assert stopped.is_set()
    assert stoppers == ["pylog-interrupt"]


def test_an_error_that_ctrl_c_has_made_is_an_interrupt() -> None:
    def work() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            msg = "Query interrupted"
            raise RuntimeError(msg) from None

    with pytest.raises(KeyboardInterrupt), stopped_by(do_nothing):
        work()


def test_other_errors_and_signals_pass_and_nothing_is_left_behind() -> None:
    handler = signal.getsignal(signal.SIGINT)
    other = signal.signal(signal.SIGUSR1, lambda *_: None)
    stops: list[None] = []

    def fail() -> None:
        signal.raise_signal(signal.SIGUSR1)
        msg = "no"
        raise ValueError(msg)

    try:
        with pytest.raises(ValueError, match="no"), stopped_by(lambda: stops.append(None)):
            fail()
    finally:
        signal.signal(signal.SIGUSR1, other)
    assert stops == []
    assert signal.getsignal(signal.SIGINT) is handler
    assert signal.set_wakeup_fd(-1) == -1
    assert "pylog-interrupt" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_a_signal_that_is_not_pythons_to_answer_is_left_alone(handler: signal.Handlers) -> None:
    before = signal.signal(signal.SIGINT, handler)
    try:
        with stopped_by(do_nothing):
            assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_than_the_main_one_changes_nothing() -> None:
    handlers = []

    def look() -> None:
        with stopped_by(do_nothing):
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]
