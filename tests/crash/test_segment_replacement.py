"""Several segments take the place of several others; a crash leaves the ones or the others."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING

import pytest

from pylog.config import LogConfig
from pylog.files.durable_io import DurableIO
from pylog.files.file_names import SegmentTarget
from pylog.log.log_context import LogContext
from pylog.log.segment_replacement import replace_segments
from pylog.log_file.file_records import tidy_directory
from pylog.testing import ManualClock
from tests.support.batches import Stored, batch_v2
from tests.support.crash_replay import Names, replay
from tests.support.recording_io import RecordingIO

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.log.log_segment import LogSegment
    from tests.support.crash_replay import Operation

PARTITION = "orders-0"


def log_of(*offsets: int) -> bytes:
    return b"".join(
        batch_v2([Stored(offset, 1000 + offset, b"k", b"v%d" % offset)]).data for offset in offsets
    )


# A compaction: fewer records, and the second segment begins elsewhere.
OLD = {0: log_of(0, 1, 2, 3), 10: log_of(10, 11, 12)}
NEW = {0: log_of(1), 3: log_of(3, 12)}
LATER = {20: log_of(20)}


def name(base_offset: int, suffix: str) -> str:
    return f"{base_offset:020d}{suffix}"


def write_old(root: Path) -> Path:
    directory = root / PARTITION
    directory.mkdir(parents=True)
    for base_offset, content in {**OLD, **LATER}.items():
        (directory / name(base_offset, ".log")).write_bytes(content)
        (directory / name(base_offset, ".index")).write_bytes(bytes(8))
    return directory


def context_of(io: DurableIO) -> LogContext:
    return LogContext(io=io, clock=ManualClock(0), random=random.Random(1))


def opened(directory: Path, io: DurableIO, base_offset: int) -> LogSegment:
    return context_of(io).open_segment(SegmentTarget(str(directory), base_offset), LogConfig())


def cleaned(directory: Path, io: DurableIO, base_offset: int, content: bytes) -> LogSegment:
    target = SegmentTarget(str(directory), base_offset, ".cleaned")
    segment = context_of(io).open_segment(target, LogConfig(), is_new=True)
    segment.log.append(content)
    segment.log.sync()
    return segment


def replaced(root: Path) -> list[Operation]:
    """Replace the old segments; return what was done to the disk."""
    directory = write_old(root)
    io = RecordingIO(root)
    new = [cleaned(directory, io, base_offset, content) for base_offset, content in NEW.items()]
    old = [opened(directory, io, base_offset) for base_offset in OLD]
    replace_segments(new, old, io)
    for segment in old:
        segment.delete_if_exists()
    for segment in new:
        segment.close_handlers()
    return io.operations


def test_the_first_new_segment_counts_last_and_names_are_synced_in_between(tmp_path: Path) -> None:
    operations = [str(each).replace(f"{PARTITION}/", "") for each in replaced(tmp_path)]
    sync = f"sync-directory {PARTITION}"
    zero, three, ten = (f"{base_offset:020d}" for base_offset in (0, 3, 10))
    start = operations.index(sync)
    assert operations[start:] == [
        sync,
        f"replace {three}.log.cleaned {three}.log.swap",
        sync,
        f"replace {zero}.log.cleaned {zero}.log.swap",
        sync,
        f"replace {zero}.log {zero}.log.deleted",
        f"replace {zero}.index {zero}.index.deleted",
        f"replace {ten}.log {ten}.log.deleted",
        f"replace {ten}.index {ten}.index.deleted",
        sync,
        f"replace {zero}.log.swap {zero}.log",
        sync,
        f"replace {three}.log.swap {three}.log",
        sync,
        f"remove {zero}.log.deleted",
        f"remove {zero}.index.deleted",
        f"remove {ten}.log.deleted",
        f"remove {ten}.index.deleted",
    ]


@pytest.mark.parametrize("names", list(Names), ids=[names.name.lower() for names in Names])
@pytest.mark.parametrize("lose_unsynced", [False, True], ids=["all content", "synced content"])
def test_a_crash_leaves_all_old_segments_or_all_new_ones(
    tmp_path: Path, *, lose_unsynced: bool, names: Names
) -> None:
    operations = replaced(tmp_path / "recorded")
    outcomes = set()
    for count in range(len(operations) + 1):
        root = tmp_path / "crashed"
        directory = write_old(root)
        replay(operations[:count], root, lose_unsynced=lose_unsynced, names=names)
        tidy_directory(str(directory), DurableIO())
        logs = {
            int(path.name[:20]): path.read_bytes()
            for path in directory.iterdir()
            if path.suffix == ".log"
        }
        assert logs in ({**OLD, **LATER}, {**NEW, **LATER}), f"after {count} operations"
        indexes = {int(path.name[:20]) for path in directory.iterdir() if path.suffix == ".index"}
        is_new = logs == {**NEW, **LATER}
        assert indexes == ({20} if is_new else {0, 10, 20}), f"after {count} operations"
        outcomes.add(is_new)
        shutil.rmtree(root)
    assert outcomes == {False, True}
