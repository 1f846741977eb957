"""What a dry run says is what a run does."""

from __future__ import annotations

import os
import random
import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.files.durable_io import DurableIO
from pylog.files.high_watermarks import mark_as_own
from tests.support.log_files import (
    mark_clean_shutdown,
    tree,
    write_high_watermarks,
    write_log_start_offsets,
    write_partition,
)
from tests.unit.writing.retained import HOUR_MS, NOW_MS, batch, context

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.batches import Built


def draw_high_watermark(drawn: random.Random, directory: Path, highest: int) -> None:
    """Make the directory one of our own, or one with a checkpoint, or with neither."""
    if drawn.random() < 0.4:
        mark_as_own(DurableIO(), str(directory))
    elif drawn.random() < 0.8:
        write_high_watermarks(directory, {("t", 0): drawn.randint(0, highest)})


def random_directory(directory: Path, seed: int) -> tuple[dict[str, str], int]:
    """Make a partition at random, perhaps left by a crash; return limits and the time."""
    drawn = random.Random(seed)
    segments: dict[int, list[Built]] = {}
    offset, timestamp = 0, NOW_MS - 100 * HOUR_MS
    for _ in range(drawn.randint(1, 6)):
        batches: list[Built] = []
        segments[offset] = batches
        for _ in range(drawn.choice([0, 1, 1, 2, 5])):
            timestamp += drawn.randint(-20, 30) * HOUR_MS
            magic = drawn.choice([0, 1, 2, 2, 2])
            batches.append(batch(offset, -1 if magic == 0 else timestamp, magic))
            offset += drawn.choice([1, 1, 5])
        offset += 1
    write_partition(
        directory,
        segments,
        name="t-0",
        with_index=drawn.random() < 0.8,
        with_time_index=drawn.random() < 0.8,
    )
    for path in (directory / "t-0").glob("*.log"):
        hours = drawn.randint(0, 200)
        os.utime(path, ns=((NOW_MS - hours * HOUR_MS) * 1_000_000,) * 2)
    for path in (directory / "t-0").glob("*.timeindex"):
        if drawn.random() < 0.3:  # it has lost entries
            os.truncate(path, min(path.stat().st_size, drawn.choice([0, 12, 24])))
    if drawn.random() < 0.5:
        mark_clean_shutdown(directory)
    elif drawn.random() < 0.5:
        text = f"0\n1\nt 0 {drawn.randint(0, offset)}\n"
        (directory / "recovery-point-offset-checkpoint").write_text(text)
        last = max((directory / "t-0").glob("*.log"))
        last.write_bytes(last.read_bytes() + bytes(drawn.choice([0, 40, 1000])))
    if drawn.random() < 0.5:
        write_log_start_offsets(directory, {("t", 0): drawn.randint(0, max(segments))})
    draw_high_watermark(drawn, directory, max(segments) + 3)
    limits = {
        "cleanup.policy": drawn.choice(["delete", "delete", "compact", "compact,delete"]),
        "retention.ms": str(max(-1, drawn.choice([-1, 0, 10, 50, 100]) * HOUR_MS)),
        "retention.bytes": str(drawn.choice([-1, -1, 0, 100, 300, 600])),
    }
    return limits, NOW_MS + drawn.randint(-50, 50) * HOUR_MS


@pytest.mark.parametrize("first_seed", range(0, 120, 30))
@pytest.mark.thorough(one_in=3)
def test_a_dry_run_says_what_a_run_does(first_seed: int, tmp_path: Path) -> None:
    removed = held_back = 0
    for seed in range(first_seed, first_seed + 30):
        directory = tmp_path / str(seed)
        directory.mkdir()
        limits, now_ms = random_directory(directory, seed)
        before = tree(directory)
        planned = pylog.apply_retention(
            directory, config=limits, now_ms=now_ms, dry_run=True, context=context()
        )
        assert tree(directory) == before, f"seed {seed}"
        done = pylog.apply_retention(directory, config=limits, now_ms=now_ms, context=context())
        [expected], [found] = planned.partitions, done.partitions
        assert expected.deleted == found.deleted, f"seed {seed}"
        assert expected.failure is found.failure is None
        assert expected.log_start_offset == found.log_start_offset, f"seed {seed}"
        assert expected.log_end_offset == found.log_end_offset, f"seed {seed}"
        assert expected.size_bytes == found.size_bytes, f"seed {seed}"
        assert expected.held_back == found.held_back, f"seed {seed}"
        held_back += found.held_back is not None
        removed += len(found.deleted)
        again = pylog.apply_retention(directory, config=limits, now_ms=now_ms, context=context())
        assert again.totals.segments == 0, f"seed {seed}"
        shutil.rmtree(directory)
    assert removed > 10
    assert held_back > 1
