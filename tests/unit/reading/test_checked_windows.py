"""Which batch is at fault where offsets do not go up: a base offset lies outside the checksum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import pylog
from pylog.errors import CorruptRecordError
from pylog.reading.checked_windows import Misplaced, find_misplaced
from tests.support.batches import batch_v2, message, plain_records, with_bad_crc
from tests.support.damage import positions, visible_offsets, with_base_offset
from tests.support.log_files import write_partition
from tests.support.reading import read_skipping_damage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CONTIGUOUS = [batch_v2(plain_records(offset, 5)) for offset in range(0, 30, 5)]
GAPPED = [batch_v2(plain_records(offset, 3)) for offset in (2, 9, 20, 31, 40, 52)]


def misplaced(
    ranges: Sequence[tuple[int, int]], *, lowest: int = 0, limit: int | None = None
) -> Misplaced | None:
    firsts, lasts = np.array(ranges, dtype=np.int64).T
    return find_misplaced(firsts, lasts, lowest, limit)


def misplaced_range(ranges: Sequence[tuple[int, int]], **bounds: int) -> tuple[int, int] | None:
    found = misplaced(ranges, **bounds)
    return None if found is None else (found.first, found.last)


@pytest.mark.parametrize(
    ("ranges", "bounds", "expected"),
    [
        ([(0, 4), (5, 9)], {}, None),
        ([(0, 4), (7, 9)], {"limit": 10}, None),
        ([(0, 4)], {"lowest": 1}, (0, 0)),
        ([(0, 4), (5, 9)], {"limit": 9}, (1, 1)),
        ([(0, 4), (5, 3)], {}, (1, 1)),
        # It goes back, and the two around it join on to each other's numbers.
        ([(0, 4), (1, 5), (10, 14)], {}, (1, 1)),
        # The one before goes too far: without it the others are in order.
        ([(0, 4), (100, 104), (10, 14), (15, 19)], {}, (1, 1)),
        ([(100, 104), (5, 9), (10, 14)], {}, (0, 0)),
        # There is a gap before it, and only the last batch of all joins on to it.
        ([(0, 4), (100, 102), (13, 15), (16, 18)], {}, (1, 1)),
        # Nobody knows which of the two it is.
        ([(0, 4), (100, 104), (50, 54), (70, 74)], {}, (1, 2)),
        ([(0, 4), (100, 104), (200, 204)], {"limit": 150}, (2, 2)),
        ([(0, 4), (200, 204), (10, 14)], {"limit": 150}, (1, 1)),
        # It goes beyond all that the file may hold, so that what is after it can tell nothing.
        ([(0, 4), (5, 204), (10, 14)], {"limit": 150}, (1, 1)),
        ([(0, 4), (5, 2**63 - 1), (-2, -2)], {}, (1, 1)),
        ([(0, 4), (3, 4), (200, 204), (10, 14)], {"limit": 150}, (1, 1)),
    ],
)
def test_which_batches_are_misplaced(
    ranges: list[tuple[int, int]], bounds: dict[str, int], expected: tuple[int, int] | None
) -> None:
    assert misplaced_range(ranges, **bounds) == expected


def test_what_is_expected_is_reported() -> None:
    found = misplaced([(10, 14), (5, 9)], lowest=3, limit=30)
    assert found is not None
    assert found.reason == "batch has offsets 5 to 9, expected from 15 on and below 30"


@pytest.mark.parametrize("window_bytes", [17, 400, 1 << 22])
@pytest.mark.parametrize("which", range(6))
@pytest.mark.parametrize("change", [-(1 << 62), -7, 7, 1 << 20, 1 << 62])
def test_in_a_contiguous_log_a_batch_with_a_wrong_offset_is_given_with_the_right_ones(
    tmp_path: Path, which: int, change: int, window_bytes: int
) -> None:
    batches = list(CONTIGUOUS)
    batches[which] = with_base_offset(batches[which], 5 * which + change)
    segments = {0: batches, 30: [batch_v2(plain_records(30, 2))]}
    directory = write_partition(tmp_path, segments, with_index=False, with_time_index=False)
    with pytest.raises(CorruptRecordError):
        pylog.scan(directory).to_table()
    found, (damaged,) = read_skipping_damage(directory, window_bytes=window_bytes)
    assert found == [*visible_offsets(CONTIGUOUS), 30, 31]
    at = positions(batches)
    assert (damaged.position, damaged.end_position) == (at[which], at[which + 1])
    assert damaged.is_kept
    assert (damaged.next_offset, damaged.end_offset) == (5 * which, 5 * which + 5)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("which", range(6))
@pytest.mark.parametrize("change", [-7, 7, 1 << 62])
def test_a_message_of_an_old_format_is_given_with_the_right_offset_too(
    tmp_path: Path, which: int, change: int, magic: int
) -> None:
    batches = [message(record, magic=magic) for record in plain_records(0, 6)]
    batches[which] = with_base_offset(batches[which], which + change)
    segments = {0: batches, 6: [batch_v2(plain_records(6, 2))]}
    directory = write_partition(tmp_path, segments, with_index=False, with_time_index=False)
    found, (damaged,) = read_skipping_damage(directory)
    assert (found, damaged.is_kept) == (list(range(8)), True)


def test_a_repaired_copy_has_a_message_of_an_old_format_under_the_right_offset(
    tmp_path: Path,
) -> None:
    batches = [message(record, magic=1) for record in plain_records(0, 6)]
    batches[2] = with_base_offset(batches[2], 40)
    write_partition(tmp_path / "logs", {0: batches}, with_index=False, with_time_index=False)
    pylog.repair_copy(tmp_path / "logs", tmp_path / "copy")
    offsets = pylog.scan(tmp_path / "copy").to_table().column("offset").to_pylist()
    assert offsets == list(range(6))


@pytest.mark.parametrize("window_bytes", [17, 400, 1 << 22])
@pytest.mark.parametrize("which", range(6))
@pytest.mark.parametrize("offset", [-5, 0, 3, 33, 1 << 20, 1 << 62])
def test_in_a_gapped_log_no_row_has_an_offset_that_goes_back(
    tmp_path: Path, which: int, offset: int, window_bytes: int
) -> None:
    batches = list(GAPPED)
    batches[which] = with_base_offset(batches[which], offset)
    segments = {0: batches, 60: [batch_v2(plain_records(60, 2))]}
    directory = write_partition(tmp_path, segments, with_index=False, with_time_index=False)
    found, ranges = read_skipping_damage(directory, window_bytes=window_bytes)
    assert found == sorted(set(found))
    others = visible_offsets(each for place, each in enumerate(GAPPED) if place != which)
    lost = set(others) - set(found)
    reported_offsets = {
        offset for each in ranges for offset in range(each.next_offset, each.end_offset or 99)
    }
    # A neighbour goes with it where nobody knows which of the two is wrong; and that is reported.
    assert lost <= reported_offsets
    assert len(lost) <= 3


@pytest.mark.parametrize("which", range(1, 6))
def test_nothing_proves_where_the_last_batch_of_a_log_belongs(tmp_path: Path, which: int) -> None:
    batches = list(CONTIGUOUS)
    batches[which] = with_base_offset(batches[which], 5 * which - 4)
    directory = write_partition(tmp_path, {0: batches}, with_index=False, with_time_index=False)
    found, (damaged,) = read_skipping_damage(directory)
    assert damaged.is_kept == (which < 5)
    assert found == visible_offsets(CONTIGUOUS if damaged.is_kept else CONTIGUOUS[:5])


@pytest.mark.parametrize("repeated", [0, 1, 4])
def test_of_a_batch_that_repeats_offsets_the_others_are_given(
    tmp_path: Path, repeated: int
) -> None:
    again = batch_v2(plain_records(10 - repeated, 5 + repeated))
    batches = [*CONTIGUOUS[:2], again, *CONTIGUOUS[3:]]
    directory = write_partition(tmp_path, {0: batches}, with_index=False, with_time_index=False)
    for bytes_each in (1, 200, None):
        found, ranges = read_skipping_damage(directory, max_partition_bytes=bytes_each)
        assert found == list(range(30))
        assert [each.is_kept for each in ranges] == [True] * (repeated > 0)


@pytest.mark.parametrize("base", [30 + 2**31, 1 << 40, (1 << 62) + 3])
@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED", "PERMISSIVE"])
def test_an_offset_that_a_segment_cannot_hold_is_damage_in_the_last_batch_of_a_log(
    tmp_path: Path, base: int, mode: str
) -> None:
    batches = [*CONTIGUOUS, batch_v2(plain_records(base, 5))]
    directory = write_partition(tmp_path, {0: batches}, with_index=False, with_time_index=False)
    [view] = pylog.open_directory(directory)
    if mode == "FAILFAST":
        with pytest.raises(CorruptRecordError, match=f"expected below {2**31}"):
            _ = view.log_end_offset
        with pytest.raises(CorruptRecordError, match=f"expected below {2**31}"):
            pylog.scan(directory).to_table()
        return
    found, (damaged,) = read_skipping_damage(directory)
    assert found == list(range(30))
    assert damaged.position == positions(batches)[6]


def test_several_batches_above_what_a_segment_can_hold_are_those_of_an_old_cleaner(
    tmp_path: Path,
) -> None:
    far = 2**31 + 5
    batches = [*CONTIGUOUS[:2], *(batch_v2(plain_records(far + at, 1)) for at in (0, 9))]
    directory = write_partition(tmp_path, {0: batches}, with_index=False, with_time_index=False)
    assert visible_offsets(batches) == [*range(10), far, far + 9]
    assert pylog.scan(directory).to_table()["offset"].to_pylist() == [*range(10), far, far + 9]


@pytest.mark.parametrize("window_bytes", [17, 1 << 22])
def test_a_damaged_batch_contradicts_no_sound_one(tmp_path: Path, window_bytes: int) -> None:
    damaged = with_bad_crc(with_base_offset(GAPPED[2], 3))
    batches = [*GAPPED[:2], damaged, *GAPPED[3:]]
    directory = write_partition(tmp_path, {0: batches}, with_index=False, with_time_index=False)
    found, _ = read_skipping_damage(directory, window_bytes=window_bytes)
    assert found == visible_offsets([*GAPPED[:2], *GAPPED[3:]])
