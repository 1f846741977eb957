"""What the program does when its server ends; the rest is in `tests.e2e.test_serve`."""

from __future__ import annotations

import errno
import os
import threading
from typing import TYPE_CHECKING

from pylog.cli.commands import serve as serve_module
from pylog.server.replica_manager import ReplicaManager

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.support.golden import GoldenRoot
    from tests.unit.cli.conftest import Outcome


def test_it_ends_with_the_error_that_ended_its_server(
    golden_root: GoldenRoot, pylog_run: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(replicas: ReplicaManager) -> None:
        raise OSError(errno.EIO, "Input/output error", "/logs/orders-0")

    monkeypatch.setattr(ReplicaManager, "follow", fail)
    outcome = pylog_run("serve", golden_root.case("4.3.0/txn"), "--port", 0, "--follow")
    assert outcome.status == 2
    assert outcome.error == "pylog: error: /logs/orders-0: Input/output error\n"


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
