"""Which staged files become segments."""

from __future__ import annotations

import pytest

from pylog.writing.segment_adoption import SegmentAdoption

MIB = 1 << 20
GIB = 1 << 30


@pytest.mark.parametrize(
    ("segments", "size_bytes", "file_bytes", "is_adopted"),
    [
        (0, 0, 8 * MIB - 1, False),
        (0, 0, 8 * MIB, True),
        (31, 0, 8 * MIB, True),
        (32, 0, 8 * MIB, False),
        (32, 0, 64 * MIB - 1, False),
        (32, 0, 64 * MIB, True),
        (10_000, 0, 64 * MIB, True),
        (47, GIB, 8 * MIB, True),
        (48, GIB, 8 * MIB, False),
    ],
)
def test_the_least_size_depends_on_how_many_segments_there_are(
    segments: int, size_bytes: int, file_bytes: int, *, is_adopted: bool
) -> None:
    assert SegmentAdoption(GIB, segments, size_bytes).adopt(file_bytes) is is_adopted


@pytest.mark.parametrize(
    ("segment_bytes", "segments", "least"),
    [(4 * MIB, 0, 2 * MIB), (4 * MIB, 1_000, 2 * MIB), (100 * MIB, 1_000, 50 * MIB)],
)
def test_half_a_segment_becomes_one(segment_bytes: int, segments: int, least: int) -> None:
    assert SegmentAdoption(segment_bytes, segments).adopt(least)
    assert not SegmentAdoption(segment_bytes, segments).adopt(least - 1)


@pytest.mark.parametrize("file_mib", [1, 8, 10, 63, 64, 100])
def test_many_small_jobs_leave_few_segments(file_mib: int) -> None:
    adoption = SegmentAdoption(GIB)
    for _ in range(24 * 60):
        adoption.adopt(file_mib * MIB)
    assert adoption.size_bytes == 24 * 60 * file_mib * MIB
    assert adoption.segments <= 32 + 16 * adoption.size_bytes / GIB
