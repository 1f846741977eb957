"""Which replicas have which batches, over which offsets; and who is right about an epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from pylog.comparison import batch_join
from pylog.comparison.batch_join import BatchJoin, BatchStretch
from pylog.comparison.replica_log import (
    BASE,
    COLUMNS,
    CRC,
    EPOCH,
    FILE,
    FIRST_MS,
    LAST,
    MAX_MS,
    POSITION,
    RECORDS,
    SIZE,
)
from pylog.files.leader_epochs import EpochEntry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.comparison.replica_log import Rows

Batch = tuple[int, int, int]  # offset, epoch, content


def windows(batches: Sequence[Batch], *, at_once: int = 3, segment: int = 100) -> list[Rows]:
    """Return windows of batches of ten offsets; a hole in the offsets is one in the file."""
    rows = np.zeros((COLUMNS, len(batches)), dtype=np.int64)
    for at, (offset, epoch, content) in enumerate(batches):
        rows[:, at][[BASE, LAST, EPOCH, CRC, SIZE]] = offset, offset + 9, epoch, content, 50
        rows[:, at][[FILE, POSITION]] = offset // segment, offset % segment * 5
        rows[:, at][[RECORDS, FIRST_MS, MAX_MS]] = 10, offset, offset + 9
    return [rows[:, at : at + at_once] for at in range(0, len(batches), at_once)]


def join(
    *replicas: Sequence[Batch],
    epochs: Sequence[Sequence[tuple[int, int]]] = ((), (), ()),
    at_once: int = 2,
) -> BatchJoin:
    entries = [[EpochEntry(*each) for each in one] for one in epochs]
    found = BatchJoin(
        [windows(each, at_once=at_once + at) for at, each in enumerate(replicas)], entries
    )
    found.run()
    return found


def shown(stretches: Sequence[BatchStretch]) -> list[tuple[int, int, int, list[int]]]:
    return [
        (each.start_offset, each.end_offset, each.epoch, sorted(each.places)) for each in stretches
    ]


def same(start: int, end: int, epoch: int = 0, content: int = 7) -> list[Batch]:
    return [(at, epoch, content) for at in range(start, end, 10)]


def test_healthy_replicas_are_one_stretch_a_segment() -> None:
    found = join(same(0, 250), same(0, 250), same(0, 250)).stretches
    assert shown(found) == [
        *((0, 100, 0, [0, 1, 2]), (100, 200, 0, [0, 1, 2]), (200, 250, 0, [0, 1, 2]))
    ]
    first = found[0]
    assert (first.batches, first.records, first.size_bytes) == (10, 100, 500)
    assert (first.first_timestamp, first.max_timestamp) == (0, 99)
    assert found[1].places[2] == (1, 0)


def test_what_one_lacks_the_others_have() -> None:
    found = join(same(0, 40) + same(60, 90), same(0, 90), same(0, 70)).stretches
    assert shown(found) == [
        *((0, 40, 0, [0, 1, 2]), (40, 60, 0, [1, 2]), (60, 70, 0, [0, 1, 2]), (70, 90, 0, [0, 1]))
    ]


def test_histories_that_part_are_stretches_of_their_own() -> None:
    one, other = same(0, 30) + same(30, 90, 0, 8), same(0, 30) + same(30, 60, 2, 9)
    found = join(one, other).stretches
    assert shown(found) == [(0, 30, 0, [0, 1]), (30, 60, 2, [1]), (30, 90, 0, [0])]


def test_a_stretch_ends_where_any_epoch_begins() -> None:
    found = join(same(0, 90), epochs=[[(0, 0), (4, 50)]]).stretches
    assert shown(found) == [(0, 50, 0, [0]), (50, 90, 0, [0])]
    found = join(same(0, 90), same(0, 20) + same(40, 60, 3, 8)).stretches
    assert shown(found) == [
        *((0, 20, 0, [0, 1]), (20, 40, 0, [0]), (40, 60, 3, [1]), (40, 90, 0, [0]))
    ]


def test_the_same_batch_under_two_leaders_is_two_where_both_fit() -> None:
    # A producer has sent it again, to the next leader.
    found = join(same(0, 50), same(0, 30) + same(30, 50, 2))
    assert shown(found.stretches) == [(0, 30, 0, [0, 1]), (30, 50, 0, [0]), (30, 50, 2, [1])]
    assert not found.other_epochs


def test_an_epoch_that_does_not_fit_between_its_neighbours_is_wrong() -> None:
    flipped = same(0, 20) + same(20, 30, 64) + same(30, 60)
    found = join(flipped, same(0, 60), at_once=9)
    assert shown(found.stretches) == [(0, 20, 0, [0, 1]), (20, 30, 0, [1]), (30, 60, 0, [0, 1])]
    assert found.other_epochs == [(0, 20, 64, 0)]


def test_an_epoch_that_the_replicas_checkpoint_contradicts_is_wrong() -> None:
    found = join(same(0, 20) + same(20, 30, 64), same(0, 30), epochs=[[(0, 0)], [(0, 0)]])
    assert shown(found.stretches) == [(0, 20, 0, [0, 1]), (20, 30, 0, [1])]
    # No checkpoint is there, but the step is that of a high bit.
    found = join(same(0, 20) + same(20, 30, 1 << 20), same(0, 30))
    assert shown(found.stretches) == [(0, 20, 0, [0, 1]), (20, 30, 0, [1])]


def test_nothing_comes_of_nothing() -> None:
    assert join([], []).stretches == []


@pytest.mark.parametrize("at_once", [(3, 3), (3, 5), (100, 100)])
def test_replicas_that_are_alike_give_what_they_give_by_sorting(
    at_once: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = [(10 * at + (7 if at > 20 else 0), at // 8, at) for at in range(40)]
    entries = [EpochEntry(0, 0), EpochEntry(3, 125)]

    def joined() -> list[BatchStretch]:
        sides = [iter(windows(batches, at_once=each)) for each in at_once]
        return BatchJoin(sides, [entries, []]).run()

    alike = joined()
    monkeypatch.setattr(batch_join, "_are_alike", lambda *_: False)
    assert alike == joined()
    assert len(alike) > 5
