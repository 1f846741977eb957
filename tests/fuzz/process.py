"""One run of one target: its process, what it says on the way, what it has found."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fuzz.corpus import kept_inputs, write_inputs
from tests.fuzz.targets import load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

REPOSITORY = Path(__file__).parents[2]
BUILD = REPOSITORY / "build" / "fuzz"
SECONDS_BETWEEN_NEWS = 10
SECONDS_OF_ONE_INPUT = 60
MEMORY_MEGABYTES = 2048
# atheris keeps the result of every comparison of NumPy arrays in instrumented code, 1 to 2 KB a
# segment; without it nothing grows. So a process ends before it has taken too much memory.
EXECUTIONS_OF_ONE_PROCESS = 500_000
# For start, compilation of the kernels, and the inputs there are: libFuzzer's clock starts later.
SECONDS_OF_GRACE = 600
_PULSE = re.compile(r"^#(\d+)\s.*?\bcov: (\d+).*?\bcorp: (\d+)")
_CRASH = re.compile(r"^.*Test unit written to (.+)$", re.MULTILINE)
_DONE = re.compile(r"^Done \d+ runs in (\d+) second", re.MULTILINE)
_STATISTIC = re.compile(r"^stat::(\w+):\s+(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Result:
    """What came of a run.

    Attributes
    ----------
    executions, seconds, new_entries
        libFuzzer's own numbers; the last one counts inputs that cover something new, or do it in
        fewer bytes.
    crashes
        Files with inputs that fail, hang, or take too much memory.
    status
        Of the process; 0 if nothing is wrong.
    log
        What the process said.
    """

    target: str
    executions: int
    seconds: int
    new_entries: int
    crashes: tuple[Path, ...]
    status: int
    log: Path

    def lines(self) -> list[str]:
        """Return the summary: a line, and what to do about each crash."""
        per_second = self.executions // max(1, self.seconds)
        numbers = f"{self.executions:,} executions, {per_second:,} a second"
        found = f"{self.new_entries} new corpus entries, {len(self.crashes)} crashes"
        lines = [f"{self.target}: {numbers}, {found}"]
        for crash in self.crashes:
            shown = crash.relative_to(REPOSITORY)
            command = f"python -m tests.fuzz --target {self.target} --reproduce {shown}"
            lines += [f"  {shown}", f"    again: {command}"]
        if self.status and not self.crashes:
            lines.append(f"  status {self.status}: the fuzzer itself failed, or one of the seeds")
        if self.status:
            lines.append(f"    log:   {self.log.relative_to(REPOSITORY)}")
        return lines


def fuzz(target: str, seconds: int, *, with_golden: bool, say: Callable[[str], None]) -> Result:
    """Fuzz a target for ``seconds``; ``say`` is called now and then with a line of news."""
    directory = BUILD / target
    corpus, known, crashes = directory / "corpus", directory / "known", directory / "crashes"
    for each in (corpus, known, crashes):
        each.mkdir(parents=True, exist_ok=True)
    write_inputs(known, _known_inputs(target, with_golden=with_golden))
    arguments = [
        f"-runs={EXECUTIONS_OF_ONE_PROCESS}",
        f"-timeout={SECONDS_OF_ONE_INPUT}",
        f"-rss_limit_mb={MEMORY_MEGABYTES}",
        f"-artifact_prefix={crashes}/",
        "-print_final_stats=1",
        str(corpus),
        str(known),
    ]
    log = directory / "log"
    executions = new_entries = used = status = 0
    said = ""
    while status == 0 and used < seconds:
        timed = [f"-max_total_time={seconds - used}", *arguments]
        start = time.monotonic()
        status = _run(target, timed, log, seconds - used + SECONDS_OF_GRACE, say)
        said = log.read_text("utf-8", "replace")
        statistics = dict(_STATISTIC.findall(said))
        executions += int(statistics.get("number_of_executed_units", 0))
        new_entries += int(statistics.get("new_units_added", 0))
        done = _DONE.search(said)
        used += max(1, int(done[1]) if done else round(time.monotonic() - start))
    found = tuple(map(Path, _CRASH.findall(said)))
    return Result(target, executions, used, new_entries, found, status, log)


def reproduce(target: str, inputs: Sequence[Path], say: Callable[[str], None]) -> int:
    """Run a target once with each of some inputs; return the status: 0 if none fails."""
    log = BUILD / target / "log-of-reproducing"
    log.parent.mkdir(parents=True, exist_ok=True)
    paths = [str(path.resolve()) for path in inputs]
    status = _run(target, [f"-timeout={SECONDS_OF_ONE_INPUT}", *paths], log, SECONDS_OF_GRACE, say)
    lines = log.read_text("utf-8", "replace").splitlines()
    say("\n".join(line for line in lines if not line.startswith("INFO: Instrumenting")))
    return status


def minimise(target: str, say: Callable[[str], None]) -> Path:
    """Return a directory with the fewest inputs that cover what all inputs there are cover."""
    directory = BUILD / target
    least = directory / "least"
    least.mkdir(parents=True, exist_ok=True)
    for path in least.iterdir():
        path.unlink()
    write_inputs(directory / "known", _known_inputs(target, with_golden=True))
    sources = [str(directory / name) for name in ("known", "corpus") if (directory / name).is_dir()]
    log = directory / "log-of-merging"
    status = _run(target, ["-merge=1", str(least), *sources], log, 2 * SECONDS_OF_GRACE, say)
    if status:
        raise RuntimeError(f"merging {target} failed, see {log}")
    return least


def _known_inputs(target: str, *, with_golden: bool) -> list[bytes]:
    module = load(target)
    inputs = [data for _, data in kept_inputs(target)] + list(module.seeds())
    return inputs + list(module.golden_seeds()) if with_golden else inputs


def _environment(target: str, scratch: str) -> dict[str, str]:
    return os.environ | {
        # An index out of bounds raises. Numba's cache does not know of this, and two processes
        # that write to one can crash: each target has its own.
        "NUMBA_BOUNDSCHECK": "1",
        "NUMBA_CACHE_DIR": str(BUILD / target / "numba"),
        "TMPDIR": scratch,
    }


def _run(
    target: str, arguments: list[str], log: Path, most_seconds: float, say: Callable[[str], None]
) -> int:
    command = [sys.executable, "-m", "tests.fuzz.harness", target, *arguments]
    with tempfile.TemporaryDirectory() as scratch, log.open("wb") as output:
        start = time.monotonic()
        with subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env=_environment(target, scratch),
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as process:
            try:
                return _wait(process, target, log, start + most_seconds, say)
            finally:
                process.kill()  # nothing to kill unless we were interrupted, or it hangs


def _wait(
    process: subprocess.Popen[bytes],
    target: str,
    log: Path,
    deadline: float,
    say: Callable[[str], None],
) -> int:
    start = time.monotonic()
    while time.monotonic() < deadline:
        try:
            return process.wait(SECONDS_BETWEEN_NEWS)
        except subprocess.TimeoutExpired:
            say(f"{target}: {time.monotonic() - start:.0f} s, {_news(log)}")
    say(f"{target}: does not end")
    return 1


def _news(log: Path) -> str:
    pulses = map(_PULSE.match, log.read_text("utf-8", "replace").splitlines())
    for executions, coverage, corpus in reversed([pulse.groups() for pulse in pulses if pulse]):
        return f"{int(executions):,} executions, coverage {coverage}, corpus {corpus}"
    return "starting"
