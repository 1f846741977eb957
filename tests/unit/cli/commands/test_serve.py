"""What the program does when its server ends; the rest is in `tests.e2e.test_serve`."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

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
