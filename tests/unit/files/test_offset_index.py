from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.files.offset_index import OffsetIndexEntries
from pylog.model import OffsetPosition

if TYPE_CHECKING:
    from pathlib import Path

# Written by a 4.3.0 broker, base offset 0.
REAL_INDEX = bytes.fromhex(
    "000000050000019e0000000a000002ed0000000b0000050d0000001200000715"
    "00000013000008260000001a00000a5d0000001c00000be8"
)
REAL_ENTRIES = [(5, 414), (10, 749), (11, 1293), (18, 1813), (19, 2086), (26, 2653), (28, 3048)]


@pytest.fixture(params=[0, 3_000_000_000])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> OffsetIndexEntries:
    path = tmp_path / f"{request.param:020d}.index"
    path.write_bytes(REAL_INDEX + bytes(800))
    return OffsetIndexEntries.open(path, request.param)


def test_entries_are_those_a_broker_dumps(index: OffsetIndexEntries) -> None:
    assert list(index) == [(index.base_offset + o, p) for o, p in REAL_ENTRIES]
    assert index.last_offset == index.base_offset + 28


@pytest.mark.parametrize(
    ("relative_target", "expected"),
    [
        (-1, (0, 0)),
        (0, (0, 0)),
        (4, (0, 0)),
        (5, (5, 414)),
        (9, (5, 414)),
        (10, (10, 749)),
        (27, (26, 2653)),
        (28, (28, 3048)),
        (10**12, (28, 3048)),
    ],
)
def test_lookup_is_the_entry_at_or_below_the_target(
    index: OffsetIndexEntries, relative_target: int, expected: tuple[int, int]
) -> None:
    base = index.base_offset
    assert index.lookup(base + relative_target) == OffsetPosition(base + expected[0], expected[1])


@pytest.mark.parametrize(
    ("position", "size_bytes", "expected"),
    [
        (0, 0, (5, 414)),
        (0, 414, (5, 414)),
        (0, 415, (10, 749)),
        (414, 335, (10, 749)),
        (2086, 962, (28, 3048)),
        (2086, 963, None),
    ],
)
def test_upper_bound_is_the_first_entry_at_or_after_the_range(
    index: OffsetIndexEntries, position: int, size_bytes: int, expected: tuple[int, int] | None
) -> None:
    if expected is not None:
        expected = (index.base_offset + expected[0], expected[1])
    assert index.fetch_upper_bound_offset(OffsetPosition(0, position), size_bytes) == expected


def test_last_offset_of_an_empty_index_is_the_base_offset() -> None:
    index = OffsetIndexEntries.paged(None, 77)
    assert index.last_offset == 77
    assert index.fetch_upper_bound_offset(OffsetPosition(77, 0), 0) is None


@pytest.mark.parametrize("entry", ["fffffff00000000a", "0000000580000000"])
def test_impossible_entry_sends_the_reader_to_the_segment_start(tmp_path: Path, entry: str) -> None:
    path = tmp_path / "x.index"
    path.write_bytes(bytes.fromhex(entry))
    assert OffsetIndexEntries.open(path, 100).lookup(500) == (100, 0)


@pytest.mark.parametrize(
    ("relative_target", "slot"), [(-1, -1), (4, -1), (5, 0), (9, 0), (10, 1), (28, 6), (10**9, 6)]
)
def test_floor_slot_is_that_of_the_entry_of_a_lookup(
    index: OffsetIndexEntries, relative_target: int, slot: int
) -> None:
    assert index.floor_slot(index.base_offset + relative_target) == slot
    assert index.first_slot_from_position(REAL_ENTRIES[slot][1] if slot >= 0 else 0) == max(slot, 0)
