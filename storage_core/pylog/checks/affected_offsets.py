"""Offsets that a finding is about, with times and groups: what the verdict is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pylog.files.file_names import find_partition_directory_name
from pylog.findings.kinds import BY_CODE
from pylog.locations import name_of, parent_of
from pylog.text.instants import calendar_text
from pylog.text.words import named, offsets_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylog.files.file_names import PartitionDirectoryName
    from pylog.findings.finding import Finding


class AffectedOffsets(NamedTuple):
    """Offsets ``[from_offset, to_offset)`` of a partition, and what is with them.

    Attributes
    ----------
    topic, partition
        None for what is about no partition, such as a file of the log directory.
    from_offset, to_offset
        None where they are not known, or all of the log is meant.
    from_time, to_time
        Milliseconds: timestamps of the records around them, where they are known, and the later
        record is not the older one.
    path
        The file or directory that it was seen in.
    reason
        What it is, in a sentence.
    groups
        Consumer groups that it concerns: whose position it is, or who have not read past it.
    code
        That of the finding that it comes from.
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
    code: str = ""

    @classmethod
    def of(
        cls, finding: Finding, topic: str | None = None, partition: int | None = None
    ) -> AffectedOffsets:
        """Return the offsets that a finding is about."""
        return cls(
            *(topic, partition),
            *(finding.next_offset, finding.end_offset),
            *(finding.from_time, finding.to_time),
            *(finding.path, finding.message),
            groups=finding.groups,
            code=finding.code,
        )

    @property
    def lost_as(self) -> str:
        """What happened to its records if they are lost; empty where the finding does not say."""
        return BY_CODE[self.code].lost_as if self.code else ""

    @property
    def name(self) -> str:
        """The partition; its directory where that is not live; the path where there is none."""
        if self.topic is None:
            return self.path
        directory = directory_of(self.path)
        if directory is None or not directory.state:
            return f"{self.topic}-{self.partition}"
        is_it = find_partition_directory_name(name_of(self.path)) is not None
        return name_of(self.path if is_it else parent_of(self.path))

    @property
    def text(self) -> str:
        """The partition with offsets and times, as far as they are known."""
        start, end = self.from_offset, self.to_offset
        offsets = ""
        if start is not None:
            offsets = f" {'at ' if start == end else ''}{offsets_text(start, end)}"
        return f"{self.name}{offsets}{self.notes}"

    @property
    def notes(self) -> str:
        """Times and groups in brackets, as far as they are known."""
        notes = []
        times = [
            f"{word} {calendar_text(each, 1000)}"
            for word, each in (("after", self.from_time), ("before", self.to_time))
            if each is not None and self.from_offset is not None
        ]
        if times:
            notes.append(", ".join(times))
        if self.groups:
            notes.append(f"{'group' if len(self.groups) == 1 else 'groups'} {named(self.groups)}")
        return f" ({'; '.join(notes)})" if notes else ""


def directory_of(path: str) -> PartitionDirectoryName | None:
    """Return the name of the partition's directory that a path is, or lies in."""
    return find_partition_directory_name(name_of(path)) or find_partition_directory_name(
        name_of(parent_of(path))
    )


def merged(affected: Iterable[AffectedOffsets]) -> list[AffectedOffsets]:
    """Return them by partition, in the order of their offsets; ranges that meet are one."""
    found: dict[str, list[AffectedOffsets]] = {}
    for each in affected:
        found.setdefault(each.name, [])
    for each in sorted(affected, key=lambda each: each.from_offset or 0):
        ranges = found[each.name]
        last = ranges[-1] if ranges else None
        if last is None or None in (last.from_offset, each.from_offset):
            ranges.append(each)
        elif last.to_offset is None or (each.from_offset or 0) <= last.to_offset:
            ranges[-1] = _joined(last, each)
        else:
            ranges.append(each)
    return [each for ranges in found.values() for each in ranges]


def _joined(one: AffectedOffsets, other: AffectedOffsets) -> AffectedOffsets:
    """Return two ranges as one; ``other`` does not begin earlier."""
    one = one._replace(groups=tuple(unique([*one.groups, *other.groups])))
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


def unique(texts: Iterable[str]) -> list[str]:
    """Return each text once."""
    return list(dict.fromkeys(texts))
