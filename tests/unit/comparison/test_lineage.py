"""Rules of lineages, each by a table: what each replica has, and what is the log."""

from __future__ import annotations

import itertools
import random

import pytest

from pylog.comparison.batch_join import BatchPlace, BatchStretch
from pylog.comparison.lineage import Evidence, LastLeader, LogLineage, find_lineage, heaviest_rising
from pylog.files.leader_epochs import EpochEntry


def stretch(start: int, end: int, epoch: int, *replicas: int, batches: int = 10) -> BatchStretch:
    places = {each: BatchPlace(0, start * 100) for each in replicas}
    size = (end - start) * 100
    return BatchStretch(start, end, epoch, batches, end - start, size, 5, 9, places)


def evidence(*epochs: list[tuple[int, int]]) -> list[Evidence]:
    return [
        Evidence(f"replica {at}", [EpochEntry(*each) for each in entries], node_id=at)
        for at, entries in enumerate(epochs)
    ]


def taken(found: LogLineage) -> list[tuple[int, int, int, str]]:
    return [
        (each.stretch.start_offset, each.stretch.end_offset, each.stretch.epoch, each.rule)
        for each in found.taken
    ]


def ranges(stretches: list[BatchStretch]) -> list[tuple[int, int, int]]:
    return [(each.start_offset, each.end_offset, each.epoch) for each in stretches]


def test_the_replica_with_the_highest_epoch_is_the_log_and_the_longer_one_a_branch() -> None:
    found = find_lineage(
        [stretch(0, 40, 0, 0, 1), stretch(40, 90, 0, 0), stretch(40, 60, 1, 1)],
        evidence([(0, 0)], [(0, 0), (1, 40)]),
    )
    assert taken(found) == [(0, 40, 0, "leader"), (40, 60, 1, "leader")]
    assert (found.root, found.epoch, found.is_proven) == (1, 1, False)
    assert ranges(found.branches) == [(40, 90, 0)]
    assert not found.unproven
    assert not found.undecided


def test_of_equal_epochs_the_longest_is_the_log() -> None:
    found = find_lineage(
        [stretch(0, 40, 0, 0, 1), stretch(40, 90, 0, 0)], evidence([(0, 0)], [(0, 0)])
    )
    assert (found.root, taken(found)) == (0, [(0, 40, 0, "leader"), (40, 90, 0, "leader")])


def test_a_hole_is_filled_by_whoever_shares_a_later_batch() -> None:
    stretches = [
        stretch(0, 10, 0, 0, 1),
        stretch(10, 30, 0, 1),
        stretch(30, 40, 1, 1),
        stretch(40, 60, 1, 0, 1),
        stretch(60, 80, 2, 0),
    ]
    found = find_lineage(stretches, evidence([(0, 0), (1, 30), (2, 60)], []))
    assert [each[3] for each in taken(found)] == [
        *("leader", "follower", "follower", "leader", "leader")
    ]


def test_what_is_of_the_epoch_of_a_later_batch_is_on_it_though_nothing_else_is_shared() -> None:
    stretches = [stretch(20, 40, 3, 1), stretch(60, 80, 3, 0)]
    found = find_lineage(stretches, evidence([], []))
    assert taken(found) == [(20, 40, 3, "epoch"), (60, 80, 3, "leader")]


def test_an_epoch_is_on_it_as_far_as_a_checkpoint_of_the_log_has_it() -> None:
    stretches = [
        *(stretch(0, 50, 0, 1), stretch(50, 70, 0, 1)),
        stretch(60, 80, 1, 0),
    ]
    # The join ends a stretch where a checkpoint has an epoch begin.
    found = find_lineage(stretches, evidence([(0, 0), (1, 50)], [(0, 0)]))
    assert taken(found) == [(0, 50, 0, "checkpoint"), (60, 80, 1, "leader")]
    assert ranges(found.branches) == [(50, 70, 0)]
    # Without it nothing tells how long the epoch lasted.
    stretches = [stretch(0, 50, 0, 1), stretch(60, 80, 1, 0)]
    found = find_lineage(stretches, evidence([], [(0, 0)]))
    assert taken(found) == [(60, 80, 1, "leader")]
    assert ranges(found.unproven) == [(0, 50, 0)]


def test_a_checkpoint_that_contradicts_a_batch_of_the_log_proves_nothing() -> None:
    stretches = [stretch(0, 50, 0, 1), stretch(60, 80, 1, 0)]
    found = find_lineage(stretches, evidence([(0, 0), (1, 50), (4, 70)], []))
    assert ranges(found.unproven) == []
    stretches = [stretch(0, 50, 0, 1), stretch(60, 80, 3, 0)]
    found = find_lineage(stretches, evidence([(0, 0), (1, 50)], []))
    assert ranges(found.unproven) == [(0, 50, 0)]


def test_a_leader_that_wrote_nothing_cuts_what_others_have_beyond_its_start() -> None:
    stretches = [stretch(0, 40, 0, 0, 1), stretch(40, 90, 0, 1)]
    found = find_lineage(stretches, evidence([(0, 0), (5, 40)], [(0, 0)]))
    assert (found.root, taken(found)) == (0, [(0, 40, 0, "leader")])
    assert ranges(found.branches) == [(40, 90, 0)]


def test_a_last_leader_whose_log_is_gone_is_not_decided() -> None:
    found = find_lineage([stretch(0, 40, 0, 1)], evidence([(7, 0)], [(0, 0)]))
    assert "may have been empty" in found.undecided[0]
    assert not found.taken
    # If it began at an offset, what was below is its log.
    found = find_lineage(
        [stretch(0, 30, 0, 1), stretch(30, 40, 0, 1)], evidence([(0, 0), (7, 30)], [(0, 0)])
    )
    assert taken(found) == [(0, 30, 0, "checkpoint")]
    assert ranges(found.branches) == [(30, 40, 0)]


def test_two_histories_of_one_epoch_are_not_decided_unless_one_is_preferred() -> None:
    def both() -> list[BatchStretch]:
        return [stretch(0, 40, 0, 0), stretch(0, 45, 0, 1)]

    found = find_lineage(both(), evidence([(0, 0)], [(0, 0)]))
    assert len(found.undecided) == 1
    for part in ("offsets 0 to 39", "offsets 0 to 44", "epoch 0", "replica 0", "replica 1", "1970"):
        assert part in found.undecided[0]
    assert not found.taken
    for chosen, end in ((0, 40), (1, 45)):
        found = find_lineage(both(), evidence([(0, 0)], [(0, 0)]), prefers=chosen)
        assert (taken(found), found.undecided) == ([(0, end, 0, "preferred")], [])


def test_of_two_batches_of_one_epoch_that_of_most_replicas_counts() -> None:
    stretches = [stretch(0, 40, 0, 0), stretch(0, 40, 0, 1, 2)]
    found = find_lineage(stretches, evidence([(0, 0)], [(0, 0)], [(0, 0)]))
    assert (found.undecided, len(found.taken)) == ([], 1)
    assert found.taken[0].stretch.places.keys() == {1, 2}
    assert [(each.replica, each.stretch.start_offset) for each in found.doubts] == [(0, 0)]


def test_the_metadata_name_the_last_leader_though_another_replica_is_longer() -> None:
    stretches = [stretch(0, 40, 0, 0, 1), stretch(40, 90, 0, 0)]
    nodes = evidence([(0, 0)], [(0, 0)])
    found = find_lineage(stretches, nodes, leader=LastLeader(1, 3))
    assert (found.root, found.is_proven) == (1, True)
    assert taken(found) == [(0, 40, 0, "leader")]
    assert ranges(found.unproven) == [(40, 90, 0)]


def test_metadata_that_are_older_than_the_log_decide_nothing() -> None:
    found = find_lineage([stretch(0, 40, 5, 0)], evidence([(5, 0)]), leader=LastLeader(0, 4))
    assert "give a newer copy" in found.undecided[0]


def test_a_last_leader_whose_disk_is_not_there_is_named() -> None:
    found = find_lineage([stretch(0, 40, 2, 0)], evidence([(2, 0)]), leader=LastLeader(9, 4))
    assert (found.is_proven, taken(found)) == (False, [(0, 40, 2, "leader")])
    (note,) = found.notes
    assert note.startswith("node 9 led last, in epoch 4, and its log is not among the replicas")
    # Who has a batch of that epoch has its whole log below.
    found = find_lineage([stretch(0, 40, 4, 0)], evidence([(4, 0)]), leader=LastLeader(9, 4))
    assert found.is_proven


@pytest.mark.parametrize("flipped", [1 << 17, 1 << 30, 3])
def test_one_flipped_epoch_in_the_middle_wins_nothing(flipped: int) -> None:
    stretches = [
        *(stretch(0, 40, 0, 0, 1), stretch(40, 41, flipped, 1, batches=1)),
        *(stretch(40, 41, 0, 0, batches=1), stretch(41, 80, 0, 0, 1), stretch(80, 99, 1, 0)),
    ]
    found = find_lineage(stretches, evidence([(0, 0), (1, 80)], []))
    assert (found.root, found.epoch) == (0, 1)
    assert ranges([each.stretch for each in found.taken]) == [
        *((0, 40, 0), (40, 41, 0), (41, 80, 0), (80, 99, 1))
    ]
    assert [each.replica for each in found.doubts] == [1]


def test_a_last_batch_whose_epoch_no_checkpoint_knows_wins_nothing() -> None:
    stretches = [stretch(0, 40, 0, 0, 1), stretch(40, 41, 131072, 1, batches=1)]
    found = find_lineage(stretches, evidence([(0, 0)], [(0, 0)]))
    assert (found.epoch, taken(found)) == (0, [(0, 40, 0, "leader")])
    assert "no leader epoch checkpoint knows its epoch 131072" in found.doubts[0].reason
    # A checkpoint that does not even know the epoch before is an old one, and says nothing.
    stretches = [stretch(0, 40, 6, 0, 1), stretch(40, 41, 7, 1, batches=1)]
    assert find_lineage(stretches, evidence([(0, 0)], [(0, 0)])).epoch == 7


def test_a_last_batch_that_leaves_a_gap_in_its_file_wins_nothing() -> None:
    last = stretch(268435461, 268435462, 0, 1, batches=1)
    last.jumping = {1}
    found = find_lineage([stretch(0, 40, 0, 0, 1), last], evidence([(0, 0)], [(0, 0)]))
    assert taken(found) == [(0, 40, 0, "leader")]
    assert "does not follow" in found.doubts[0].reason


def test_what_a_cleaner_has_rewritten_is_no_other_history() -> None:
    one, other = stretch(0, 40, 0, 0), stretch(5, 30, 0, 1)
    one.is_cleaned = True
    found = find_lineage([one, other], evidence([(0, 0)], [(0, 0)]))
    assert taken(found) == [(0, 40, 0, "leader")]
    assert (ranges(found.rewritten), found.branches) == ([(5, 30, 0)], [])


def test_nothing_is_found_of_nothing() -> None:
    found = find_lineage([], evidence([], []))
    assert (found.root, found.taken, found.undecided) == (None, [], [])


def test_the_heaviest_sequence_that_never_falls_is_that_of_a_search_through_all() -> None:
    choice = random.Random(7)
    for _ in range(300):
        values = [(choice.randrange(5), choice.randrange(1, 6)) for _ in range(choice.randrange(9))]
        found = heaviest_rising(values)
        best = 0
        for count in range(len(values) + 1):
            for which in itertools.combinations(range(len(values)), count):
                keys = [values[at][0] for at in which]
                if keys == sorted(keys):
                    best = max(best, sum(values[at][1] for at in which))
        keys = [values[at][0] for at in found]
        assert keys == sorted(keys)
        assert found == sorted(set(found))
        assert sum(values[at][1] for at in found) == best, values
