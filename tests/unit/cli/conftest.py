"""The program in this process: its status, and what it wrote."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pylog.cli.commands.demo import demo
from pylog.cli.main import run
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    status: int
    output: bytes
    error: str

    @property
    def lines(self) -> list[str]:
        return self.output.decode().split("\n")[:-1]


@pytest.fixture
def pylog_run(capfdbinary: pytest.CaptureFixture[bytes]) -> Callable[..., Outcome]:
    def run_with(*arguments: object) -> Outcome:
        status = run([str(argument) for argument in arguments])
        captured = capfdbinary.readouterr()
        return Outcome(status, captured.out, captured.err.decode())

    return run_with


@pytest.fixture(scope="session")
def demo_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack the sample directories, ``kafka/intact`` and ``kafka/damaged``; return ``kafka``."""
    directory = tmp_path_factory.mktemp("demo") / "kafka"
    assert demo.callback is not None
    demo.callback(str(directory))
    return directory


class Terminal(io.StringIO):
    """What says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def log_directory(tmp_path: Path) -> Path:
    """Two partitions; timestamps are 1000 + offset in one, 5000 + offset in the other."""
    for partition, first, stamp in ((0, 0, 1_000), (1, 3, 5_003)):
        records = plain_records(first, 20, timestamp=stamp)
        batches = [batch_v2(records[at : at + 5]) for at in range(0, 20, 5)]
        write_partition(tmp_path, {first: batches}, name=f"orders-{partition}")
    return tmp_path
