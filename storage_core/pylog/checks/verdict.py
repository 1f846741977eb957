"""The verdict on some log directories: what a start does to them, and what their consumers get.

It is made of findings alone, by their effect (`pylog.checks.findings.Effect`), and of the simulated
starts of the partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pylog.checks.findings import Effect, Finding
from pylog.files.file_names import find_partition_directory_name
from pylog.locations import name_of, parent_of
from pylog.model import TopicPartition
from pylog.text.instants import calendar_text
from pylog.text.words import named

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from pylog.checks.group_findings import GroupPosition
    from pylog.checks.partition_report import LogDirectoryReport, PartitionReport
    from pylog.files.file_names import PartitionDirectoryName


class AffectedOffsets(NamedTuple):
    """Offsets ``[from_offset, to_offset)`` of a partition, and what is with them.

    Attributes
    ----------
    topic, partition
        None for what is about no partition, such as a file of the log directory.
    from_offset, to_offset
        None where they are not known, or all of the log is meant.
    from_time, to_time
        Milliseconds: timestamps of the records around them, where they are known.
    path
        The file or directory that it was seen in.
    reason
        What it is, in a sentence.
    groups
        Consumer groups that it concerns: whose position it is, or who have not read past it.
    """

    topic: str | None
    partition: int | None
    from_offset: int | None
    to_offset: int | None
    from_time: int | None
    to_time: int | None
    path: str
    reason: str
    groups: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, finding: Finding, topic: str | None = None, partition: int | None = None
    ) -> AffectedOffsets:
        """Return what a finding is about."""
        return cls(
            *(topic, partition),
            *(finding.next_offset, finding.end_offset),
            *(finding.from_time, finding.to_time),
            *(finding.path, finding.message),
            groups=finding.groups,
        )

    @property
    def name(self) -> str:
        """The partition; its directory where that is not live; the path where there is none."""
        if self.topic is None:
            return self.path
        directory = _directory_of(self.path)
        if directory is None or not directory.state:
            return f"{self.topic}-{self.partition}"
        is_it = find_partition_directory_name(name_of(self.path)) is not None
        return name_of(self.path if is_it else parent_of(self.path))

    @property
    def text(self) -> str:
        """The partition with offsets and times, as far as they are known."""
        start, end = self.from_offset, self.to_offset
        notes = []
        if self.groups:
            notes = [f"{'group' if len(self.groups) == 1 else 'groups'} {named(self.groups)}"]
        if start is None:
            return f"{self.name} ({notes[0]})" if notes else self.name
        offsets = f"from offset {start} on" if end is None else f"offsets {start} to {end}"
        offsets = f"at offset {start}" if start == end else offsets
        times = [
            f"{word} {calendar_text(each, 1000)}"
            for word, each in (("after", self.from_time), ("before", self.to_time))
            if each is not None
        ]
        notes = [*([", ".join(times)] if times else []), *notes]
        return f"{self.name} {offsets}" + (f" ({'; '.join(notes)})" if notes else "")


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
            "the cluster's metadata are not here; a broker sets partitions that they do not have "
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
        list(_sentences(refusals, by_effect)),
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
    known[key] = each._replace(groups=tuple(_unique([*each.groups, *affected.groups])))


def _add_each(
    known: dict[tuple[object, ...], AffectedOffsets], affected: Iterable[AffectedOffsets]
) -> None:
    for each in affected:
        _add(known, each)


_OF_GROUPS = (Effect.LOSES, Effect.STRAY, Effect.UNSERVED, Effect.GONE, Effect.CONSUMERS)
"""What groups that have not read on do not get."""


def _is_read(effect: Effect, affected: AffectedOffsets) -> bool:
    """Whether groups read what is affected; not a copy of a partition that is set aside."""
    directory = _directory_of(affected.path) if effect is Effect.STRAY else None
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
    return affected._replace(groups=tuple(_unique([*affected.groups, *groups])))


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
    is_in_another = _directory_of(finding.path) is not None and not finding.path.startswith(
        f"{partition.path}/"
    )
    path = partition.path if is_in_another else finding.path
    return affected._replace(from_offset=None, to_offset=None, path=path)


def _affected_in_directory(finding: Finding) -> AffectedOffsets:
    directory = _directory_of(finding.path)
    if directory is None:
        return AffectedOffsets.of(finding)
    return AffectedOffsets.of(finding, *directory.topic_partition)


def _directory_of(path: str) -> PartitionDirectoryName | None:
    """Return the name of the partition's directory that a path is, or lies in."""
    return find_partition_directory_name(name_of(path)) or find_partition_directory_name(
        name_of(parent_of(path))
    )


def _sentences(
    refusals: Sequence[Finding], by_effect: dict[Effect, list[AffectedOffsets]]
) -> Iterator[str]:
    yield from _sentences_about_starts(refusals, by_effect[Effect.ENDS_LATER])
    losing = by_effect[Effect.LOSES]
    if losing:
        lost = _places(losing)
        yield f"A broker that starts on this loses records of {lost}: {losing[0].reason}"
    strays = by_effect[Effect.STRAY]
    if strays:
        yield f"A broker sets these aside as -stray, and serves none: {_names(strays)}"
    unserved = by_effect[Effect.UNSERVED]
    if unserved:
        yield f"A broker does not serve {_names(unserved)}: {unserved[0].reason}"
    gone = by_effect[Effect.GONE]
    if gone:
        yield f"Records are gone, or cannot be read: {_places(gone)}: {gone[0].reason}"
    consumers = by_effect[Effect.CONSUMERS]
    if consumers:
        yield (
            "Consumers get an error, or not what was written, from "
            f"{_places(consumers)}: "
            f"{name_of(consumers[0].path)}: {consumers[0].reason}"
        )
    unknown = by_effect[Effect.UNKNOWN]
    if unknown:
        yield f"What a broker would do to {_names(unknown)} is not known: {unknown[0].reason}"
    behind = by_effect.pop(Effect.BEHIND)
    resets, expires = by_effect.pop(Effect.RESETS), by_effect.pop(Effect.EXPIRES)
    if not any(by_effect.values()) and not refusals:
        but = ", but consumer groups lose their positions" if resets or expires else ""
        yield f"A broker starts on this, and loses no record that can be read{but}"
    yield from _sentences_about_groups(resets, expires)
    if behind:
        lacking = _places(behind)
        yield (
            f"Replicas of other nodes have more of {lacking}: {behind[0].path}: {behind[0].reason}"
        )


def _sentences_about_starts(
    refusals: Sequence[Finding], later: Sequence[AffectedOffsets]
) -> Iterator[str]:
    if refusals:
        first = refusals[0]
        more = f"; and {len(refusals) - 1} more" if len(refusals) > 1 else ""
        yield f"A broker does not start on this: {first.path}: {first.message}{more}"
    elif later:
        place = later[0]
        yield f"A broker starts on this once, and then not again: {place.path}: {place.reason}"


def _sentences_about_groups(
    resets: Sequence[AffectedOffsets], expires: Sequence[AffectedOffsets]
) -> Iterator[str]:
    if resets:
        yield (
            "Consumer groups do not go on where they were: "
            f"{named([each.text for each in resets])}: {resets[0].reason}"
        )
    if expires:
        yield (
            "A broker deletes committed offsets for their age, ten minutes after its start: "
            f"{named([each.text for each in expires])}"
        )


def _places(affected: Sequence[AffectedOffsets]) -> str:
    """Return partitions with offsets and times; ranges that meet are one."""
    merged: dict[str, list[AffectedOffsets]] = {}
    for each in sorted(affected, key=lambda each: each.from_offset or 0):
        ranges = merged.setdefault(each.name, [])
        last = ranges[-1] if ranges else None
        if last is None or None in (last.from_offset, each.from_offset):
            ranges.append(each)
        elif last.to_offset is None or (each.from_offset or 0) <= last.to_offset:
            ranges[-1] = _joined(last, each)
        else:
            ranges.append(each)
    names = dict.fromkeys(each.name for each in affected)
    return named(_unique(each.text for name in names for each in merged[name]))


def _joined(one: AffectedOffsets, other: AffectedOffsets) -> AffectedOffsets:
    """Return two ranges as one; ``other`` does not begin earlier."""
    one = one._replace(groups=tuple(_unique([*one.groups, *other.groups])))
    from_time = one.from_time
    if one.from_offset == other.from_offset and from_time is None:
        from_time = other.from_time
    if one.to_offset == other.to_offset:
        return one._replace(from_time=from_time, to_time=one.to_time or other.to_time)
    ends = one.to_offset is not None and (
        other.to_offset is None or other.to_offset > one.to_offset
    )
    last = other if ends else one
    return one._replace(to_offset=last.to_offset, from_time=from_time, to_time=last.to_time)


def _names(affected: Iterable[AffectedOffsets]) -> str:
    return named(_unique(each.text if each.groups else each.name for each in affected))


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
