"""How differences are collected: neighbours become one, all are counted, a long list is cut."""

from __future__ import annotations

import pytest

from pylog.comparison.diff_summary import (
    MOST_DIFFERENCES,
    Difference,
    Differences,
    DiffKind,
    DiffSummary,
    PartitionDiff,
)
from pylog.reading.damage import DamagedRange

RECORD, LEFT = DiffKind.RECORD, DiffKind.ONLY_LEFT


def collected(*given: Difference) -> Differences:
    found = Differences()
    for each in given:
        found.add(each)
    return found


@pytest.mark.parametrize(
    ("second", "is_one"),
    [
        (Difference(RECORD, 5, 9, 4), True),
        (Difference(RECORD, 6, 9, 3), False),  # not where the first ends
        (Difference(LEFT, 5, 9, 4), False),
        (Difference(RECORD, 5, 9, 4, "value"), False),
        (Difference(RECORD, 5, 9, 4, "", 3), False),  # one is of a copy
    ],
)
def test_neighbours_of_one_kind_are_one(second: Difference, *, is_one: bool) -> None:
    first = Difference(RECORD, 0, 5, 5)
    found = collected(first, second)
    assert found.found == ([Difference(RECORD, 0, 9, 9)] if is_one else [first, second])


def test_in_a_copy_neighbours_keep_where_the_first_one_is() -> None:
    found = collected(Difference(RECORD, 0, 1, 1, "", 7), Difference(RECORD, 1, 2, 1, "", 8))
    assert found.found == [Difference(RECORD, 0, 2, 2, "", 7)]


def test_all_are_counted_though_the_list_is_cut() -> None:
    found = collected(*(Difference(RECORD, 2 * at, 2 * at + 1, 1) for at in range(1500)))
    assert (len(found.found), found.counts) == (MOST_DIFFERENCES, {"record": 1500})
    more = collected(Difference(LEFT, 9, 10, 0))
    assert more.counts == {"only-left": 1}  # what has no record is one difference
    more.add_all(found)
    assert (len(more.found), more.counts) == (MOST_DIFFERENCES, {"only-left": 1, "record": 1500})


def test_one_kind_of_a_part_may_be_left_out() -> None:
    part = collected(Difference(RECORD, 0, 1, 1), Difference(DiffKind.BATCH, 1, 2, 1))
    found = collected()
    found.add_all(part, unless=DiffKind.BATCH)
    assert ([each.kind for each in found.found], found.counts) == ([RECORD], {"record": 1})


@pytest.mark.parametrize(
    ("next_offset", "end_offset", "expected"), [(5, 9, (5, 9)), (5, None, (5, 6)), (5, 5, (5, 5))]
)
def test_damage_says_file_and_byte(
    next_offset: int, end_offset: int | None, expected: tuple[int, int]
) -> None:
    found = Differences()
    damaged = DamagedRange("a.log", 10, 20, next_offset, end_offset, "a reason")
    found.add_damage(DiffKind.DAMAGED_LEFT, [damaged])
    [each] = found.found
    assert (each.kind, each[1:3]) == (DiffKind.DAMAGED_LEFT, expected)
    assert each.detail == "a.log at byte 10: a reason"


def test_they_are_given_by_offset_and_the_first_one_is_named() -> None:
    found = collected(Difference(LEFT, 7, 9, 2), Difference(RECORD, 3, 4, 1))
    partition = PartitionDiff("t", 0, "a", "b", "replicas", 0, found.in_order(), found.counts)
    alike = PartitionDiff("t", 1, "a", "b", "replicas")
    assert (partition.first_offset, alike.first_offset) == (3, None)
    assert (partition.is_alike, alike.is_alike) == (False, True)
    assert not DiffSummary([alike, partition]).is_alike
    assert DiffSummary([alike]).is_alike
