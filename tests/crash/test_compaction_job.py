"""A crash at every single thing that the tasks and the owner of a `CompactionJob` do to the disk.

Afterwards the first groups of segments, in the order in which they are replaced, are the new ones,
and all others the old ones (`tests.crash.compaction_script.Groups`). The next owner removes what is
left over, and another run completes.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.crash.compaction_script import Groups, prepare, rows, run, segments
from tests.crash.test_splitting import CRASHES, fingerprint_of
from tests.support.crash_replay import Kind, replay
from tests.support.recording_io import ForgetfulIO, RecordingIO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Counted, HowMany, SomeOf

PROJECT = Path(__file__).parents[2]
SEED = 16
KILLS = 30
"""How many owners are killed; ``--soak`` asks for all that there can be."""

LEFTOVERS = (".cleaned", ".swap", ".deleted")


class Recorded:
    """One job that nothing came into: what was before, what it did, and what may be after."""

    def __init__(self, directory: Path) -> None:
        self.begun = directory / "begun"
        prepare(self.begun)
        done = directory / "done"
        shutil.copytree(self.begun, done)
        before, old_segments = rows(done), segments(done)
        io = RecordingIO(done)
        run(done, io)
        self.operations = io.operations
        self.expected = rows(done)
        groups = Groups(before, self.expected, old_segments, segments(done))
        self.states = groups.states
        assert len(segments(done)) < len(old_segments) - 2  # some groups have several
        assert groups.changes > 3

    def check(self, directory: Path) -> int:
        """Own what a crash has left; return which of the states it is."""
        with pylog.logs.own_log_directory(directory):
            names = [path.name for path in directory.rglob("*")]
            assert [name for name in names if name.startswith(".pylog-cleaned-")] == []
            assert [name for name in names if name.endswith(LEFTOVERS)] == []
        found = rows(directory)
        assert found in self.states, "a group is neither the old one nor the new one"
        run(directory, ForgetfulIO())
        assert rows(directory) == self.expected
        return self.states.index(found)


@pytest.fixture
def recorded(memory_path: Path) -> Recorded:
    return Recorded(memory_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CRASHES)
@pytest.mark.thorough(one_in=2)
def test_a_crash_leaves_each_group_old_or_new(
    recorded: Recorded, memory_path: Path, kind: str, some_of: SomeOf, counted: Counted
) -> None:
    lose_unsynced, names = CRASHES[kind]
    reached, seen = set(), set()  # directories that look the same are looked at once
    count = len(recorded.operations)
    for done in some_of(range(count + 1), one_in=11):
        directory = memory_path / "crashed"
        shutil.copytree(recorded.begun, directory)
        replay(recorded.operations[:done], directory, lose_unsynced=lose_unsynced, names=names)
        fingerprint = fingerprint_of(directory)
        if fingerprint not in seen:
            seen.add(fingerprint)
            reached.add(recorded.check(directory))
        shutil.rmtree(directory)
    assert {0, len(recorded.states) - 1} <= reached
    counted("crashes of a compaction job", {"survived": count + 1, "different": len(seen)})


@pytest.fixture
def worker(memory_path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.crash.compaction_worker", str(memory_path / "logs")]
    with subprocess.Popen(
        command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process


def outcome_when_killed(worker: subprocess.Popen[str], at: int) -> str:
    """Have a job be killed after a change of the disk; return what became of it."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(f"{at}\n")
    worker.stdin.flush()
    return worker.stdout.readline().strip()


def test_an_owner_that_is_killed_leaves_each_group_old_or_new(
    recorded: Recorded,
    memory_path: Path,
    worker: subprocess.Popen[str],
    counted: Counted,
    how_many: HowMany,
) -> None:
    steps = range(1, len(recorded.operations) + 1)
    kills = min(how_many(5, KILLS), len(steps))
    replacing = [
        number
        for number, each in enumerate(recorded.operations, 1)
        if each.kind is Kind.REPLACE and each.target.endswith((".log", ".log.swap"))
    ]
    reached = set()
    chosen = {*replacing, *random.Random(SEED).sample(steps, kills)}
    for at in sorted(chosen):
        directory = memory_path / "logs"
        shutil.copytree(recorded.begun, directory)
        assert outcome_when_killed(worker, at) == "killed", at
        reached.add(recorded.check(directory))
        shutil.rmtree(directory)
    assert len(reached) > len(recorded.states) / 2
    counted("killed owners of a compaction job", {"killed": len(chosen)})
