"""The verdict on some log directories: what a start does to them, and what their consumers get.

It is made of findings alone, by their effect (`pylog.findings.finding.Effect`), and of the
simulated starts of the partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.checks.affected_offsets import AffectedOffsets, directory_of, unique
from pylog.checks.verdict_sentences import sentences
from pylog.findings.finding import Effect, Finding
from pylog.locations import parent_of
from pylog.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from pylog.checks.group_findings import GroupPosition
    from pylog.checks.partition_report import LogDirectoryReport, PartitionReport


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a broker that starts on some log directories makes of them, and what consumers get.

    Attributes
    ----------
    would_start
        Whether the broker starts; None where that is not known.
    loses_records
        What its start removes for good, though it can be read now.
    lost_already
        What is gone already, as names of files, batches and checkpoints say.
    consumers
        Where consumers of a broker that has started get an error, or something else than what was
        written.
    behind
        What replicas of other nodes have, and one lacks.
    will_reset
        Positions of consumer groups that are not in their logs, or whose partitions are gone: the
        groups' consumers begin anew.
    will_expire
        Committed offsets that it deletes for their age, soon after its start.
    stray_partitions
        What it sets aside as ``-stray``, and does not serve.
    unserved
        What it has, and does not serve: without a leader, or waiting for other nodes.
    ends_later
        What ends its next start, though not this one.
    not_known
        Why something about it is not known.
    reasons
        The verdict in sentences, the worst first.
    """

    would_start: bool | None
    loses_records: list[AffectedOffsets]
    lost_already: list[AffectedOffsets]
    consumers: list[AffectedOffsets]
    behind: list[AffectedOffsets]
    will_reset: list[AffectedOffsets]
    will_expire: list[AffectedOffsets]
    stray_partitions: list[AffectedOffsets]
    unserved: list[AffectedOffsets]
    ends_later: list[AffectedOffsets]
    not_known: list[AffectedOffsets]
    reasons: list[str]


def verdict_on(
    directories: Sequence[LogDirectoryReport], partitions: Sequence[PartitionReport]
) -> Verdict:
    """Return the verdict on log directories, and on partitions in them or elsewhere."""
    refusals, found = _gathered(directories, partitions)
    positions = {where: known for each in directories for where, known in each.positions.items()}
    by_effect = {
        effect: [
            _with_groups(each, positions) if _is_read(effect, each) else each
            for each in places.values()
        ]
        for effect, places in found.items()
    }
    if directories and all(each.lacks_metadata for each in directories):
        reason = (
            "the cluster's metadata is not here; a broker sets partitions that it does not have "
            "aside as -stray"
        )
        place = AffectedOffsets(None, None, None, None, None, None, directories[0].path, reason)
        by_effect[Effect.UNKNOWN].append(place)
    would_start = False if refusals else None if by_effect[Effect.UNKNOWN] else True
    return Verdict(
        would_start,
        by_effect[Effect.LOSES],
        by_effect[Effect.GONE],
        by_effect[Effect.CONSUMERS],
        by_effect[Effect.BEHIND],
        by_effect[Effect.RESETS],
        by_effect[Effect.EXPIRES],
        by_effect[Effect.STRAY],
        by_effect[Effect.UNSERVED],
        by_effect[Effect.ENDS_LATER],
        by_effect[Effect.UNKNOWN],
        list(sentences(refusals, by_effect)),
    )


def _gathered(
    directories: Sequence[LogDirectoryReport], partitions: Sequence[PartitionReport]
) -> tuple[list[Finding], dict[Effect, dict[tuple[object, ...], AffectedOffsets]]]:
    """Return why it does not start, and what else findings are about, by their effect."""
    found: dict[Effect, dict[tuple[object, ...], AffectedOffsets]] = {each: {} for each in Effect}
    beside: dict[str, list[PartitionReport]] = {}
    for each in partitions:
        beside.setdefault(parent_of(each.path), []).append(each)
    refusals, when_read = [], []
    offline: set[str] = set()
    for affected, finding in _affected(directories, partitions):
        if finding.effect is Effect.REFUSES:
            refusals.append(finding)
        elif finding.effect in (Effect.OFFLINE, Effect.UNSERVED):
            path = _log_directory_of(finding.path, beside)
            others = () if path in offline else beside.get(path, ())
            for one in _unserved(affected, finding, beside, offline):
                _add_whole(found[Effect.UNSERVED], one)
            _add_each(found[Effect.UNKNOWN], _loaded_when_offline(finding, others))
        elif finding.effect is Effect.UNKNOWN_OFFLINE:
            _add_each(found[Effect.UNKNOWN], _of_all_beside(affected, finding, beside))
        elif finding.effect in (Effect.OFFLINE_WHEN_READ, Effect.ENDS_WHEN_READ):
            when_read.append(finding)
            _add(found[Effect.CONSUMERS], affected)
        elif finding.effect is not None:
            _add(found[finding.effect], affected)
    _add_each(found[Effect.CONSUMERS], _offline_when_read(when_read, directories, partitions))
    return refusals, found


def _add(known: dict[tuple[object, ...], AffectedOffsets], affected: AffectedOffsets) -> None:
    """Add what a finding is about, unless another one is about the same offsets: then its times."""
    key = affected[:4] if affected.from_offset is not None else affected
    each = known.setdefault(key, affected)
    if each.from_time is None and each.to_time is None:
        each = each._replace(from_time=affected.from_time, to_time=affected.to_time)
    known[key] = each._replace(groups=tuple(unique([*each.groups, *affected.groups])))


def _add_each(
    known: dict[tuple[object, ...], AffectedOffsets], affected: Iterable[AffectedOffsets]
) -> None:
    for each in affected:
        _add(known, each)


_OF_GROUPS = (Effect.LOSES, Effect.STRAY, Effect.UNSERVED, Effect.GONE, Effect.CONSUMERS)
"""What groups that have not read on do not get."""


def _is_read(effect: Effect, affected: AffectedOffsets) -> bool:
    """Whether groups read what is affected; not a copy of a partition that is set aside."""
    directory = directory_of(affected.path) if effect is Effect.STRAY else None
    return effect in _OF_GROUPS and (directory is None or not directory.state)


def _with_groups(
    affected: AffectedOffsets, positions: Mapping[TopicPartition, Sequence[GroupPosition]]
) -> AffectedOffsets:
    """Return it with the groups that have a position in the partition, and have not read past."""
    if affected.topic is None or affected.partition is None:
        return affected
    known = positions.get(TopicPartition(affected.topic, affected.partition), ())
    end = affected.to_offset
    groups = [each.group_id for each in known if end is None or each.offset < end]
    return affected._replace(groups=tuple(unique([*affected.groups, *groups])))


def _add_whole(known: dict[tuple[object, ...], AffectedOffsets], affected: AffectedOffsets) -> None:
    """Add a partition of which all is meant, unless it is there for another reason."""
    whole = affected._replace(from_offset=None, to_offset=None)
    known.setdefault((whole.name,), whole)


def _affected(
    directories: Sequence[LogDirectoryReport], partitions: Sequence[PartitionReport]
) -> Iterator[tuple[AffectedOffsets, Finding]]:
    for directory in directories:
        for finding in directory.findings:
            yield _affected_in_directory(finding), finding
    for partition in partitions:
        findings = partition.findings
        if partition.start is not None and partition.loses_records:
            losses = partition.start.losses or partition.start.found_losses()
            said = {(each.path, each.next_offset) for each in losses}
            others = [
                each
                for each in findings
                if each.effect is not Effect.LOSES or (each.path, each.next_offset) not in said
            ]
            findings = [*losses, *others]
        for finding in findings:
            yield AffectedOffsets.of(finding, *partition.topic_partition), finding


def _loaded_when_offline(
    finding: Finding, others: Iterable[PartitionReport]
) -> Iterator[AffectedOffsets]:
    """Yield the partitions that end a broker if it loads them after what takes them offline.

    Source: UnifiedLog.maybeIncrementFirstUnstableOffset, LocalLog.maybeHandleIOException, and what
    LogManager.loadLogs ignores (Kafka 4.4).
    """
    for each in others if finding.effect is Effect.OFFLINE else ():
        if finding.path.startswith(f"{each.path}/"):
            continue
        if each.start is not None and each.start.is_read_on_loading:
            why = "a transaction is looked up in it"
        elif any(other.effect is Effect.STRAY for other in each.findings):
            why = "it cannot be renamed"
        else:
            continue
        reason = (
            f"{finding.path} takes the log directory offline, and a broker that loads this "
            f"partition after that ends: {why}"
        )
        yield _without_offsets(finding, each)._replace(reason=reason)


def _offline_when_read(
    findings: Iterable[Finding],
    directories: Sequence[LogDirectoryReport],
    partitions: Sequence[PartitionReport],
) -> Iterator[AffectedOffsets]:
    """Yield the partitions that a broker does not serve any more once somebody reads somewhere.

    Once for each log directory: the first reason suffices.
    """
    nodes = {each.path: (each.cluster_id, each.node_id) for each in directories}
    seen = set()
    for finding in findings:
        path = _log_directory_of(finding.path, nodes)
        if path in seen:
            continue
        seen.add(path)
        is_of_node = finding.effect is Effect.ENDS_WHEN_READ
        reason = f"{finding.path}: {finding.broker_action}"
        for each in partitions:
            place = parent_of(each.path)
            if place == path or (is_of_node and place in nodes and nodes[place] == nodes.get(path)):
                yield _without_offsets(finding, each)._replace(reason=reason)


def _unserved(
    affected: AffectedOffsets,
    finding: Finding,
    beside: Mapping[str, Sequence[PartitionReport]],
    offline: set[str],
) -> list[AffectedOffsets]:
    """Return what a finding keeps from being served; ``offline``: log directories that are said."""
    if finding.effect is not Effect.OFFLINE and not _is_of_all(affected, finding):
        return [affected]
    path = _log_directory_of(finding.path, beside)
    if path in offline:
        return []  # the first reason suffices
    offline.add(path)
    return _of_all_beside(affected, finding, beside)


def _of_all_beside(
    affected: AffectedOffsets, finding: Finding, beside: Mapping[str, Sequence[PartitionReport]]
) -> list[AffectedOffsets]:
    """Return all partitions of the log directory in which a finding lies, or what it is about."""
    path = _log_directory_of(finding.path, beside)
    return [_without_offsets(finding, each) for each in beside.get(path, ())] or [affected]


def _is_of_all(affected: AffectedOffsets, finding: Finding) -> bool:
    return finding.effect is Effect.UNSERVED and affected.topic is None


def _log_directory_of(path: str, known: Container[str]) -> str:
    """Return the log directory that a path is, or in which, or in whose partitions, it lies."""
    above = parent_of(path)
    return next((each for each in (path, above, parent_of(above)) if each in known), path)


def _without_offsets(finding: Finding, partition: PartitionReport) -> AffectedOffsets:
    affected = AffectedOffsets.of(finding, *partition.topic_partition)
    is_in_another = directory_of(finding.path) is not None and not finding.path.startswith(
        f"{partition.path}/"
    )
    path = partition.path if is_in_another else finding.path
    return affected._replace(from_offset=None, to_offset=None, path=path)


def _affected_in_directory(finding: Finding) -> AffectedOffsets:
    directory = directory_of(finding.path)
    if directory is None:
        return AffectedOffsets.of(finding)
    return AffectedOffsets.of(finding, *directory.topic_partition)
