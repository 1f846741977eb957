"""The program in this process: its status, and what it wrote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pylog.cli.commands.demo import demo
from pylog.cli.main import run

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
