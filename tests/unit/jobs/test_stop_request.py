"""Signals ask the work to end, and the work has time for that."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from pylog_jobs import stop_request
from pylog_jobs.stop_request import StoppableWork, StoppedError, StopRequest

SIGNALS = [signal.SIGTERM, signal.SIGINT]


def send_soon(number: signal.Signals) -> None:
    threading.Timer(0.1, os.kill, [os.getpid(), number]).start()


def handlers() -> list[object]:
    return [signal.getsignal(each) for each in SIGNALS]


def test_work_that_is_left_alone_returns_or_raises() -> None:
    before = handlers()
    assert StoppableWork(lambda _: 7).run() == 7
    with pytest.raises(ValueError, match="invalid literal"):
        StoppableWork(lambda _: int("x")).run()
    assert handlers() == before


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_cancels_the_step_and_waits_for_the_work_to_clean_up(
    number: signal.Signals,
) -> None:
    cancelled, cleaned = threading.Event(), threading.Event()
    before = handlers()

    def work(stop: StopRequest) -> None:
        stop.cancel = cancelled.set
        send_soon(number)
        assert cancelled.wait(30)
        time.sleep(0.3)  # what an abort does
        cleaned.set()
        raise RuntimeError("cancelled")

    with pytest.raises(StoppedError, match=f"^stopped by {number.name}$") as caught:
        StoppableWork(work).run()
    assert cleaned.is_set()
    assert caught.value.signal == number
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert handlers() == before


def test_what_cannot_be_cancelled_any_more_changes_nothing() -> None:
    def work(stop: StopRequest) -> None:
        def cancel() -> None:
            called.set()
            raise RuntimeError("Cannot call methods on a stopped SparkContext")

        called = threading.Event()
        stop.cancel = cancel
        send_soon(signal.SIGTERM)
        assert called.wait(30)
        raise RuntimeError("cancelled")

    with pytest.raises(StoppedError, match=r"^stopped by SIGTERM$"):
        StoppableWork(work).run()


def test_steps_that_begin_after_the_signal_are_cancelled_too() -> None:
    calls = []

    def work(stop: StopRequest) -> None:
        stop.cancel = lambda: calls.append(1)
        send_soon(signal.SIGTERM)
        while len(calls) < 3:
            time.sleep(0.01)
        stop.ensure_not_requested()

    with pytest.raises(StoppedError):
        StoppableWork(work).run()


def test_work_that_was_done_before_it_could_be_stopped_is_done() -> None:
    def work(stop: StopRequest) -> str:
        send_soon(signal.SIGTERM)
        assert stop.wait(30)
        return "committed"

    assert StoppableWork(work).run() == "committed"


def test_work_that_does_not_end_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop_request, "GRACE_SECONDS", 0.5)
    release = threading.Event()

    def work(stop: StopRequest) -> None:
        send_soon(signal.SIGTERM)
        release.wait(60)

    with pytest.raises(StoppedError):
        StoppableWork(work).run()
    release.set()
