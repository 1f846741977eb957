"""What a user waits for: the ``pylog`` command on a log so small that only starting counts.

The first ``cat`` compiles its kernels into an empty cache, the second finds them there.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.data_sets import Bench

ROUNDS = 3
_SECONDS = 300


class CommandFailedError(RuntimeError):
    """The command ended with another exit status than 0."""


@dataclass(frozen=True, slots=True)
class StartUpFigure:
    """Wall seconds of one command, process start included."""

    command: str
    seconds: list[float]

    @property
    def median_seconds(self) -> float:
        """The middle run."""
        return statistics.median(self.seconds)

    @property
    def best_seconds(self) -> float:
        """The fastest run."""
        return min(self.seconds)


def program() -> str:
    """Return the ``pylog`` of the running environment."""
    beside = Path(sys.executable).parent / "pylog"
    return str(beside) if beside.exists() else shutil.which("pylog") or "pylog"


def _seconds(arguments: list[str], cache: Path) -> float:
    """Return how long the command took, its caches under `cache`, its output thrown away."""
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(cache / "numba"),
        "XDG_CACHE_HOME": str(cache),
        "HOME": str(cache),
    }
    started = time.perf_counter()
    done = subprocess.run(
        [program(), *arguments],
        check=False,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=_SECONDS,
    )
    seconds = time.perf_counter() - started
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise CommandFailedError(f"pylog {' '.join(arguments)}: {lines[-1]}")
    return seconds


def measure_start_up(bench: Bench, say: Callable[[str], None]) -> list[StartUpFigure]:
    """Return first and second ``cat``, ``ls`` and ``--help``, in this order."""
    say("start-up")
    directory = str(bench.directory(bench.tiny().name))
    cat = ["cat", directory, "--format", "jsonl"]
    commands = {
        "first pylog cat": cat,
        "second pylog cat": cat,
        "pylog ls": ["ls", directory],
        "pylog --help": ["--help"],
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(prefix="pylog-bench-") as cache:
            for name, arguments in commands.items():
                seconds[name].append(_seconds(arguments, Path(cache)))
    return [StartUpFigure(name, times) for name, times in seconds.items()]
