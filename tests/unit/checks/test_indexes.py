"""The columns of an index that a broker is writing; what wrong entries cost consumers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.checks.indexes import read_offset_index, read_time_index
from pylog.files.looks import LIVE_PAUSES
from tests.support.batches import batch_v2, joined, plain_records, with_bad_crc
from tests.support.corruption import resealed
from tests.support.log_files import (
    OFFSET_ENTRY,
    TIME_ENTRY,
    mark_clean_shutdown,
    segment_path,
    write_partition,
)

if TYPE_CHECKING:
    from pathlib import Path

TAIL = bytes(240)


def offset_entry(relative_offset: int, position: int) -> bytes:
    return relative_offset.to_bytes(4, "big") + position.to_bytes(4, "big")


def test_an_entry_of_which_a_broker_has_written_half_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"{100:020d}.index"
    path.write_bytes(offset_entry(10, 500) + offset_entry(20, 0) + TAIL)

    def write_the_rest(seconds: float) -> None:
        path.write_bytes(offset_entry(10, 500) + offset_entry(20, 900) + TAIL)

    monkeypatch.setattr(time, "sleep", write_the_rest)
    columns = read_offset_index(str(path), 100)
    assert columns.defect is None
    assert columns.offsets.tolist() == [110, 120]
    assert columns.values.tolist() == [500, 900]


def test_an_entry_that_stays_half_written_is_a_defect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"{100:020d}.index"
    path.write_bytes(offset_entry(10, 500) + offset_entry(20, 0) + TAIL)
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    defect = read_offset_index(str(path), 100).defect
    assert defect == "entry 1 is (120, 0), expected both above (110, 500)"
    assert pauses == [*LIVE_PAUSES]


def test_half_an_entry_of_a_time_index_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / f"{100:020d}.timeindex"
    whole = (7_000).to_bytes(8, "big") + (10).to_bytes(4, "big")
    path.write_bytes(whole + (8_000).to_bytes(8, "big") + bytes(4) + TAIL)
    columns = read_time_index(str(path), 100)
    assert columns.defect is None
    assert columns.offsets.tolist() == [110]


# ---- what they cost consumers

BATCHES = [
    batch_v2([each._replace(timestamp=1_000 * each.offset) for each in plain_records(at, 2)])
    for at in range(0, 24, 2)
]
SIZE = len(BATCHES[0].data)
LAST = BATCHES[-1].last_offset


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """Give a partition of two segments that was closed in order."""
    mark_clean_shutdown(tmp_path)
    return write_partition(tmp_path, {0: BATCHES[:6], 12: BATCHES[6:]})


def affected(directory: Path) -> list[tuple[int | None, int | None]]:
    verdict = pylog.doctor(directory.parent).verdict
    assert verdict.would_start
    return [(each.from_offset, each.to_offset) for each in verdict.consumers]


def write_offsets(directory: Path, *entries: tuple[int, int]) -> None:
    content = b"".join(OFFSET_ENTRY.pack(*each) for each in entries)
    segment_path(directory, 0, ".index").write_bytes(content)


def write_times(directory: Path, base: int, *entries: tuple[int, int]) -> None:
    content = b"".join(TIME_ENTRY.pack(time, offset - base) for time, offset in entries)
    segment_path(directory, base, ".timeindex").write_bytes(content)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([(3, SIZE), (9, 4 * SIZE)], []),
        ([(3, 0), (9, SIZE)], []),  # too early: a broker reads on
        ([(3, 2 * SIZE), (9, 4 * SIZE)], [(3, 9)]),  # behind the batch
        ([(3, SIZE), (9, 4 * SIZE + 7)], [(9, 12)]),  # into a batch
        ([(3, SIZE), (9, 60 * SIZE)], [(9, 12)]),  # behind the end
        ([(9, 4 * SIZE), (3, 5 * SIZE)], [(0, 12)]),  # no order
    ],
)
def test_entries_of_an_offset_index_harm_that_lead_too_far(
    closed: Path, entries: list[tuple[int, int]], expected: list[tuple[int, int]]
) -> None:
    write_offsets(closed, *entries)
    assert affected(closed) == expected


def test_zeros_in_an_offset_index_lead_to_the_beginning(closed: Path) -> None:
    write_offsets(closed, *[(0, 0)] * 5)
    assert affected(closed) == []


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([(5_000, 5), (11_000, 11)], []),
        # One that is early: look-ups from the one before on begin at its batch.
        ([(5_000, 5), (5_500, 9), (11_000, 11)], [(5, 9)]),
        # The last one is early: later records are not found at all.
        ([(5_000, 5)], [(6, 12)]),
        ([(5_000, 5), (7_500, 7)], [(8, 12)]),
        ([(1, 11)], [(0, 12)]),
        # The last one is late: later segments are not looked at.
        ([(5_000, 5), (90_000, 11)], [(5, None)]),
        # One before it is late: look-ups begin before.
        ([(6_000, 5), (11_000, 11)], []),
        ([(11_000, 11), (5_000, 5)], [(0, 12)]),
    ],
)
def test_entries_of_a_time_index_harm_that_are_not_the_times_of_all_batches_before(
    closed: Path, entries: list[tuple[int, int]], expected: list[tuple[int, int | None]]
) -> None:
    write_times(closed, 0, *entries)
    assert affected(closed) == expected


def test_zeros_behind_the_entries_of_a_time_index_are_entries_to_a_broker(closed: Path) -> None:
    path = segment_path(closed, 0, ".timeindex")
    path.write_bytes(path.read_bytes() + bytes(120))
    assert affected(closed) == [(0, 12)]


def test_the_time_index_of_the_last_segment_is_written_to_its_end_by_a_clean_stop(
    closed: Path,
) -> None:
    write_times(closed, 12, (15_000, 15))
    assert affected(closed) == [(16, LAST + 1)]
    (closed.parent / ".kafka_cleanshutdown").unlink()
    assert list(pylog.doctor(closed.parent).findings) == []


def test_headers_that_are_late_are_not_the_times_of_an_index(closed: Path) -> None:
    late = BATCHES[2].data[:35] + (90_000).to_bytes(8, "big") + BATCHES[2].data[43:]
    content = joined(BATCHES[:2]) + resealed(late) + joined(BATCHES[3:6])
    segment_path(closed, 0).write_bytes(content)
    assert affected(closed) == []
    write_times(closed, 0, (90_000, 5))
    assert affected(closed) == [(5, None)]


def test_headers_that_are_early_hide_their_records(closed: Path) -> None:
    early = BATCHES[2].data[:35] + (10).to_bytes(8, "big") + BATCHES[2].data[43:]
    content = joined(BATCHES[:2]) + resealed(early) + joined(BATCHES[3:6])
    segment_path(closed, 0).write_bytes(content)
    assert affected(closed) == [(4, 6)]


@pytest.mark.parametrize(
    ("entries", "times", "expected"),
    [
        # An entry is about the last offset of a batch: the first one behind has none before it.
        ([(3, SIZE), (7, 3 * SIZE)], [(5_000, 5), (7_000, 7), (11_000, 11)], (6, 8)),
        ([(3, SIZE), (11, 5 * SIZE)], [(5_000, 5), (7_000, 7), (11_000, 11)], (6, 11)),
        ([(3, SIZE), (7, 3 * SIZE)], [(11_000, 11)], (6, 12)),
        ([], [(11_000, 11)], (6, 12)),
    ],
)
def test_batches_behind_a_block_of_zeros_are_reached_by_an_entry_alone(
    closed: Path,
    entries: list[tuple[int, int]],
    times: list[tuple[int, int]],
    expected: tuple[int, int],
) -> None:
    write_offsets(closed, *entries)
    write_times(closed, 0, *times)
    content = joined(BATCHES[:2]) + bytes(SIZE) + joined(BATCHES[3:6])
    segment_path(closed, 0).write_bytes(content)
    assert affected(closed) == [(4, 6), expected]


def test_sizes_lead_over_damage_that_leaves_them(closed: Path) -> None:
    write_offsets(closed)
    content = joined(BATCHES[:2]) + with_bad_crc(BATCHES[2]).data + joined(BATCHES[3:6])
    segment_path(closed, 0).write_bytes(content)
    assert affected(closed) == [(4, 6)]
