"""What merge does with one partition: whose history it takes, and what there is to say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pylog.comparison.batch_join import BatchJoin
from pylog.comparison.legacy_batches import find_first_offsets
from pylog.comparison.lineage import Evidence, find_lineage
from pylog.comparison.replica_log import read_ahead
from pylog.errors import LogStorageError
from pylog.model import NO_TIMESTAMP
from pylog.recovery.compacted_records import CompactedReplicas
from pylog.recovery.compacted_replicas import borders_of, is_cleaned
from pylog.recovery.merge_gaps import find_gaps, forget_impossible_starts
from pylog.recovery.merge_sources import topic_id_of
from pylog.recovery.merge_summary import (
    GapCause,
    MergeBranch,
    MergeCut,
    MergedPartition,
    MergeGap,
    MergeSource,
)
from pylog.recovery.merge_until import CutLog
from pylog.recovery.merged_log import MergedLog, log_start_of
from pylog.text.words import counted

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Iterable, Sequence

    import numpy as np
    import numpy.typing as npt

    from pylog.comparison.batch_join import BatchStretch
    from pylog.comparison.lineage import LogLineage
    from pylog.comparison.replica_log import ReplicaLog
    from pylog.model import TopicPartition
    from pylog.recovery.compacted_records import CompactedLog
    from pylog.recovery.merge_sources import ClusterMetadata
    from pylog.recovery.merge_until import LogCut


class FoundLog(NamedTuple):
    """The history of a partition's last leader, in its replicas."""

    topic_partition: TopicPartition
    replicas: Sequence[ReplicaLog]
    topic_id: uuid.UUID | None
    join: BatchJoin
    lineage: LogLineage
    compacted: CompactedLog | None = None  # where it was put together by record


class MergePlan(NamedTuple):
    """What is written of a partition; ``cut_batch`` is the batch that its end cuts."""

    replicas: Sequence[ReplicaLog]
    lineage: LogLineage
    log: MergedLog
    summary: MergedPartition
    cut: LogCut | None = None
    cut_batch: bytes | None = None
    left_out: npt.NDArray[np.int64] | None = None  # offsets of records of a compacted log


def find_log(
    topic_partition: TopicPartition,
    replicas: Sequence[ReplicaLog],
    metadata: ClusterMetadata | None = None,
    preferred: int | None = None,
    *,
    trusts_headers: bool = False,
) -> FoundLog:
    """Return whose history is the log's.

    With ``trusts_headers`` batches whose headers several replicas have alike have not been read.
    """
    topic_id = topic_id_of(replicas)
    compacts = metadata is not None and metadata.is_compacted(topic_partition.topic)
    leader = None if metadata is None else metadata.last_leader(topic_partition, topic_id)

    trusted = set(range(len(replicas))) if trusts_headers and len(replicas) > 1 else set[int]()

    def prove(at: int, unproved: npt.NDArray[np.int64]) -> None:
        try:
            replicas[at].prove(unproved)
        except LogStorageError:
            trusted.remove(at)
            raise

    def find(breaks: Iterable[int] = ()) -> tuple[BatchJoin, LogLineage]:
        for each in replicas:
            each.damage.take()
        rows = [
            each.rows(skips_damage=True, trusts_headers=at in trusted)
            for at, each in enumerate(replicas)
        ]
        join = BatchJoin(
            [read_ahead(each) for each in rows] if trusted else rows,
            [each.epochs for each in replicas],
            breaks=breaks,
            proves=prove,
        )
        stretches = join.run()
        find_first_offsets(stretches, replicas)
        evidence = [
            Evidence(
                *(each.path, each.epochs, each.node_id),
                is_compacted=compacts or each.cleaned_up_to is not None,
            )
            for each in replicas
        ]
        return join, find_lineage(stretches, evidence, leader=leader, prefers=preferred)

    join, lineage = _settled(find, trusted, replicas)
    compacted = None
    if not lineage.undecided and is_cleaned(replicas, lineage):
        borders = borders_of(replicas, lineage)
        if borders:
            join, lineage = find(borders)
        compacted = CompactedReplicas(replicas, lineage).put_together(fills=bool(borders))
        lineage.taken = compacted.taken
    return FoundLog(topic_partition, replicas, topic_id, join, lineage, compacted)


def _settled(
    find: Callable[[], tuple[BatchJoin, LogLineage]],
    trusted: set[int],
    replicas: Sequence[ReplicaLog],
) -> tuple[BatchJoin, LogLineage]:
    """Find the history with as many replicas by their headers as can be; ``find`` drops others."""
    while True:
        believed = len(trusted)
        try:
            found = find()
        except LogStorageError:
            if len(trusted) == believed:
                raise
            continue  # a batch that is not alike elsewhere is damaged: that replica is read whole
        if not trusted or not is_cleaned(replicas, found[1]):
            return found
        trusted.clear()


def plan_log(found: FoundLog, cut: LogCut | None) -> MergePlan:
    """Return what the result has of a log, up to its end."""
    replicas, lineage = found.replicas, found.lineage
    sources = [_source(at, each, found.join.stretches) for at, each in enumerate(replicas)]
    cut_batch = None
    start = lineage.taken[0].stretch.start_offset if lineage.taken else 0
    forget_impossible_starts(replicas, lineage)
    log_start_offset = log_start_of(replicas)
    gaps = _gaps(found, log_start_offset)
    if cut is not None:
        gaps = [each for each in gaps if cut.is_whole or each.start_offset < cut.end_offset]
        lineage.taken, cut_batch = CutLog(replicas, lineage.taken).taken_until(cut.end_offset)
        if cut.end_offset <= log_start_offset:  # all that the cut leaves was deleted
            cut_batch = None
        lineage.branches = [each for each in lineage.branches if each.start_offset < cut.end_offset]
        lineage.unproven = [each for each in lineage.unproven if each.start_offset < cut.end_offset]
    root = lineage.root
    log = MergedLog(found.topic_partition, replicas, lineage.taken, root, found.topic_id, start)
    end = lineage.taken[-1].stretch.end_offset if lineage.taken else start
    if cut_batch is not None and cut is not None:
        end = cut.end_offset
    summary = MergedPartition(
        *found.topic_partition,
        start,
        end,
        None if root is None else replicas[root].path,
        lineage.epoch,
        lineage.is_proven,
        log.size_bytes,
        sources,
        log.ranges,
        gaps,
        _branches(replicas, lineage),
        notes=[*_notes(replicas, lineage), *_epoch_notes(replicas, found.join)],
        cut=None if cut is None else MergeCut(*cut[:4]),
    )
    if cut is not None:
        summary.notes.extend(_cut_notes(cut))
    left_out = None
    if found.compacted is not None:
        left_out = found.compacted.left_out
        summary.notes.extend(_compacted_notes(found.compacted))
    if not gaps or gaps[0].start_offset >= start:
        summary.notes.extend(_start_notes(replicas, lineage, max(start, log_start_offset)))
    return MergePlan(replicas, lineage, log, summary, cut, cut_batch, left_out)


def _gaps(found: FoundLog, log_start_offset: int) -> list[MergeGap]:
    replicas, lineage, compacted = found.replicas, found.lineage, found.compacted
    if compacted is None:
        return find_gaps(replicas, lineage, log_start_offset)
    gaps = find_gaps(replicas, lineage, log_start_offset, compacted.known)
    held_back = compacted.held_back
    if held_back.size:
        first, end = int(held_back[0]), int(held_back[-1]) + 1
        causes = [
            GapCause(
                each.path,
                f"{counted(int(held_back.size), 'record')} of all replicas here "
                f"{'is' if held_back.size == 1 else 'are'} held back",
            )
            for each in replicas
        ]
        gaps.append(MergeGap(first, end, is_cleaned_or_lost=True, causes=causes))
    return sorted(gaps, key=lambda each: each.start_offset)


def _compacted_notes(compacted: CompactedLog) -> Iterable[str]:
    held_back, left_out = compacted.held_back.size, compacted.left_out.size
    if held_back:
        yield (
            f"{counted(held_back, 'record')} that would fill holes of the compacted log "
            f"{'is' if held_back == 1 else 'are'} held back: the keys may have been deleted since, "
            "or the transactions aborted, where replicas have lost records"
        )
    if left_out > held_back:
        yield (
            f"{counted(left_out - held_back, 'record')} of the compacted log "
            f"{'is' if left_out - held_back == 1 else 'are'} left out: a replica has cleaned "
            "what came later, so they are not the last values of their keys"
        )


def _start_notes(
    replicas: Sequence[ReplicaLog], lineage: LogLineage, start_offset: int
) -> Iterable[str]:
    is_compacted = any(each.stretch.is_cleaned for each in lineage.taken) or any(
        each.cleaned_up_to is not None for each in replicas
    )
    if is_compacted and start_offset > log_start_of(replicas):
        yield (
            f"it begins at offset {start_offset}, and a log that is only compacted begins at 0: "
            "earlier offsets were deleted, or are lost"
        )


def _cut_notes(cut: LogCut) -> Iterable[str]:
    if cut.end_offset > cut.wanted_offset:
        yield (
            f"it ends at offset {cut.end_offset}, and not at {cut.wanted_offset}: a transaction "
            "that is committed in another partition has records there"
        )
    if cut.left_out_earlier:
        yield (
            f"{counted(cut.left_out_earlier, 'record')} behind the end "
            f"{'has a timestamp' if cut.left_out_earlier == 1 else 'have timestamps'} before the "
            "instant, and came after one that has not"
        )


def _source(at: int, replica: ReplicaLog, stretches: Iterable[BatchStretch]) -> MergeSource:
    held = [each for each in stretches if at in each.places]
    epochs = [entry.epoch for entry in replica.epochs[-1:]] + [each.epoch for each in held]
    return MergeSource(
        replica.path,
        replica.node_id,
        held[0].start_offset if held else None,
        held[-1].end_offset if held else None,
        max(epochs, default=-1),
        replica.high_watermark,
        len(replica.damage),
    )


def _branches(replicas: Sequence[ReplicaLog], lineage: LogLineage) -> list[MergeBranch]:
    ended = "written by a leader whose history has ended"
    found = [_branch(replicas, each, list(each.places), ended) for each in lineage.branches]
    doubt = "nothing proves that it is of this log"
    found += [_branch(replicas, each, list(each.places), doubt) for each in lineage.unproven]
    found += [
        _branch(replicas, each.stretch, [each.replica], each.reason)
        for each in lineage.doubts
        if not each.stretch.places
    ]
    joined: list[MergeBranch] = []
    for each in sorted(found, key=lambda each: (each.sources, each.reason, each.start_offset)):
        last = joined[-1] if joined else None
        if last is not None and _is_rest_of(each, last):
            stamps = [one.first_timestamp for one in (last, each)]
            joined[-1] = last._replace(
                end_offset=each.end_offset,
                records=last.records + each.records,
                first_timestamp=min(stamps) if NO_TIMESTAMP not in stamps else max(stamps),
                max_timestamp=max(last.max_timestamp, each.max_timestamp),
            )
        else:
            joined.append(each)
    return sorted(joined)


def _is_rest_of(branch: MergeBranch, before: MergeBranch) -> bool:
    """Whether a branch goes on where another one ends."""
    same = (before.end_offset, before.epoch, before.sources, before.reason)
    return (branch.start_offset, branch.epoch, branch.sources, branch.reason) == same


def _branch(
    replicas: Sequence[ReplicaLog], stretch: BatchStretch, held_by: Sequence[int], reason: str
) -> MergeBranch:
    return MergeBranch(
        stretch.start_offset,
        stretch.end_offset,
        stretch.epoch,
        stretch.records,
        stretch.first_timestamp,
        stretch.max_timestamp,
        [replicas[at].path for at in held_by],
        reason,
    )


def _notes(replicas: Sequence[ReplicaLog], lineage: LogLineage) -> Iterable[str]:
    yield from lineage.notes
    if not lineage.is_proven and lineage.root is not None:
        yield (
            "not proven that this is the last leader: a copy of the cluster's metadata would tell "
            "(--metadata)"
        )
    if any(each.stretch.is_legacy for each in lineage.taken):
        yield "there are batches of format v0 or v1, which have no leader epoch to tell by"
    for at, replica in enumerate(replicas):
        yield from replica.problems
        yield from (
            f"{each.path} cannot be read: {each.reason}"
            for each in replica.damage
            if each.is_unreadable
        )
        lost = [each for each in lineage.branches if at in each.places]
        mark = replica.high_watermark
        if lost and mark is not None and mark > lost[0].start_offset:
            yield (
                f"{replica.path} has a high watermark of {mark}, and leaves the log at offset "
                f"{lost[0].start_offset}: records that had been committed are lost, as in an "
                "unclean election"
            )
    if lineage.rewritten:
        yield (
            "the replicas are compacted, each in its own way: the leader's is taken, others fill "
            "its holes, and what else is missing is cleaned or lost"
        )


def _epoch_notes(replicas: Sequence[ReplicaLog], join: BatchJoin) -> Iterable[str]:
    for each in join.other_epochs:
        yield (
            f"{replicas[each.replica].path} has the batch at offset {each.base_offset} under epoch "
            f"{each.stored_epoch}, which is wrong: it is {each.epoch}"
        )
