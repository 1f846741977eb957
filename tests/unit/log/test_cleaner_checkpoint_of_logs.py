"""The cleaner's checkpoint never lies above records that were not cleaned, cleaner or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.log.log_manager import LogManager
from tests.support.recording_io import RecordingIO, replay
from tests.unit.cleaner.compacted_logs import (
    BAR,
    CHECKPOINT,
    DELETE,
    FOO,
    CompactedLogs,
    checkpointed,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("target", "after"),
    [
        (12, 8),  # nothing is removed
        (11, 8),  # what goes is in the active segment
        (9, 8),
        (8, 8),
        (7, 6),  # the segment that holds it is the active one then
        (3, 2),
        (0, 0),
    ],
)
def test_a_truncation_lowers_it_to_the_new_active_segment(
    tmp_path: Path, target: int, after: int
) -> None:
    logs = CompactedLogs(tmp_path, batches_per_segment=2)
    logs.append(*[b"key"] * 12)
    logs.checkpoint(FOO, 8)
    logs.log().truncate_to(target)
    assert logs.log().segments[-1].base_offset == min(target // 2 * 2, 10)
    assert logs.checkpointed() == {"foo-0": after}
    logs.manager.abandon()


@pytest.mark.parametrize(("new_offset", "after"), [(0, 0), (5, 5), (20, 8)])
def test_so_does_the_removal_of_all_records(tmp_path: Path, new_offset: int, after: int) -> None:
    logs = CompactedLogs(tmp_path)
    logs.append(*[b"key"] * 12)
    logs.checkpoint(FOO, 8)
    logs.log().truncate_fully_and_start_at(new_offset)
    assert logs.checkpointed() == {"foo-0": after}
    logs.manager.abandon()


def test_logs_that_are_not_compacted_now_may_be_later(tmp_path: Path) -> None:
    logs = CompactedLogs(tmp_path, policy=DELETE)
    logs.append(*[b"key"] * 12)
    logs.checkpoint(FOO, 8)
    logs.log().truncate_to(3)
    assert logs.checkpointed() == {"foo-0": 3}
    logs.manager.abandon()


def test_a_crash_in_a_truncation_leaves_an_entry_that_is_low_enough(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    io = RecordingIO(source)
    logs = CompactedLogs(source, io=io)
    logs.append(*[b"key"] * 12)
    logs.log().flush()
    logs.checkpoint(FOO, 8)
    before = len(io.operations)
    logs.log().truncate_to(3)
    logs.manager.abandon()
    ends = set()
    for count in range(before, len(io.operations) + 1):
        target = tmp_path / f"after-{count}"
        target.mkdir()
        replay(io.operations[:count], target, lose_unsynced=False)
        entry = checkpointed(target)["foo-0"]
        segments = sorted(int(path.stem) for path in target.glob("foo-0/*.log"))
        ends.add((entry, segments[-1] < 8))
    assert (8, True) not in ends  # an entry above the end, where appends would be taken for clean
    assert ends == {(8, False), (3, False), (3, True)}


def test_a_deleted_log_has_no_entry(tmp_path: Path) -> None:
    logs = CompactedLogs(tmp_path)
    for each in (FOO, BAR):
        logs.append(*[b"key"] * 12, to=each)
        logs.checkpoint(each, 8)
    logs.manager.delete_log(FOO)
    assert logs.checkpointed() == {"bar-0": 8}
    logs.manager.abandon()


def test_a_new_log_has_none_of_one_that_somebody_removed(tmp_path: Path) -> None:
    (tmp_path / CHECKPOINT).write_text("0\n2\nfoo 0 8\nbar 0 8\n")
    logs = CompactedLogs(tmp_path)
    logs.append(b"key", to=FOO)
    assert "foo-0" not in checkpointed(tmp_path)
    logs.manager.abandon()


def test_what_a_crash_cut_off_does_not_count_as_clean_when_it_is_written_again(
    tmp_path: Path,
) -> None:
    logs = CompactedLogs(tmp_path)
    logs.append(*[b"key"] * 12)
    logs.checkpoint(FOO, 8)
    logs.manager.abandon()
    for path in sorted(tmp_path.glob("foo-0/*.log"))[4:]:
        path.unlink()
    manager = LogManager([tmp_path]).startup()
    assert manager.get_log(FOO).log_end_offset == 4
    assert checkpointed(tmp_path) == {"foo-0": 0}
    manager.abandon()
