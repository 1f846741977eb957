"""Random histories of replicas, and random damage: `merge` against a model that knows the truth.

The truth is the log of the last leader. What of it is intact on some disk is in the result, or is
reported; and the result is one history, be it another one where nothing tells of the last leader.
"""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

from pylog.errors import DivergedReplicasError
from pylog.jobs import merge
from tests.support.log_files import tree
from tests.support.metadata_log import partition_record, topic_record, write_metadata_log
from tests.support.replica_histories import (
    PARTITION,
    damage,
    random_history,
    stored_batches,
    whole_in,
    write_replica,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.results import MergedPartition
    from tests.conftest import HowMany
    from tests.support.replica_histories import History

SEED = 55


class Case(NamedTuple):
    history: History
    directories: list[Path]
    hits: list[tuple[int, str]]


def _case(place: Path, number: int) -> Case:
    choice = random.Random(SEED * 1_000_003 + number)
    history = random_history(choice)
    segment_bytes = choice.choice([200, 400, 1000, 10**6])
    directories = []
    for node, replica in enumerate(history.replicas):
        log_directory = place / f"n{node}"
        directories.append(write_replica(replica, log_directory, segment_bytes))
        text = f"version=1\ncluster.id=c\nnode.id={node}\n"
        (log_directory / "meta.properties").write_text(text)
    hits = []
    for _ in range(choice.randrange(7)):
        node = choice.randrange(3)
        hits.append((node, damage(directories[node], choice)))
    return Case(history, directories, hits)


def _judge(case: Case, merged: MergedPartition, result: Path, *, what: str) -> int:
    """Hold a result against the truth; return how many of its batches were on some disk."""
    truth = [each.built.data for each in case.history.truth]
    found = list(stored_batches(result / PARTITION))
    intact = [each for each in truth if any(whole_in(place, each) for place in case.directories)]
    is_true = [each in set(truth) for each in found]
    if not all(is_true):
        # Another history: allowed where nothing tells, and then from its fork on alone.
        assert not merged.is_proven, what
        assert not any(is_true[is_true.index(False) :]), f"{what}: two histories in one log"
        return 0
    missing = [each for each in intact if each not in set(found)]
    for each in missing:
        offset = int.from_bytes(each[:8], "big")
        ranges: list[tuple[int, int | None]] = []
        ranges += [(one.start_offset, one.end_offset) for one in merged.gaps]
        ranges += [(one.start_offset, one.end_offset) for one in merged.branches]
        reported = any(start <= offset < (end or sys.maxsize) for start, end in ranges)
        assert reported or offset >= merged.end_offset, f"{what}: offset {offset} is lost"
    return len(intact) - len(missing)


@pytest.mark.parametrize("knows_leader", [False, True])
def test_what_is_intact_of_the_last_leaders_log_is_in_the_result(
    tmp_path: Path, how_many: HowMany, *, knows_leader: bool
) -> None:
    count = how_many(25, 1000)
    intact = recovered = others = 0
    for number in range(count):
        place = tmp_path / str(number)
        case = _case(place, number)
        what = f"seed {SEED}, case {number}, {case.hits}"
        before = tree(place)
        metadata = None
        if knows_leader:
            history = case.history
            values = [
                topic_record("orders"),
                partition_record(0, history.leader, (0, 1, 2), leader_epoch=history.epoch),
            ]
            metadata = place / "controller"
            write_metadata_log(metadata, values)
            before = tree(place)
        try:
            done = merge(*case.directories, to=place / "out", metadata=metadata)
        except DivergedReplicasError:
            assert tree(place) == before, what
            others += 1
            continue
        after = {name: data for name, data in tree(place).items() if not name.startswith("out/")}
        assert after == before, what
        (merged,) = done.partitions
        recovered_here = _judge(case, merged, place / "out", what=what)
        truth = [each.built.data for each in case.history.truth]
        intact_here = sum(any(whole_in(each, one) for each in case.directories) for one in truth)
        if recovered_here or not intact_here:
            intact += intact_here
            recovered += recovered_here
        else:
            others += 1
    # Another history is the rare case, and so is an intact batch that nothing proves.
    assert others <= max(2, count // 20), (others, count)
    assert recovered >= intact * 0.98
