"""Which batches of several replicas are one log: the history of the partition's last leader.

There is one leader in an epoch, and followers take its batches as they are. So batches of one epoch
are one sequence, and whoever has a batch of it has had, at that time, all that its leader had
below. What follows from that, until nothing more does:

============== =================================================================================
rule           a stretch of batches is on the lineage if
============== =================================================================================
``leader``     the replica of the last leader has it
``follower``   a replica has it that has a later batch of the lineage, too
``epoch``      its epoch is that of a later batch of the lineage, or the last one of all
``checkpoint`` its epoch, by a leader epoch checkpoint of the lineage, lasted beyond its offsets
``preferred``  nothing tells, and the caller prefers the replica
============== =================================================================================

The last leader is the node that the cluster's metadata names. Without it, that is the replica with
the highest epoch, in its checkpoint or in its batches, since a leader writes its epoch down before
its first record; of equals the longest. Whether there was a later leader, whose disk is not among
the replicas, then nobody knows.

Base offset and leader epoch of a batch are outside its checksum, and one flipped bit must not make
a leader. Of each replica the heaviest run of stretches counts whose epochs never go back. A single
batch at a replica's end does not count if no checkpoint knows its epoch, though its own is there,
or if its offset leaves a gap that no leader leaves.

Source: KIP-101, KIP-279, KIP-320 (LeaderEpochFileCache, AbstractFetcherThread; Kafka 4.3).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pylog.log_file.batch_walk import HIGHEST_OFFSET
from pylog.model import NO_PARTITION_LEADER_EPOCH, NO_TIMESTAMP
from pylog.text.words import offsets_text, time_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from pylog.comparison.batch_join import BatchStretch
    from pylog.files.leader_epochs import EpochEntry

LEADER, FOLLOWER, EPOCH, CHECKPOINT = "leader", "follower", "epoch", "checkpoint"
PREFERRED = "preferred"


class Evidence(NamedTuple):
    """What a replica says beside its batches."""

    name: str
    epochs: Sequence[EpochEntry] = ()
    node_id: int | None = None
    is_compacted: bool = False


class LastLeader(NamedTuple):
    """Who led a partition last, as the cluster's metadata has it."""

    node_id: int
    epoch: int


class Taken(NamedTuple):
    """A stretch of the lineage, and why it is on it."""

    stretch: BatchStretch
    rule: str


class Doubt(NamedTuple):
    """A stretch that does not count for a replica, and why."""

    stretch: BatchStretch
    replica: int
    reason: str


@dataclass(slots=True)
class LogLineage:
    """What `find_lineage` returns.

    Attributes
    ----------
    root
        The replica of the last leader; None without a batch and a checkpoint.
    epoch
        The highest epoch that is known of it.
    taken
        What is on it, in rising offsets.
    branches
        What is on none of it: written by leaders whose history has ended.
    rewritten
        What is on it, and a cleaner has left other records of.
    unproven
        What may be on it, where it has a hole.
    undecided
        Why it is not clear which of several histories is the log's; empty if it is.
    doubts
        What was not believed.
    is_proven
        Whether the cluster's metadata says who led last, and the replica of that node is there.
    """

    root: int | None = None
    epoch: int = NO_PARTITION_LEADER_EPOCH
    taken: list[Taken] = field(default_factory=list)
    branches: list[BatchStretch] = field(default_factory=list)
    rewritten: list[BatchStretch] = field(default_factory=list)
    unproven: list[BatchStretch] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_proven: bool = False


def find_lineage(
    stretches: Sequence[BatchStretch],
    replicas: Sequence[Evidence],
    *,
    leader: LastLeader | None = None,
    prefers: int | None = None,
) -> LogLineage:
    """Return which stretches are the history of a partition's last leader.

    Stretches that a replica only seems to have lose it: they are changed.
    """
    return _Search(stretches, replicas, leader, prefers).run()


class _Search:
    def __init__(
        self,
        stretches: Sequence[BatchStretch],
        replicas: Sequence[Evidence],
        leader: LastLeader | None,
        prefers: int | None,
    ) -> None:
        self._all = list(stretches)
        self._replicas = replicas
        self._leader = leader
        self._prefers = prefers
        self._found = LogLineage()
        self._held: list[list[BatchStretch]] = []  # by replica
        self._taken: dict[int, Taken] = {}
        self._starts: list[int] = []  # of what was taken
        self._in_order: list[BatchStretch] = []

    def run(self) -> LogLineage:
        self._drop_what_goes_back()
        self._drop_doubtful_ends()
        self._choose_of_rivals()
        self._all = [each for each in self._all if each.places]
        self._hold()
        self._choose_root()
        if not self._found.undecided:
            self._take_all()
            self._sort_the_rest()
        self._found.taken = [self._taken[id(each)] for each in self._in_order]
        return self._found

    # ---- what does not count

    def _hold(self) -> None:
        numbers = range(len(self._replicas))
        self._held = [[each for each in self._all if at in each.places] for at in numbers]

    def _drop(self, stretch: BatchStretch, replica: int, reason: str) -> None:
        del stretch.places[replica]
        self._found.doubts.append(Doubt(stretch, replica, reason))

    def _drop_what_goes_back(self) -> None:
        self._hold()
        for replica, held in enumerate(self._held):
            kept = heaviest_rising([(each.epoch, each.batches) for each in held])
            if len(kept) < len(held):
                for at in sorted(set(range(len(held))) - set(kept)):
                    reason = f"its epoch {held[at].epoch} is not between those around it"
                    self._drop(held[at], replica, reason)
        self._hold()

    def _drop_doubtful_ends(self) -> None:
        written = {entry.epoch for each in self._replicas for entry in each.epochs}
        for replica, held in enumerate(self._held):
            while held:
                reason = self._doubt_about_end(replica, held, written)
                if reason is None:
                    break
                self._drop(held.pop(), replica, reason)

    def _doubt_about_end(
        self, replica: int, held: Sequence[BatchStretch], written: set[int]
    ) -> str | None:
        last = held[-1]
        before = held[-2] if len(held) > 1 else None
        if last.batches > 1 or last.is_legacy or last.places.keys() != {replica}:
            return None
        gaps = sum(replica in each.jumping for each in held)
        was_cleaned = gaps > 1 or any(each.is_cleaned for each in held)
        is_compacted = was_cleaned or self._replicas[replica].is_compacted
        if replica in last.jumping and (not is_compacted or self._is_elsewhere(replica, last)):
            return "its offset does not follow that of the batch before it"
        own = self._replicas[replica].epochs
        before_epoch = NO_PARTITION_LEADER_EPOCH if before is None else before.epoch
        is_alone = all(each.epoch != last.epoch for each in self._all if each is not last)
        is_own_current = before is None or any(entry.epoch == before_epoch for entry in own)
        is_new = is_alone and last.epoch != before_epoch and last.epoch not in written
        if own and is_own_current and is_new:
            return f"no leader epoch checkpoint knows its epoch {last.epoch}"
        return None

    def _is_elsewhere(self, replica: int, stretch: BatchStretch) -> bool:
        """Whether others have a batch at another offset, which is outside its checksum."""
        content = stretch.batches, stretch.size_bytes, stretch.checksum
        return any(
            (each.batches, each.size_bytes, each.checksum) == content
            and replica not in each.places
            and each.start_offset < stretch.start_offset
            for each in self._all
        )

    def _choose_of_rivals(self) -> None:
        """Of different batches of one epoch at one offset, keep what most replicas have."""
        for one, other in list(_rivals(self._all)):
            if not one.places or not other.places:
                continue
            weaker = self._weaker(one, other)
            if weaker is None:
                self._found.undecided.append(self._rival_text(one, other))
                continue
            for replica in list(weaker.places):
                reason = f"other replicas have other batches of epoch {weaker.epoch} there"
                self._drop(weaker, replica, reason)

    def _weaker(self, one: BatchStretch, other: BatchStretch) -> BatchStretch | None:
        if self._prefers in one.places:
            return other
        if self._prefers in other.places:
            return one
        if len(one.places) != len(other.places):
            return min(one, other, key=lambda each: len(each.places))
        odd = [each for each in (one, other) if each.batches == 1 and each.jumping]
        return odd[0] if len(odd) == 1 else None

    def _rival_text(self, one: BatchStretch, other: BatchStretch) -> str:
        shown = [self.describe(each) for each in (one, other)]
        return f"the replicas have different batches of one leader: {shown[0]}, and {shown[1]}"

    def describe(self, stretch: BatchStretch) -> str:
        names = ", ".join(self._replicas[at].name for at in stretch.places)
        times = ""
        if stretch.max_timestamp != NO_TIMESTAMP:
            times = f" ({time_text(stretch.first_timestamp)} to {time_text(stretch.max_timestamp)})"
        shown = offsets_text(stretch.start_offset, stretch.end_offset)
        return f"{shown} of epoch {stretch.epoch}{times} in {names}"

    # ---- whose history it is

    def _rank(self, replica: int) -> tuple[int, int]:
        held, entries = self._held[replica], self._replicas[replica].epochs
        epochs = [entry.epoch for entry in entries[-1:]] + [each.epoch for each in held[-1:]]
        return max(epochs, default=-2), held[-1].end_offset if held else 0

    def _choose_root(self) -> None:
        found, ranks = self._found, [self._rank(at) for at in range(len(self._replicas))]
        if not self._all:
            return
        best = max(range(len(ranks)), key=lambda at: (ranks[at], -at))
        if self._prefers is not None:
            best = self._prefers
        elif self._leader is not None:
            best = self._root_by_metadata(best, ranks)
        found.root, found.epoch = best, ranks[best][0]
        entries = self._replicas[best].epochs
        if not self._held[best] and self._prefers is None:
            start = entries[-1].start_offset if entries else 0
            if start <= min(each.start_offset for each in self._all):
                found.undecided.append(
                    f"{self._replicas[best].name} was the last leader, in epoch {found.epoch}, and "
                    "has no records: its log may have been empty, which would be the log"
                )

    def _root_by_metadata(self, best: int, ranks: Sequence[tuple[int, int]]) -> int:
        leader, found = self._leader, self._found
        if leader is None:
            return best
        if ranks[best][0] > leader.epoch:
            found.undecided.append(
                f"the metadata says that epoch {leader.epoch} was the last one, and "
                f"{self._replicas[best].name} has epoch {ranks[best][0]}: give a newer copy of them"
            )
        is_known = ranks[best][0] == leader.epoch
        for at, each in enumerate(self._replicas):
            has_all = ranks[at][0] == leader.epoch or (self._held[at] and not is_known)
            if each.node_id == leader.node_id and has_all:
                found.is_proven = True
                return at
        found.is_proven = is_known
        if not is_known:
            found.notes.append(
                f"node {leader.node_id} led last, in epoch {leader.epoch}, and its log is not "
                "among the replicas: what only it had is lost, and the rest may not be of its log"
            )
        return best

    # ---- what is on it

    def _take_all(self) -> None:
        root = self._found.root
        if root is None:
            return
        rule = LEADER if self._prefers is None else PREFERRED
        for each in self._held[root]:
            self._take(each, rule)
        moved = True
        while moved:
            moved = self._follow() or self._take_proven()

    def _take(self, stretch: BatchStretch, rule: str) -> bool:
        if id(stretch) in self._taken or not self._is_in_hole(stretch):
            return False
        at = bisect_left(self._starts, stretch.start_offset)
        self._starts.insert(at, stretch.start_offset)
        self._in_order.insert(at, stretch)
        self._taken[id(stretch)] = Taken(stretch, rule)
        return True

    def _is_in_hole(self, stretch: BatchStretch) -> bool:
        """Whether nothing that was taken has one of its offsets."""
        at = bisect_right(self._starts, stretch.start_offset)
        if at and self._in_order[at - 1].end_offset > stretch.start_offset:
            return False
        return at == len(self._starts) or self._starts[at] >= stretch.end_offset

    def _anchor(self, replica: int) -> int:
        """Return up to which offset a replica is certainly on the lineage."""
        held = self._held[replica]
        return next(
            (each.end_offset for each in reversed(held) if id(each) in self._taken),
            0,
        )

    def _follow(self) -> bool:
        moved = False
        for replica, held in enumerate(self._held):
            anchor = self._anchor(replica)
            for each in held:
                if each.end_offset > anchor:
                    break
                moved |= self._take(each, FOLLOWER)
        return moved

    def _take_proven(self) -> bool:
        last_of: dict[int, int] = {}
        for each in self._in_order:
            last_of[each.epoch] = each.start_offset
        ranges = self._proven_ranges()
        top = self._in_order[-1].epoch if self._in_order else None
        is_open = top is not None and top >= self._found.epoch and not self._is_led_later(top)
        moved = False
        for each in self._all:
            if id(each) in self._taken:
                continue
            last = last_of.get(each.epoch, 0)
            if each.end_offset <= last or (is_open and each.epoch == top):
                moved |= self._take(each, EPOCH)
            elif any(
                start <= each.start_offset and each.end_offset <= end
                for start, end in ranges.get(each.epoch, ())
            ):
                moved |= self._take(each, CHECKPOINT)
        return moved

    def _is_led_later(self, epoch: int) -> bool:
        return self._leader is not None and self._leader.epoch > epoch

    def _proven_ranges(self) -> dict[int, list[tuple[int, int]]]:
        """Return by epoch where checkpoints of the lineage have it begin and end."""
        ranges: dict[int, list[tuple[int, int]]] = {}
        for replica, each in enumerate(self._replicas):
            entries = each.epochs
            knows_all = bool(entries) and entries[-1].epoch >= self._found.epoch
            is_root = replica == self._found.root
            anchor = self._anchor(replica)
            if not (is_root or anchor) or not self._agrees(entries, anchor, is_root or knows_all):
                continue
            for entry, following in pairwise(entries):
                if is_root or knows_all or following.start_offset <= anchor:
                    found = ranges.setdefault(entry.epoch, [])
                    found.append((entry.start_offset, following.start_offset))
        return ranges

    def _agrees(self, entries: Sequence[EpochEntry], anchor: int, is_whole: bool) -> bool:  # noqa: FBT001
        """Whether no batch of the lineage contradicts a checkpoint, as far as it is about it."""
        starts = [entry.start_offset for entry in entries]
        for each in self._in_order:
            if not is_whole and each.start_offset >= anchor:
                return True
            at = bisect_right(starts, each.start_offset) - 1
            if at >= 0 and entries[at].epoch != each.epoch:
                return False
        return True

    # ---- what is not

    def _sort_the_rest(self) -> None:
        found = self._found
        found.rewritten = [each for each in self._left() if self._is_rewritten(each)]
        alike = {id(each) for each in found.rewritten} | self._taken.keys()
        forks = [self._fork(held, alike) for held in self._held]
        cut = self._cut()
        for each in self._left():
            if id(each) in alike:
                continue
            is_after_fork = all(forks[at] <= each.start_offset for at in each.places)
            is_cut = cut is not None and each.start_offset >= cut and each.epoch < found.epoch
            is_branch = is_after_fork or is_cut or not self._is_in_hole(each)
            (found.branches if is_branch else found.unproven).append(each)

    def _left(self) -> list[BatchStretch]:
        return [each for each in self._all if id(each) not in self._taken]

    def _is_rewritten(self, stretch: BatchStretch) -> bool:
        """Whether all that was taken of its offsets is of its epoch, which is one sequence."""
        beside = list(self._beside(stretch))
        is_cleaned = stretch.is_cleaned or any(each.is_cleaned for each in beside)
        is_same = all(each.epoch == stretch.epoch for each in beside)
        return is_cleaned and is_same and bool(beside)

    def _beside(self, stretch: BatchStretch) -> Iterator[BatchStretch]:
        at = max(0, bisect_right(self._starts, stretch.start_offset) - 1)
        for each in self._in_order[at:]:
            if each.start_offset >= stretch.end_offset:
                return
            if each.overlaps(stretch):
                yield each

    def _fork(self, held: Sequence[BatchStretch], alike: Collection[int]) -> int:
        """Return the offset from which a replica has something else than the lineage."""
        for at in reversed(range(len(held))):
            if id(held[at]) in alike:
                held = held[at + 1 :]
                break
        others = (each.start_offset for each in held if not self._is_in_hole(each))
        return next(others, HIGHEST_OFFSET)

    def _cut(self) -> int | None:
        """Return where the last leader began, if its checkpoint says so."""
        root = self._found.root
        entries = () if root is None else self._replicas[root].epochs
        return entries[-1].start_offset if entries else None


def _rivals(stretches: Sequence[BatchStretch]) -> Iterator[tuple[BatchStretch, BatchStretch]]:
    """Yield stretches of one epoch that share an offset, and that no cleaner has rewritten."""
    open_ones: list[BatchStretch] = []
    for each in stretches:
        open_ones = [other for other in open_ones if other.end_offset > each.start_offset]
        for other in open_ones:
            are_whole = not each.is_cleaned and not other.is_cleaned
            if each.epoch == other.epoch and are_whole and each.overlaps(other):
                yield other, each
        open_ones.append(each)


def heaviest_rising(values: Iterable[tuple[int, int]]) -> list[int]:
    """Return which of the values, with their weights, are the heaviest sequence that never falls.

    As indexes, in order.
    """
    found = list(values)
    if all(one[0] <= other[0] for one, other in pairwise(found)):
        return list(range(len(found)))
    # By the value that a sequence ends with, the heaviest; only those count that none with a lower
    # value outweighs.
    keys: list[int] = []
    best: list[tuple[int, int]] = []  # weight, index
    before: list[int] = []
    for index, (value, weight) in enumerate(found):
        at = bisect_right(keys, value)
        total = weight + (best[at - 1][0] if at else 0)
        before.append(best[at - 1][1] if at else -1)
        keys.insert(at, value)
        best.insert(at, (total, index))
        while at + 1 < len(keys) and best[at + 1][0] <= total:
            del keys[at + 1], best[at + 1]
    index, chain = best[-1][1] if best else -1, []
    while index >= 0:
        chain.append(index)
        index = before[index]
    return chain[::-1]
