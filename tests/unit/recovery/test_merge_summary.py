"""What a branch is called, and what is complete."""

from __future__ import annotations

import pytest

from pylog.recovery.merge_summary import MergeBranch, MergedPartition, MergeGap, MergeSummary

START = 1_700_000_000_000


@pytest.mark.parametrize(
    ("branch", "expected"),
    [
        (
            MergeBranch(5, 9, 2, 4, START, START + 1_000, ["a", "b"], "why"),
            (
                "offsets 5 to 8 of epoch 2 (4 records, 2023-11-14T22:13:20Z to "
                "2023-11-14T22:13:21Z) in a, b: why"
            ),
        ),
        (MergeBranch(5, 6, 0, 1, -1, -1, ["a"], "why"), "offset 5 of epoch 0 (1 record) in a: why"),
    ],
)
def test_a_branch_is_shown_with_its_times_if_it_has_some(
    branch: MergeBranch, expected: str
) -> None:
    assert str(branch) == expected


def test_a_gap_makes_a_partition_and_the_whole_incomplete() -> None:
    whole = MergedPartition("t", 0, 0, 9, None, 0, is_proven=True, size_bytes=0, sources=[])
    gap = MergeGap(3, 4, is_cleaned_or_lost=True, causes=[])
    part = MergedPartition("t", 1, 0, 9, None, 0, True, 0, [], gaps=[gap])  # noqa: FBT003
    assert (whole.is_complete, part.is_complete) == (True, False)
    for partitions, expected in (([], True), ([whole], True), ([whole, part], False)):
        assert MergeSummary("to", partitions).is_complete is expected
