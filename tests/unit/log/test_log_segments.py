"""The segments of a log in the order of their offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.log.made_local_log import Local

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Local]:
    local = Local(tmp_path)
    yield local
    local.log.close_handlers()


def test_a_read_stays_within_one_segment_and_skips_empty_ones(local: Local) -> None:
    local.fill(3)
    local.log.segments.remove(2)
    assert local.offsets(0) == [0, 1]
    assert local.offsets(2) == [4, 5]


def test_segments_from_an_offset_on_are_those_that_begin_there_or_later(local: Local) -> None:
    local.fill(4)
    for start, expected in ((0, [0, 2, 4, 6, 8]), (1, [2, 4, 6, 8]), (7, [8]), (9, [])):
        found = local.log.segments.values_from(start)
        assert [segment.base_offset for segment in found] == expected
