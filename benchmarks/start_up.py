"""What a user waits for: the ``pylog`` command on a log so small that only starting counts.

Caches of the user are empty at each first ``cat``. Beside ours stands what nobody can go below who
uses NumPy and Arrow: a Python that imports them and reads the same bytes.
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

from benchmarks.data_sets import Bench

ROUNDS = 7
_SECONDS = 300

FIRST_CAT = "first pylog cat"
CAT_HEAD = "pylog cat | head -3"
LS = "pylog ls"
LOOK_UP = "first look-up of a timestamp in a process"
IMPORTS = "python: import pyarrow, numpy; read the log"

_IMPORTS_CODE = "import sys, pyarrow, numpy; open(sys.argv[1], 'rb').read()"
_LOOK_UP_CODE = """
import sys, pylog
start = pylog.Timestamp(int(sys.argv[2]), if_missing="latest")
pylog.scan(sys.argv[1], start=start).plan()
"""
_LATE_MS = 1_748_736_001_000  # in the middle of the log
_BROKEN_PIPE = 141


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


def _environment(cache: Path) -> dict[str, str]:
    """Return that of a command whose caches are under `cache`."""
    environment = {
        **os.environ,
        "PYTHONPYCACHEPREFIX": str(cache.parent / "pylog-bench-bytecode"),
        "XDG_CACHE_HOME": str(cache),
        "HOME": str(cache),
    }
    # An installed program has its bytecode, and a user's pipe is buffered.
    for variable in ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"):
        environment.pop(variable, None)
    return environment


def _seconds(command: list[str], cache: Path, *, into_head: bool = False) -> float:
    """Return how long the command took, its output thrown away, or all of it but three lines."""
    head = ["head", "-3"] if into_head else ["cat"]
    started = time.perf_counter()
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            command,
            env=_environment(cache),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as process,
    ):
        subprocess.run(
            head, check=True, stdin=process.stdout, stdout=subprocess.DEVNULL, timeout=_SECONDS
        )
        if process.stdout is not None:
            process.stdout.close()
        status = process.wait(_SECONDS)
        seconds = time.perf_counter() - started
        errors.seek(0)
        lines = errors.read().decode().strip().splitlines() or [f"exit status {status}"]
    if status not in ({0, _BROKEN_PIPE} if into_head else {0}):
        raise CommandFailedError(f"{' '.join(command)}: {lines[-1]}")
    return seconds


def measure_start_up(bench: Bench, say: Callable[[str], None]) -> list[StartUpFigure]:
    """Return the commands above, ours and the others."""
    say("start-up")
    tiny = bench.tiny().name
    directory, log = str(bench.directory(tiny)), str(bench.logs(tiny)[0])
    cat = [program(), "cat", directory, "--format", "jsonl"]
    commands = {
        FIRST_CAT: cat,
        "second pylog cat": cat,
        CAT_HEAD: cat,
        LS: [program(), "ls", directory],
        "pylog --help": [program(), "--help"],
        LOOK_UP: [sys.executable, "-c", _LOOK_UP_CODE, directory, str(_LATE_MS)],
        IMPORTS: [sys.executable, "-c", _IMPORTS_CODE, log],
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory(prefix="pylog-bench-") as folder:
        for number in range(ROUNDS + 1):  # the first one makes the bytecode, and does not count
            cache = Path(folder) / str(number)
            cache.mkdir()
            for name, command in commands.items():
                took = _seconds(command, cache, into_head=name == CAT_HEAD)
                if number:
                    seconds[name].append(took)
    return [StartUpFigure(name, times) for name, times in seconds.items()]
