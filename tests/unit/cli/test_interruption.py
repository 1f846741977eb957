from __future__ import annotations

import signal
import threading

import pytest

from pylog.cli.interruption import Interruption


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
