"""Up to where logs of several controllers are the same: `pylog.writing.metadata_quorum`."""

from __future__ import annotations

import pytest

from pylog.files.leader_epochs import EpochEntry
from pylog.writing.metadata_quorum import LogHistory, agreed_end_offset, common_end


def history(end_offset: int, *epochs: tuple[int, int]) -> LogHistory:
    return LogHistory([EpochEntry(*each) for each in epochs], end_offset)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (history(100, (1, 0)), history(60, (1, 0)), 60),
        (history(100, (1, 0), (2, 50)), history(60, (1, 0)), 50),
        (history(100, (1, 0), (2, 50)), history(40, (1, 0)), 40),
        (history(100, (1, 0), (2, 50)), history(90, (1, 0), (2, 50)), 90),
        (history(100, (1, 0), (3, 50)), history(90, (1, 0), (2, 45)), 45),
        (history(100, (1, 0), (3, 50)), history(90, (1, 0), (2, 60)), 50),
        (history(100, (2, 50)), history(90, (1, 0), (2, 50)), 90),
        (history(100, (2, 70), (3, 80)), history(90, (1, 0), (2, 50)), 80),
        (history(100, (2, 50)), history(90, (1, 0)), 0),
        (history(100), history(90), 90),
        (history(100, (1, 0)), history(90), 0),
    ],
)
def test_two_logs_are_the_same_as_far_as_their_epochs_are(
    one: LogHistory, other: LogHistory, expected: int
) -> None:
    assert common_end(one, other) == common_end(other, one) == expected


@pytest.mark.parametrize(
    ("ends", "voters", "expected"),
    [
        ([100], 1, 100),
        ([100], 3, 0),
        ([100, 60], 3, 60),
        ([60, 100, 80], 3, 80),
        ([100, 80], 5, 0),
        ([100, 60, 80], 5, 60),
        ([], 1, 0),
    ],
)
def test_what_most_voters_have_is_agreed_on(ends: list[int], voters: int, expected: int) -> None:
    assert agreed_end_offset([history(end, (1, 0)) for end in ends], voters) == expected
