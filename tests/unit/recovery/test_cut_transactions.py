"""Which transactions a range cuts: a table over one log, whose batches say what is true."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.recovery.cut_transactions import find_cut, open_at_end_of, whole_end
from tests.support.batches import ABORT, COMMIT, Built, batch_v2, marker, plain_records
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.reading.log_view import LogView


def data(start: int, producer: int, count: int = 2) -> Built:
    return batch_v2(
        plain_records(start, count),
        producer_id=producer,
        producer_epoch=0,
        base_sequence=start,
        is_transactional=True,
    )


# Producers 1 and 2 overlap, 3 begins when 1 ends, 4 never ends; a marker of leaders is no end.
BATCHES = [
    data(0, 1),
    data(2, 2),
    marker(4, COMMIT, producer_id=1),
    data(5, 3),
    marker(7, ABORT, producer_id=2),
    data(8, 3),
    marker(10, COMMIT, producer_id=3),
    data(11, 4),
    batch_v2(plain_records(13, 2)),
]


@pytest.fixture(params=[1, 3, len(BATCHES)])
def view(request: pytest.FixtureRequest, tmp_path: Path) -> LogView:
    """Give the log, cut into segments of so many batches."""
    size = request.param
    segments = {BATCHES[at].base_offset: BATCHES[at : at + size] for at in range(0, 9, size)}
    write_partition(tmp_path, segments)
    [found] = pylog.open_directory(tmp_path)
    return found


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 0, {}),
        (0, 1, {1: 0}),  # in the middle of a batch
        (0, 3, {1: 0, 2: 2}),
        (1, 3, {1: 1, 2: 2}),  # it begins where the range does
        (0, 5, {2: 2}),
        (5, 7, {3: 5}),
        (5, 8, {3: 5}),  # the end of one that is not in the range
        (0, 10, {3: 5}),
        (0, 11, {}),
        (0, 15, {4: 11}),
    ],
)
def test_a_transaction_is_open_without_its_marker(
    view: LogView, start: int, end: int, expected: dict[int, int]
) -> None:
    assert open_at_end_of(view, start, end) == expected


@pytest.mark.parametrize(
    ("end", "since", "expected"),
    [
        (3, {1: 0, 2: 2}, [(1, "committed", 4), (2, "aborted", 7)]),
        (3, {2: 2, 1: 3}, [(2, "aborted", 7), (1, "committed", 4)]),  # by where they begin
        (6, {3: 5}, [(3, "committed", 10)]),
        (10, {3: 8}, [(3, "committed", 10)]),
        (12, {4: 11}, [(4, "open", None)]),  # more of it, and no marker
        (15, {4: 11}, []),  # nothing of it comes after
        (3, {9: 0}, []),
        (3, {}, []),
    ],
)
def test_the_whole_log_tells_what_became_of_it(
    view: LogView, end: int, since: dict[int, int], expected: list[tuple[int, str, int | None]]
) -> None:
    found = find_cut(view, since, end)
    assert [(each.producer_id, each.state, each.marker_offset) for each in found] == expected
    assert [each.first_offset for each in found] == [since[each[0]] for each in expected]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 0, 0),
        (0, 1, 11),  # the end of 1 is in 2, whose end is in 3
        (0, 4, 11),
        (0, 10, 11),
        (0, 11, 11),
        (5, 6, 11),
        (8, 8, 8),
        (11, 12, 12),  # the log itself leaves it open
        (13, 15, 15),
    ],
)
def test_a_range_may_end_where_no_transaction_is_cut(
    view: LogView, start: int, end: int, expected: int
) -> None:
    assert whole_end(view, start, end) == expected
