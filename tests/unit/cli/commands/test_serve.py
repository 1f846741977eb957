"""What the program does when its server ends; the rest is in `tests.e2e.test_serve`."""

from __future__ import annotations

import errno
import io
import logging
import os
import sys
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from pylog.cli import main
from pylog.cli.commands import serve as serve_module
from pylog.server.metrics import Metrics
from pylog.server.replica_manager import ReplicaManager

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.golden import GoldenRoot
    from tests.unit.cli.conftest import Outcome


def test_it_ends_with_the_error_that_ended_its_server(
    golden_root: GoldenRoot, pylog_run: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = []

    async def fail(replicas: ReplicaManager) -> None:
        turns.append(sys.getswitchinterval())
        raise OSError(errno.EIO, "Input/output error", "/logs/orders-0")

    monkeypatch.setattr(ReplicaManager, "follow", fail)
    outcome = pylog_run("serve", golden_root.case("4.3.0/txn"), "--port", 0, "--follow")
    assert outcome.status == 2
    assert outcome.error == "pylog: error: /logs/orders-0: Input/output error\n"
    assert turns == [pytest.approx(0.0005)]
    assert sys.getswitchinterval() == pytest.approx(0.005)


def test_a_log_line_takes_the_place_of_the_status_line(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, output = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(sys, "stdout", output)
    server = SimpleNamespace(metrics=Metrics(connections=1, accepted=3, requests=7, sent_bytes=10))
    logger, warnings = logging.getLogger("pylog"), main._WarningsOnStderr(logging.WARNING)
    logger.addHandler(warnings)
    try:
        with serve_module._totals(server, has_status=True, as_json=False):  # type: ignore[arg-type]
            serve_module._print_status(server)  # type: ignore[arg-type]
            logger.warning("something")
    finally:
        logger.removeHandler(warnings)
    _, status, line, rest = screen.getvalue().split("\r\x1b[K")
    assert status.startswith("1 connection, 0 groups, ")
    assert (line, rest) == ("pylog: warning: something\n", "")
    assert output.getvalue() == "Served 7 requests of 3 connections with 10B in 0s\n"


def test_it_ends_in_time_where_threads_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    has_ended, stop = threading.Event(), threading.Event()
    statuses: list[int] = []

    def end(status: int) -> None:
        statuses.append(status)
        has_ended.set()

    assert serve_module._END_SECONDS < 5
    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.setattr(serve_module, "_END_SECONDS", 0.01)
    with serve_module._ended_in_time(stop):
        stop.set()
        assert has_ended.wait(20)  # while this thread still has work to do
    assert statuses == [0]


def test_rules_for_masking_and_follow_are_refused_together(
    golden_root: GoldenRoot, pylog_run: Callable[..., Outcome], tmp_path: Path
) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[[mask]]\nkey = true\nreplace = "x"\n')
    given = ("serve", golden_root.case("4.3.0/txn"), "--port", 0, "--mask", rules)
    outcome = pylog_run(*given, "--follow")
    assert outcome.status == 2
    assert outcome.error.startswith("pylog: error: masking (--mask) is not for a log that grows")
    rules.write_text("[[mask]]\n")
    assert pylog_run(*given).status == 2
