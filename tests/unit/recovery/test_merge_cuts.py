"""The ends that tasks find are those that one process finds."""

from __future__ import annotations

import pickle
import random
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import DivergedReplicasError
from pylog.jobs import MergeCuts, merge
from pylog.model import TopicPartition
from tests.support.batches import ABORT, COMMIT
from tests.unit.recovery.test_merge import log, replica
from tests.unit.recovery.test_merge_until import end, part

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pylog.recovery.merge_cuts import Task


def run(places: Sequence[TopicPartition], task: Task) -> list[Any]:
    """Run tasks one after the other; what they return goes through a pickle, as between nodes."""
    return [pickle.loads(pickle.dumps(task(each, 0))) for each in places]  # noqa: S301 - our own


def write_history(directory: Path, seed: int) -> None:
    """Write three partitions with transactions of two producers whose clocks differ."""
    choice = random.Random(seed)
    for partition in range(3):
        batches, offset = [], 0
        for at in range(12):
            producer = choice.choice([7, 8])
            stamp = 1000 + 100 * at + choice.choice([0, 0, 400])
            if at % 4 == 3:
                kind = choice.choice([COMMIT, COMMIT, ABORT])
                batches.append(end(offset, kind, stamp, producer=producer))
                offset += 1
            else:
                batches.append(part(offset, 5, stamp, producer=producer))
                offset += 5
        replica(directory, {0: batches}, name=f"orders-{partition}")


@pytest.mark.parametrize("until", [17, pylog.Timestamp(1550), pylog.Timestamp(1900)])
def test_tasks_find_the_ends_that_one_process_finds(
    tmp_path: Path, until: int | pylog.Timestamp
) -> None:
    for seed in range(20):
        place, above = tmp_path / f"{seed}-source", tmp_path / str(seed)
        above.mkdir()
        write_history(place, seed)
        planned = merge(place, to=above / "x", until=until, dry_run=True)
        cuts = MergeCuts((str(place),), until).find(
            [TopicPartition("orders", each) for each in range(3)], run
        )
        assert [
            cuts[TopicPartition("orders", each.partition)][:4] for each in planned.partitions
        ] == [each.cut for each in planned.partitions]
        done = merge(place, to=above / "whole", until=until)
        for number in range(3):
            here = TopicPartition("orders", number)
            (alone,) = merge(
                place,
                to=above / f"part-{number}",
                topics=["orders"],
                partitions=[number],
                until=cuts[here],
            ).partitions
            assert alone == done.partitions[number]


def test_undecided_histories_have_no_ends(tmp_path: Path) -> None:
    for node, step in ((1, 5), (2, 10)):
        replica(tmp_path / str(node), {0: log(0, 40, step=step)})
    paths = tuple(str(tmp_path / each) for each in "12")
    with pytest.raises(DivergedReplicasError, match="orders-0"):
        MergeCuts(paths, 20).find([TopicPartition("orders", 0)], run)
    found = MergeCuts(paths, 20, None, 0).find([TopicPartition("orders", 0)], run)
    assert [each.end_offset for each in found.values()] == [20]


def test_the_coordinators_topic_has_no_end(tmp_path: Path) -> None:
    replica(tmp_path / "1", {0: log(0, 40)}, name="__transaction_state-3")
    replica(tmp_path / "1", {0: log(0, 40)})
    places = [TopicPartition("__transaction_state", 3), TopicPartition("orders", 0)]
    cuts = MergeCuts((str(tmp_path / "1"),), 20).find(places, run)
    assert list(cuts) == [TopicPartition("orders", 0)]
