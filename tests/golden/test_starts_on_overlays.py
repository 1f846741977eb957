"""A start on an overlay does what a start on a copy does, file by file, and the directory stays."""

from __future__ import annotations

import itertools
import random
import shutil
from typing import TYPE_CHECKING

import pytest

from pylog.config import LogConfig, RecoveryMode
from pylog.errors import LogStorageError
from pylog.files import disk
from pylog.files.overlay import Overlay
from pylog.files.storage import open_file
from pylog.locations import without_overlay
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.testing import ManualClock, ManualScheduler
from tests.support.golden import golden_cases, golden_partitions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.golden import GoldenRoot

STATES = sorted(
    {
        f"{case}:{inside.rpartition('/')[0]}"
        for case, _, inside in (each.partition(":") for each in golden_partitions())
    }
)
assert {each.partition(":")[0] for each in STATES} == set(golden_cases())
HARMS = ("none", "unclean", "cut", "zeros", "no indexes", "no snapshots", "no checkpoints")


def files(path: str) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of every file below a directory."""
    with disk.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir():
                for name, content in files(entry.path):
                    yield f"{entry.name}/{name}", content
            else:
                with open_file(entry.path) as file:
                    yield entry.name, file.read_at(0, file.size())


def start(path: str, context: LogContext) -> object:
    """Start, look, shut down; return ends of logs, or the error without paths."""
    try:
        manager = LogManager(
            [path], LogConfig(), context=context, recovery_mode=RecoveryMode.BROKER_START
        )
        with manager:
            return {
                str(name): (log.log_start_offset, log.log_end_offset, log.high_watermark)
                for name, log in manager.logs.items()
            }
    except LogStorageError as error:
        return type(error), str(error).replace(without_overlay(path), "")


def harm(directory: Path, what: str, rng: random.Random) -> None:
    """Do one harm to a log directory; a marker stays where a broker would still believe it."""
    if what not in {"none", "cut", "zeros"}:
        (directory / ".kafka_cleanshutdown").unlink(missing_ok=True)
    logs = sorted(each for each in directory.glob("*/*.log") if each.stat().st_size)
    if what == "cut":
        log = rng.choice(logs)
        with log.open("r+b") as file:
            file.truncate(rng.randrange(log.stat().st_size))
    elif what == "zeros":
        log = rng.choice(logs)
        with log.open("r+b") as file:
            file.seek(rng.randrange(log.stat().st_size))
            file.write(bytes(rng.randrange(1, 100)))
    gone = {
        "no indexes": "*/*.*index",
        "no snapshots": "*/*.snapshot",
        "no checkpoints": "*-checkpoint",
    }
    for path in directory.glob(gone.get(what, "none")):
        path.unlink()


@pytest.mark.parametrize("what", HARMS)
@pytest.mark.parametrize("state", STATES)
@pytest.mark.thorough(one_in=31)
def test_a_start_on_an_overlay_is_a_start(
    golden_root: GoldenRoot, tmp_path: Path, state: str, what: str
) -> None:
    case, _, inside = state.partition(":")
    directory = golden_root.case(case) / inside
    harmed, copy = tmp_path / "harmed", tmp_path / "copy"
    shutil.copytree(directory, harmed, symlinks=True)
    for path in itertools.chain([harmed], harmed.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    try:
        harm(harmed, what, random.Random(f"{state} {what}"))
    except IndexError:
        pytest.skip("no log with records in it")
    shutil.copytree(harmed, copy, symlinks=True)
    before = dict(files(str(harmed)))
    clock, of_copy = ManualClock(), ManualClock()
    with Overlay() as over:
        context = LogContext(
            io=over, clock=clock, scheduler=ManualScheduler(clock), random=random.Random(1)
        )
        found = start(over.path(harmed), context)
        context = LogContext(
            clock=of_copy, scheduler=ManualScheduler(of_copy), random=random.Random(1)
        )
        expected = start(str(copy), context)
        assert found == expected
        assert dict(files(over.path(harmed))) == dict(files(str(copy)))
    assert dict(files(str(harmed))) == before
