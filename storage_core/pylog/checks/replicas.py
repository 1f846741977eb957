"""Replicas of a partition, from the disks of several nodes, held against each other.

A follower takes its leader's batches byte for byte, epochs included: what stands at one offset is
the same in all replicas, but for what a cleaner has taken out of one of them. Where it is not, two
leaders have written, as after an unclean election, and a start of the cluster ends one of the two
histories: a follower cuts its log where its epochs leave those of the leader.

Each replica is held against the longest one. Batches are compared by epoch; those of v2 that begin
at one offset by where they end, since a cleaner keeps both offsets of what it rewrites; and by
checksum where they have the same offsets and the same number of records.

Source: KIP-101, KIP-279 (LeaderEpochFileCache), UnifiedLog.appendAsFollower (Kafka 4.3).
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.checks.files import stored_topic_id
from pylog.errors import LogStorageError
from pylog.files.clean_shutdown import has_clean_shutdown
from pylog.findings import kinds
from pylog.findings.finding import Effect, Finding, Severity
from pylog.locations import printable_location
from pylog.model import NO_PARTITION_LEADER_EPOCH
from pylog.reading.damage import DamageReport
from pylog.reading.headers import header_windows
from pylog.reading.pending_commit import NoPendingCommit
from pylog.record.header_sums import has_horizon

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from pylog.checks.partition_check import PartitionCheck
    from pylog.files.meta_properties import MetaProperties
    from pylog.model import TopicPartition
    from pylog.reading.log_view import LogView
    from pylog.writing.node import Node


class Replica(NamedTuple):
    """One node's replica of a partition."""

    check: PartitionCheck
    node: str  # as messages name it

    @property
    def name(self) -> str:
        """The replica in words: its node, and its directory."""
        return f"that of {self.node} in {printable_location(self.check.view.directory.path)}"


def replica_findings(
    checks: Iterable[PartitionCheck],
    metas: dict[str, MetaProperties | None],
    nodes: Mapping[str, Node],
) -> Iterator[tuple[PartitionCheck, Finding]]:
    """Yield in what the replicas of each partition differ; ``metas`` by log directory."""
    known: dict[tuple[str | None, TopicPartition], dict[object, Replica]] = defaultdict(dict)
    for check in checks:
        place = check.view.directory
        if place.state:
            continue
        meta = metas.get(place.log_directory)
        node, owner = "another disk", place.log_directory
        if meta is not None and meta.node_id is not None:
            node, owner = f"node {meta.node_id}", str(meta.node_id)
        cluster_id = None if meta is None else meta.cluster_id
        of_partition = known[cluster_id, check.view.topic_partition]
        of_partition.setdefault(owner, Replica(check, node))
    for replicas in known.values():
        if len(replicas) > 1:
            yield from _differences(list(replicas.values()), nodes)


def _differences(
    replicas: Sequence[Replica], nodes: Mapping[str, Node]
) -> Iterator[tuple[PartitionCheck, Finding]]:
    longest = max(replicas, key=lambda each: each.check.end_offset)
    for each in replicas:
        if each is longest or _are_of_two_topics(each, longest):
            continue
        try:
            fork = _fork(each, longest)
        except LogStorageError:
            continue  # a finding of the one that cannot be read
        if fork is not None:
            yield each.check, fork
            continue
        if each.check.end_offset < longest.check.end_offset:
            yield each.check, _behind(each, longest, nodes)


def _behind(each: Replica, longest: Replica, nodes: Mapping[str, Node]) -> Finding:
    """Return by how much a replica is behind.

    A follower that was killed may lag. One that has stopped in order, and may lead, lets the others
    cut off what they have more.
    """
    view, end, other = each.check.view, each.check.end_offset, longest.check.end_offset
    place = view.directory
    node = nodes.get(place.log_directory)
    found = kinds.REPLICA_BEHIND.found(
        place.path,
        f"the log ends at offset {end}, {longest.name} at {other}",
        next_offset=end,
        end_offset=other,
        own_effect=Effect.BEHIND,
        severity=Severity.INFO,
    )
    leads = node is not None and node.may_lead(view.topic_partition)
    if leads and has_clean_shutdown(place.log_directory):
        message = f"{found.message}, and the metadata has this one as leader, or in sync"
        found = found._replace(severity=Severity.WARNING, message=message, own_effect=Effect.LOSES)
    return found._replace(message=f"{found.message}. {_commands(view, longest, end)}")


def _commands(view: LogView, longest: Replica, start: int) -> str:
    """Return what gets the records that a replica lacks."""
    place = printable_location(longest.check.view.directory.log_directory)
    topic, partition = shlex.quote(view.topic), view.topic_partition.partition
    return (
        f"They are got by: pylog cat {shlex.quote(place)} --topic {topic} --partition {partition} "
        f"--start-offset {start} | pylog append DIR"
    )


def _are_of_two_topics(one: Replica, other: Replica) -> bool:
    ids = {stored_topic_id(one.check.view), stored_topic_id(other.check.view)} - {None}
    return len(ids) > 1  # which is a finding by itself


_FIRST, _LAST, _EPOCH, _CRC, _COUNT, _IS_REBUILT, _IS_WHOLE = range(7)


class _Batches:
    """The headers of a log's batches, a column a batch, as far as they have been asked for."""

    def __init__(self, view: LogView) -> None:
        pending = NoPendingCommit(view.directory.log_directory)
        view = view.refreshed(pending=pending).with_damage(DamageReport(is_logged=False))
        self._windows = header_windows(view)
        self.rows: npt.NDArray[np.int64] = np.empty((7, 0), dtype=np.int64)
        self.is_done = False

    def fill(self) -> None:
        """Have at least one batch, unless none is left."""
        while not self.is_done and not self.rows.shape[1]:
            found = next(self._windows, None)
            if found is None:
                self.is_done = True
                return
            headers = found.window.headers
            is_v2, is_rebuilt = headers.is_v2, has_horizon(headers)
            spans = headers.last_offsets - headers.offsets + 1
            self.rows = np.stack(
                [
                    np.where(is_v2, headers.offsets, headers.last_offsets),
                    headers.last_offsets,
                    headers.partition_leader_epochs,
                    headers.crcs,
                    np.where(is_v2, headers.record_counts, headers.sizes_bytes),
                    is_rebuilt,
                    is_v2 & ~is_rebuilt & (headers.record_counts == spans),
                ]
            )

    def drop_up_to(self, offset: int) -> None:
        """Leave out the batches that end at an offset or before."""
        self.rows = self.rows[:, np.searchsorted(self.rows[_LAST], offset, side="right") :]


def _fork(each: Replica, longest: Replica) -> Finding | None:
    """Return where a replica leaves the longest one; None if it does not."""
    found = find_fork(each.check.view, longest.check.view)
    if found is None:
        return None
    what, offset, here, there = found
    return kinds.REPLICAS_DIFFER.found(
        each.check.view.directory.path,
        f"at offset {offset} the {what} is {here}, and {there} in {longest.name}",
        next_offset=offset,
        end_offset=each.check.end_offset,
    )


def find_fork(view: LogView, other_view: LogView) -> tuple[str, int, int, int] | None:
    """Return in what two logs of a partition differ first: its name, the offset, what each has.

    None if one is the beginning of the other, but for what a cleaner has taken out.
    """
    one, other = _Batches(view), _Batches(other_view)
    while True:
        one.fill()
        other.fill()
        if one.is_done or other.is_done:
            return None
        found = _first_difference(one.rows, other.rows)
        if found is not None:
            return found
        done = min(int(one.rows[_LAST, -1]), int(other.rows[_LAST, -1]))
        one.drop_up_to(done)
        other.drop_up_to(done)


def _first_difference(
    one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]
) -> tuple[str, int, int, int] | None:
    """Return what differs first: its name, the offset, and what each has."""
    at = np.minimum(np.searchsorted(other[_LAST], one[_FIRST]), other.shape[1] - 1)
    beside = other[:, at]
    is_same_place = (beside[_FIRST] <= one[_FIRST]) & (one[_FIRST] <= beside[_LAST])
    has_epochs = (one[_EPOCH] != NO_PARTITION_LEADER_EPOCH) & (
        beside[_EPOCH] != NO_PARTITION_LEADER_EPOCH
    )
    by_epoch = is_same_place & has_epochs & (one[_EPOCH] != beside[_EPOCH])
    is_same_start = one[_FIRST] == beside[_FIRST]
    are_whole = (one[_IS_WHOLE] & beside[_IS_WHOLE]).astype(np.bool_)
    by_end = is_same_start & are_whole & (one[_LAST] != beside[_LAST])
    is_same_batch = (
        is_same_start
        & (one[_LAST] == beside[_LAST])
        & (one[_COUNT] == beside[_COUNT])
        & (one[_IS_REBUILT] == beside[_IS_REBUILT])
    )
    by_checksum = is_same_batch & (one[_CRC] != beside[_CRC])
    different = np.flatnonzero(by_epoch | by_end | by_checksum)
    if not different.size:
        return None
    first = int(different[0])
    what, row = "batch's checksum", _CRC
    if by_epoch[first]:
        what, row = "leader epoch", _EPOCH
    elif by_end[first]:
        what, row = "batch's last offset", _LAST
    return what, int(one[_FIRST, first]), int(one[row, first]), int(beside[row, first])
