from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from tests.unit.server.fetches import write
from tests.unit.server.served_sockets import CASE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pylog.results import BrokerServer
    from tests.support.golden import GoldenRoot


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    directory = tmp_path / "logs"
    directory.mkdir()
    pylog.create_topic(directory, "orders", partitions=1)
    write(directory, 5)
    return directory


@pytest.fixture
def case(golden_root: GoldenRoot) -> Path:
    return golden_root.case(CASE)


@pytest.fixture
def server(case: Path) -> Iterator[BrokerServer]:
    with pylog.serve(case) as running:
        yield running
