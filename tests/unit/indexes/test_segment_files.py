"""The files of a segment together: made, renamed, preallocated, trimmed, deleted."""

from __future__ import annotations

import pytest

from pylog.errors import LogSegmentOffsetOverflowError
from tests.unit.log.made_segment import (
    HELLO_THERE_BYTES,
    Fixture,
    all_offsets,
    append,
    batch,
    made,
    offsets_read,
)

__all__ = ["made"]


def test_all_files_are_renamed_together_and_stay_open(made: Fixture) -> None:
    segment = made.segment()
    append(segment, batch(40, b"hello"))
    segment.create_indexes()
    segment.change_file_suffixes("", ".deleted")
    found = sorted(path.name for path in made.directory.iterdir())
    assert found == [f"{40:020d}{each}.deleted" for each in (".index", ".log", ".timeindex")]
    assert all_offsets(segment) == [40]
    with pytest.raises(ValueError, match=r"'\.deleted', expected ''"):
        segment.change_file_suffixes("", ".swap")
    segment.delete_if_exists()
    assert list(made.directory.iterdir()) == []
    segment.delete_if_exists()


def test_files_whose_directory_is_gone_are_gone(made: Fixture) -> None:
    segment = made.segment()
    append(segment, batch(40, b"hello"))
    segment.create_indexes()
    moved = made.directory.parent / "moved"
    made.directory.rename(moved)
    segment.delete_if_exists()
    moved.rename(made.directory)
    assert len(list(made.directory.iterdir())) == 3


def test_a_preallocated_file_is_written_from_its_beginning(made: Fixture) -> None:
    segment = made.segment(preallocate=True)
    path = made.directory / f"{40:020d}.log"
    assert path.stat().st_size == 100_000
    append(segment, batch(50, b"hello", b"there"))
    append(segment, batch(52, b"alpha", b"beta"))
    assert offsets_read(segment, 52) == [52, 53]
    assert path.stat().st_size == 100_000


def test_a_preallocated_file_is_trimmed_when_it_is_closed(made: Fixture) -> None:
    segment = made.segment(preallocate=True)
    append(segment, batch(50, b"hello", b"there"))
    segment.close()
    assert (made.directory / f"{40:020d}.log").stat().st_size == HELLO_THERE_BYTES
    again = made.segment(is_new=False, preallocate=True)
    append(again, batch(52, b"alpha"))
    assert all_offsets(again) == [50, 51, 52]


def test_indexes_that_do_not_exist_are_not_made_by_closing(made: Fixture) -> None:
    segment = made.segment()
    segment.close()
    assert [path.name for path in made.directory.iterdir()] == [f"{40:020d}.log"]


@pytest.mark.parametrize(
    ("offset", "expected"),
    [(40, True), (39, False), (40 + 2**31 - 1, True), (40 + 2**31, False), (0, False)],
)
def test_an_offset_fits_into_32_bits_after_the_base_offset(
    made: Fixture, offset: int, *, expected: bool
) -> None:
    segment = made.segment()
    assert segment.base_offset == 40
    assert segment.can_hold(offset) is expected
    if not expected:
        with pytest.raises(LogSegmentOffsetOverflowError):
            segment.ensure_offset_in_range(offset)
