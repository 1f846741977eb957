"""`merge`: one log of each partition, from replicas of which each has lost something.

Batches are copied as they are, with offsets and epochs. Which of them are one log, and what is
another leader's, `pylog.comparison.lineage` says. Where several replicas have the same headers, the
batches of one are read, once: when they are copied. If none of them is intact, all is done again,
with each batch of each replica read before. The sources are only read. The result is made beside
its place, and takes it at once:

==== ============================================ ==============================================
step what is done                                 what a crash after it leaves
==== ============================================ ==============================================
1    ``<to>.pylog-unfinished`` is made            that directory; the next call refuses until it
                                                  is removed
2    directories of the partitions are made       the same
     there
3    it is opened as its owner, which appends     the same
     all batches, and makes indexes, snapshots
     and checkpoints; then it is closed
4    it is renamed to ``<to>``                    the result
==== ============================================ ==============================================
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pylog.config import LogConfig
from pylog.errors import (
    CorruptRecordError,
    DivergedReplicasError,
    InvalidRecordError,
    UnknownTopicOrPartitionError,
)
from pylog.files.durable_io import DurableIO
from pylog.files.free_space import NeededSpace, ensure_space, log_space
from pylog.locations import is_remote, location, parent_of
from pylog.model import INTERNAL_TOPICS, Timestamp, TopicPartition, parse_offset_spec
from pylog.reading.group_records import CONSUMER_OFFSETS_TOPIC
from pylog.reading.transactional_ids import TRANSACTION_STATE_TOPIC
from pylog.record.batch_writer import MAX_INT32, MAX_INT64
from pylog.recovery.compacted_records import LeftOutRecords
from pylog.recovery.merge_endings import (
    append_lost_markers,
    append_markers,
    append_part,
    bring_back_groups,
    groups_behind,
    listed_groups,
    planned_markers,
)
from pylog.recovery.merge_plan import FoundLog, MergePlan, find_log, plan_log
from pylog.recovery.merge_sources import find_sources, metadata_beside
from pylog.recovery.merge_summary import MergeSummary
from pylog.recovery.merge_transactions import cut_transactions
from pylog.recovery.merge_until import CutLog, LogCut, decided_by, find_cuts
from pylog.recovery.rewritten_segments import rewrite_segments, segments_due
from pylog.writing.new_log_directory import UNFINISHED, ensure_empty, remove_all
from pylog.writing.owned_directory import own_log_directory

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Sequence

    import numpy as np
    import numpy.typing as npt

    from pylog.comparison.replica_log import ReplicaLog
    from pylog.log.log_manager import LogManager
    from pylog.log.unified_log import UnifiedLog
    from pylog.recovery.merge_sources import Sources
    from pylog.recovery.merge_summary import MovedGroup


_AS_PLANNED = LogConfig(segment_bytes=MAX_INT32, segment_ms=MAX_INT64)
"""Segments end where they are to end."""


def merge(  # noqa: PLR0913 - keyword-only options, one for each thing a user may say
    *paths: str | os.PathLike[str],
    to: str | os.PathLike[str],
    topics: Collection[str] | None = None,
    partitions: Collection[int] | None = None,
    metadata: str | os.PathLike[str] | None = None,
    prefer: str | os.PathLike[str] | None = None,
    until: int | Timestamp | dt.datetime | LogCut | None = None,
    appends_markers: bool = False,
    dry_run: bool = False,
) -> MergeSummary:
    """Write one log of each partition from damaged replicas, batch for batch.

    Parameters
    ----------
    *paths
        The replicas: partition directories, or log directories. They are not changed, and no broker
        should be working on them.
    to
        The log directory to be made: it does not exist, or is empty.
    topics, partitions
        Only these; None for all.
    metadata
        A log directory with a copy of the cluster's metadata, or its ``__cluster_metadata-0``. None
        for those that are in the log directories of the replicas.
    prefer
        One of the paths, whose history is the log's where the lineage does not decide.
    until
        An instant: the result is as at that time. Each partition ends before the first record whose
        timestamp is not before it, transactions are whole across partitions, and groups are nowhere
        behind an end; see `pylog.recovery.merge_until`. Or an offset, at which all partitions but
        those of internal topics end. Or where the one partition of the result ends, as `MergeCuts`
        has found it among others; groups stay where they are then. None for all that there is.
    appends_markers
        Whether a transaction gets its marker that a replica has on a branch. The last leader lacks
        it, and readers of committed records stop there.
    dry_run
        Whether nothing is written, but for a temporary copy of what groups have committed where
        ``until`` is given.

    Returns
    -------
    MergeSummary
        Of each partition which offsets came from which replica, what is missing, and what is left
        out.

    Raises
    ------
    DivergedReplicasError
        Nothing tells which of several histories is the log's. Nothing was written.
    LogDirectoryError
        ``to`` is not empty or has not enough space, a path cannot be read, or the replicas are of
        two topics or clusters. Nothing was written.
    UnknownTopicOrPartitionError
        No partition that is wanted is under the paths.
    LogLockedError
        A broker runs on a log directory.
    KafkaStorageError
        The result could not be written; ``to`` does not exist then.

    Examples
    --------
    >>> done = pylog.jobs.merge("kafka/intact", "kafka/damaged", to="merged", topics=["orders"])
    >>> [(each.partition, each.end_offset, each.gaps) for each in done.partitions]
    [(0, 60, []), (1, 49, [])]
    """
    if not paths:
        msg = "give at least one replica"
        raise ValueError(msg)
    place = ensure_empty(to, apart_from=paths, what="the result")
    leaders = metadata_beside(paths, metadata)
    sources = find_sources(paths, topics, partitions, leaders)
    preferred = None if prefer is None else _preferred(paths, prefer)
    cut_at = until if until is None or isinstance(until, LogCut) else _parsed(until)
    has_instant = not (cut_at is None or isinstance(cut_at, LogCut))
    numbers = {
        topic_partition: _number(replicas, sources, preferred)
        for topic_partition, replicas in sources.replicas.items()
    }

    def plan(summary: MergeSummary, *, trusts_headers: bool) -> list[MergePlan]:
        found = {
            place: find_log(
                *(place, replicas, leaders, numbers[place]), trusts_headers=trusts_headers
            )
            for place, replicas in sources.replicas.items()
        }
        return _planned(found, cut_at, paths, summary)

    if until is None and not dry_run:
        with suppress(CorruptRecordError, InvalidRecordError):
            summary = MergeSummary(place, [], notes=list(sources.notes))
            plans = plan(summary, trusts_headers=True)
            _make(place, plans, summary, appends_markers=appends_markers, is_trying=True)
            return summary
    summary = MergeSummary(None if dry_run else place, [], notes=sources.notes)
    plans = plan(summary, trusts_headers=False)
    if dry_run:
        for each in plans:
            each.summary.transactions.extend(planned_markers(each.cut))
        if has_instant:
            summary.groups.extend(_planned_groups(plans))
        return summary
    _make(
        *(place, plans, summary),
        appends_markers=appends_markers,
        brings_back_groups=has_instant,
    )
    return summary


def _planned(
    found: dict[TopicPartition, FoundLog],
    until: int | Timestamp | LogCut | None,
    paths: Sequence[str | os.PathLike[str]],
    summary: MergeSummary,
) -> list[MergePlan]:
    """Return what is written of each partition; the summary gets to know it."""
    undecided = [
        f"{place}: {text}" for place, each in found.items() for text in each.lineage.undecided
    ]
    if undecided:
        raise DivergedReplicasError(undecided)
    cuts: dict[TopicPartition, LogCut] = {}
    if isinstance(until, LogCut):
        cuts = dict.fromkeys(found, until)
    elif until is not None:
        cuts = _cut(found, until, paths, summary.notes)
    plans = [plan_log(each, cuts.get(topic_partition)) for topic_partition, each in found.items()]
    summary.partitions.extend(plan.summary for plan in plans)
    return plans


def _make(
    place: str,
    plans: Sequence[MergePlan],
    summary: MergeSummary,
    *,
    appends_markers: bool,
    brings_back_groups: bool = False,
    is_trying: bool = False,
) -> None:
    """Make the result; of what is only tried nothing is left where a batch is not intact."""
    ensure_space(
        (NeededSpace(place, log_space(each.log.size_bytes)) for each in plans), "the result"
    )
    unfinished = f"{place}{UNFINISHED}"
    io = DurableIO()
    io.make_directory(unfinished)
    try:
        ends = _write(io, unfinished, plans, appends_markers=appends_markers)
        summary.partitions[:] = [
            replace(each, end_offset=end_offset, size_bytes=size_bytes)
            for each, (end_offset, size_bytes) in zip(summary.partitions, ends, strict=True)
        ]
        if brings_back_groups:
            logs = {
                plan.log.topic_partition: end for plan, (end, _) in zip(plans, ends, strict=True)
            }
            summary.groups.extend(bring_back_groups(unfinished, logs))
        io.replace(unfinished, place)
        io.sync_directory(parent_of(place) or os.curdir)
    except BaseException as error:  # Ctrl-C among them
        if is_trying and isinstance(error, CorruptRecordError | InvalidRecordError):
            remove_all(io, unfinished)
            io.remove_directory(unfinished)
            raise
        error.add_note(
            f"the result is not finished: remove {unfinished}, and start no broker on it"
        )
        raise


def _preferred(paths: Sequence[str | os.PathLike[str]], prefer: str | os.PathLike[str]) -> int:
    wanted = _identity(prefer)
    for number, path in enumerate(paths):
        if _identity(path) == wanted:
            return number
    listed = ", ".join(os.fspath(each) for each in paths)
    msg = f"the preferred replica {os.fspath(prefer)!r} is none of the paths: {listed}"
    raise ValueError(msg)


def _identity(path: str | os.PathLike[str]) -> str:
    text = location(path)
    return text if is_remote(text) else os.path.realpath(text)


def _number(replicas: Sequence[ReplicaLog], sources: Sources, preferred: int | None) -> int | None:
    """Return which of a partition's replicas is under the preferred path."""
    found = (sources.paths[each.directory.path] for each in replicas)
    return next((at for at, path in enumerate(found) if path == preferred), None)


def _parsed(until: int | Timestamp | dt.datetime) -> int | Timestamp:
    spec = parse_offset_spec(until)
    if isinstance(spec, Timestamp) or (isinstance(spec, int) and spec >= 0):
        return spec
    msg = f"the end is {until!r}: give an offset of 0 or more, a pylog.Timestamp, or a datetime"
    raise ValueError(msg)


def _cut(
    found: dict[TopicPartition, FoundLog],
    until: int | Timestamp,
    paths: Sequence[str | os.PathLike[str]],
    notes: list[str],
) -> dict[TopicPartition, LogCut]:
    """Return where partitions end; leave out those of transactions' coordinators."""
    coordinators = [each for each in found if each.topic == TRANSACTION_STATE_TOPIC]
    if coordinators:
        notes.append(
            f"{TRANSACTION_STATE_TOPIC} is left out: a coordinator that loads it would end "
            "transactions as they went on after that; it makes the topic anew"
        )
    states = [found.pop(each) for each in coordinators]
    decided: dict[int, bool] = {}
    if isinstance(until, Timestamp):
        decided = decided_by(until, map(_cut_log, states or _coordinators(paths)))
    logs = {place: _cut_log(each) for place, each in found.items()}
    ends = {
        place: MAX_INT64 if isinstance(until, int) and place.topic in INTERNAL_TOPICS else until
        for place in logs
    }
    return find_cuts(logs, ends, decided)


def _cut_log(found: FoundLog) -> CutLog:
    return CutLog(found.replicas, found.lineage.taken)


def _coordinators(paths: Sequence[str | os.PathLike[str]]) -> list[FoundLog]:
    """Return what the paths have of the coordinators' topic beside the partitions."""
    try:
        sources = find_sources(paths, [TRANSACTION_STATE_TOPIC], None)
    except UnknownTopicOrPartitionError:
        return []
    return [find_log(place, each) for place, each in sources.replicas.items()]


def _write(
    io: DurableIO, place: str, plans: Sequence[MergePlan], *, appends_markers: bool
) -> list[tuple[int, int]]:
    """Write the log directory; return where the logs end, and how long they are in bytes."""
    for plan in plans:
        plan.log.prepare(io, place)
    configs = {plan.log.topic_partition.topic: _AS_PLANNED for plan in plans}
    with own_log_directory(place, topic_configs=configs, high_watermark="log-end") as manager:
        for plan in plans:
            log = manager.get_log(plan.log.topic_partition)
            plan.log.write(log)
            plan.summary.sources[:] = [
                each._replace(damaged_ranges=len(replica.damage))
                for each, replica in zip(plan.summary.sources, plan.replicas, strict=True)
            ]
            if plan.cut is not None:
                _end(log, plan, plan.cut)
            if plan.left_out is not None and plan.left_out.size:
                _leave_out(log, plan.left_out)
        ends = _ends(manager, plans)
    for plan in plans:
        plan.summary.transactions.extend(
            cut_transactions(place, plan.log.topic_partition, plan.replicas, plan.lineage)
        )
    lost = [plan for plan in plans if any(each.marker for each in plan.summary.transactions)]
    if appends_markers and lost:
        with own_log_directory(place, high_watermark="log-end") as manager:
            for plan in lost:
                found = plan.summary.transactions
                found[:] = append_lost_markers(manager.get_log(plan.log.topic_partition), found)
            ends = _ends(manager, plans)
    return ends


def _ends(manager: LogManager, plans: Sequence[MergePlan]) -> list[tuple[int, int]]:
    logs = [manager.get_log(plan.log.topic_partition) for plan in plans]
    return [(each.log_end_offset, each.size_bytes) for each in logs]


def _planned_groups(plans: Sequence[MergePlan]) -> list[MovedGroup]:
    """Return what would be brought back: their topic is merged in a directory for a while."""
    ends = {
        # Markers follow the records.
        plan.log.topic_partition: plan.summary.end_offset + len(plan.summary.transactions)
        for plan in plans
    }
    of_groups = [
        plan._replace(summary=replace(plan.summary, transactions=[]))
        for plan in plans
        if plan.log.topic_partition.topic == CONSUMER_OFFSETS_TOPIC
    ]
    if not of_groups:
        return []
    with TemporaryDirectory(prefix="pylog-") as directory:
        _write(DurableIO(), directory, of_groups, appends_markers=False)
        listing = listed_groups(directory)
    return [] if listing is None else groups_behind(listing, ends)


def _leave_out(log: UnifiedLog, offsets: npt.NDArray[np.int64]) -> None:
    rewriter = LeftOutRecords(offsets)
    rewrite_segments(log, segments_due(log, rewriter), rewriter)


def _end(log: UnifiedLog, plan: MergePlan, cut: LogCut) -> None:
    if plan.cut_batch is not None:
        append_part(log, plan.cut_batch, cut.end_offset)
    commits = {each.producer_id for each in cut.commits}
    plan.summary.transactions.extend(append_markers(log, commits))
