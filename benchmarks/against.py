"""``python -m benchmarks.against REV``: this tree's packages against those of a revision.

Both run in a process of their own; they do every task in turn, the one that began last time going
second, so that what else the machine does hits both alike. Both are started several times, since
where memory happens to lie makes one process some percent faster than another with the same code. A
ratio is the revision's time by this tree's in one round: above 1 means that this tree is faster.

With ``--level x86-64-v2`` in the place of a revision, this tree's kernels for another level of
processors are what it is compared with.
"""

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from benchmarks.data_sets import Bench
from benchmarks.legacy_sets import LEGACY_SETS, legacy_name, legacy_set
from benchmarks.machine import load_average, machine_lines, this_machine
from benchmarks.measuring import Run, ensure_equal
from benchmarks.shaped_sets import SHAPED_SETS, shaped_set
from tests.support.peer_process import PeerProcess

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build"
PACKAGE_FOLDERS = ("storage_core", "connector", "jobs")
STARTS = 3
ROUNDS = 9
"""In all, by default; those of a start follow each other."""
QUICK_ROUNDS = 3
_PEER = Path(__file__).with_name("against_peer.py")


class Task(NamedTuple):
    """What both revisions do, and over which data set."""

    group: str
    name: str
    data_set: str


TASKS = (
    Task("reading", "read", "s100-none"),
    Task("reading", "read", "s1000-none"),
    Task("reading", "read", "s100-lz4"),
    Task("reading", "read", "s100-snappy"),
    Task("reading", "read", "s1000-zstd"),
    Task("reading", "read", "s1000-gzip"),
    Task("reading", "read", "s100-v1-none"),
    Task("reading", "read", "s100-v1-lz4"),
    Task("reading", "read-sparsely", "s100-none"),
    Task("reading", "read-filtered", "s100-none"),
    Task("reading", "skip-damage", "s100-none"),
    Task("reading", "skip-damage", "damaged"),
    Task("reading", "read", "many-partitions"),
    Task("reading", "read", "many-segments"),
    Task("reading", "count", "s100-none"),
    Task("look-ups", "look-up-ends", "s1000-none"),
    Task("look-ups", "look-up-offsets", "s100-none"),
    Task("look-ups", "look-up-offsets", "s1000-lz4"),
    Task("look-ups", "look-up-timestamps", "s100-none"),
    Task("look-ups", "plan", "many-partitions"),
    Task("look-ups", "plan", "many-segments"),
    Task("encoding", "encode", "s100-none"),
    Task("encoding", "encode", "s1000-none"),
    Task("appending", "append-small", "s100-none"),
    Task("appending", "append-large", "s100-none"),
    Task("appending", "append-large", "s1000-none"),
    Task("commands", "doctor", "s100-none"),
    Task("commands", "doctor", "s100-lz4"),
    Task("commands", "doctor", "damaged"),
    Task("commands", "doctor", "many-partitions"),
    Task("commands", "doctor", "many-segments"),
    Task("commands", "cat", "s100-none"),
    Task("commands", "cat", "many-partitions"),
    Task("commands", "cat", "s1000-lz4"),
)


class Revision(PeerProcess):
    """A process with one revision's packages."""

    def __init__(self, name: str, checkout: Path, level: str | None = None) -> None:
        folders = [str(checkout / each) for each in PACKAGE_FOLDERS]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(folders),
            # Where revisions keep their machine code that do not come with it.
            "NUMBA_CACHE_DIR": str(BUILD / "against" / f"kernels-{name}"),
        }
        options = [] if level is None else ["--level", level]
        super().__init__(name, [sys.executable, str(_PEER), *options], environment=environment)

    def run(self, task: Task, directory: Path) -> tuple[Run, int]:
        """Do the task once; return its times and what it came to."""
        seconds, cpu_seconds, result = json.loads(self.ask(f"{task.name} {directory}"))
        return Run(seconds, cpu_seconds), result


@dataclass(slots=True)
class Comparison:
    """The rounds of one task: the revision's run and this tree's."""

    task: Task
    rounds: list[tuple[Run, Run]] = field(default_factory=list)

    @property
    def wall(self) -> list[float]:
        """The revision's wall time by this tree's, round by round."""
        return [before.seconds / now.seconds for before, now in self.rounds]

    @property
    def cpu(self) -> list[float]:
        """The revision's processor time by this tree's, round by round."""
        return [before.cpu_seconds / now.cpu_seconds for before, now in self.rounds]


def check_out(revision: str) -> tuple[str, Path]:
    """Return the short name of a revision and a folder with its packages."""
    name = ["git", "rev-parse", "--short", f"{revision}^{{commit}}"]
    commit = subprocess.run(
        name, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()
    folder = BUILD / "against" / commit
    if not folder.exists():
        archive = ["git", "archive", commit, *PACKAGE_FOLDERS]
        packed = subprocess.run(archive, cwd=ROOT, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as files:
            files.extractall(folder, filter="data")
    return commit, folder


def compare(
    revision: Revision,
    tree: Revision,
    directories: dict[str, Path],
    comparisons: Sequence[Comparison],
    n: int,
) -> Iterator[Comparison]:
    """Add ``n`` rounds to each comparison, after one that is not counted, and yield it."""
    for comparison in comparisons:
        task = comparison.task
        directory = directories[task.data_set]
        _, expected = revision.run(task, directory)
        _, found = tree.run(task, directory)
        ensure_equal(f"{task.name} of {task.data_set}", found, expected)
        for number in range(n):
            pair = {}
            for each in (revision, tree) if number % 2 else (tree, revision):
                pair[each.name], _ = each.run(task, directory)
            comparison.rounds.append((pair[revision.name], pair[tree.name]))
        yield comparison


def numbers_of_rounds(rounds: int, starts: int) -> list[int]:
    """Return how many of the rounds fall to each start of the processes, as evenly as can be."""
    starts = min(rounds, starts)
    return [rounds // starts + (number < rounds % starts) for number in range(starts)]


def _cells(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.3f} | {min(ratios):.2f} - {max(ratios):.2f}"


def report(comparisons: Sequence[Comparison], commit: str, lines: Sequence[str]) -> str:
    """Return a page with a row a task and the geometric mean of each group."""
    page = [f"# Against {commit}", "", *lines, ""]
    page += [
        f"Time of {commit} by time of this tree: above 1, this tree is faster.",
        "",
        "| group | task | data | CPU, median | CPU, range | wall, median | wall, range |",
        "|---|---|---|--:|---|--:|---|",
    ]
    for each in comparisons:
        task = each.task
        page.append(
            f"| {task.group} | {task.name} | {task.data_set} | "
            f"{_cells(each.cpu)} | {_cells(each.wall)} |"
        )
    page += ["", "| group | CPU, geometric mean | wall, geometric mean |", "|---|--:|--:|"]
    groups = dict.fromkeys(each.task.group for each in comparisons)
    for group in (*groups, "all"):
        of_group = [each for each in comparisons if group in (each.task.group, "all")]
        cpu = statistics.geometric_mean(statistics.median(each.cpu) for each in of_group)
        wall = statistics.geometric_mean(statistics.median(each.wall) for each in of_group)
        page.append(f"| {group} | {cpu:.3f} | {wall:.3f} |")
    return "\n".join(page) + "\n"


def _directories(bench: Bench, tasks: Sequence[Task]) -> dict[str, Path]:
    legacy = {legacy_name(*each): each for each in LEGACY_SETS}
    names = {task.data_set for task in tasks}
    for name in names:
        if name in SHAPED_SETS:
            shaped_set(bench, name)
        elif name in legacy:
            legacy_set(bench, *legacy[name])
        else:
            size, codec = name.removeprefix("s").split("-")
            bench.base(int(size), codec)
    return {name: bench.directory(name) for name in names}


def main() -> None:
    """Compare, then print the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description=__doc__)
    peer = parser.add_mutually_exclusive_group(required=True)
    peer.add_argument("revision", nargs="?", help="what git calls it: a commit, a branch, HEAD~3")
    peer.add_argument("--level", metavar="LEVEL", help="of kernels, such as x86-64-v2")
    parser.add_argument("--rounds", type=int, metavar="N", help=f"default {ROUNDS}")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the data, 3 rounds")
    parser.add_argument("--only", default="", metavar="SUBSTRING", help="of group, task or data")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the page there too")
    arguments = parser.parse_args()
    bench = Bench(BUILD / "bench", quick=arguments.quick)
    rounds = arguments.rounds or (QUICK_ROUNDS if arguments.quick else ROUNDS)
    tasks = [task for task in TASKS if arguments.only in " ".join(task)]
    level = arguments.level
    commit, checkout = (level, ROOT) if level else check_out(arguments.revision)
    load = load_average()
    comparisons = [Comparison(task) for task in tasks]
    directories = _directories(bench, tasks)
    for each in numbers_of_rounds(rounds, 1 if arguments.quick else STARTS):
        other = Revision(commit, checkout, level)
        with other as revision, Revision("this tree", ROOT) as tree:
            for comparison in compare(revision, tree, directories, comparisons, each):
                clock, task = time.strftime("%H:%M:%S"), " ".join(comparison.task)
                sys.stderr.write(f"{clock} {task}: CPU {_cells(comparison.cpu)}\n")
    lines = [
        *machine_lines(this_machine()),
        f"- load average (1 and 5 minutes) {load} before, {load_average()} after",
    ]
    page = report(comparisons, commit, lines)
    sys.stdout.write(page)
    if arguments.output is not None:
        arguments.output.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
