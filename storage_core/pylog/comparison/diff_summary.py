"""What `pylog.jobs.diff` returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylog.reading.damage import DamagedRange

DIFF_MODES = ("auto", "replicas", "copies", "compacted")
"""How logs may be compared."""


class DiffKind(StrEnum):
    """In what two logs differ.

    Attributes
    ----------
    ONLY_LEFT, ONLY_RIGHT
        Only one of them has records there.
    DAMAGED_LEFT, DAMAGED_RIGHT
        One of them is damaged there.
    RECORD
        Both have a record there, with another key, value, timestamp or header.
    BATCH
        The records are the same, and are stored in other batches: of another codec, size or
        producer.
    EPOCH
        The batches are the same, and are of other leader epochs.
    LATEST
        The latest value of a key is another one, or has other headers.
    """

    ONLY_LEFT = "only-left"
    ONLY_RIGHT = "only-right"
    DAMAGED_LEFT = "damaged-left"
    DAMAGED_RIGHT = "damaged-right"
    RECORD = "record"
    BATCH = "batch"
    EPOCH = "epoch"
    LATEST = "latest"


class Difference(NamedTuple):
    """In what two logs differ over offsets ``[start_offset, end_offset)``.

    The offsets are those of the left log, for ``ONLY_RIGHT`` those of the right one. Of copies,
    whose offsets are others, ``other_offset`` is where the right log is there.
    """

    kind: DiffKind
    start_offset: int
    end_offset: int
    records: int
    detail: str = ""
    other_offset: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionDiff:
    """Two logs of a partition, or of two that should have the same records.

    Attributes
    ----------
    left, right
        The partition directories; one is None where only the other exists.
    mode
        How they were compared: ``replicas``, ``copies`` or ``compacted``.
    records
        How many records, or keys, are the same.
    differences
        What differs, in rising offsets; a long list is cut.
    counts
        How many records differ, by kind.
    notes
        What else is worth knowing, in sentences; which one is right, where epochs tell.
    """

    topic: str
    partition: int
    left: str | None
    right: str | None
    mode: str
    records: int = 0
    differences: list[Difference] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def is_alike(self) -> bool:
        """Whether nothing differs."""
        return not self.counts

    @property
    def first_offset(self) -> int | None:
        """Where they differ first; None if they do not."""
        return self.differences[0].start_offset if self.differences else None


@dataclass(frozen=True, slots=True)
class DiffSummary:
    """What `pylog.jobs.diff` returns.

    Attributes
    ----------
    partitions
        Each pair of logs that was compared.
    """

    partitions: list[PartitionDiff]

    @property
    def is_alike(self) -> bool:
        """Whether no pair differs."""
        return all(each.is_alike for each in self.partitions)


MOST_DIFFERENCES = 1000
"""How many a partition lists; all are counted."""


class Differences:
    """Collects differences of one pair; neighbours of one kind are one."""

    def __init__(self) -> None:
        self.found: list[Difference] = []
        self.counts: dict[str, int] = {}

    def add(self, new: Difference) -> None:
        """Add a difference, which is after those that were added before, but for its kind."""
        self.counts[new.kind] = self.counts.get(new.kind, 0) + max(1, new.records)
        last = self.found[-1] if self.found else None
        if (
            last is not None
            and (last.kind, last.end_offset, last.detail)
            == (new.kind, new.start_offset, new.detail)
            and (last.other_offset is None) == (new.other_offset is None)
        ):
            records = last.records + new.records
            self.found[-1] = last._replace(end_offset=new.end_offset, records=records)
        elif len(self.found) < MOST_DIFFERENCES:
            self.found.append(new)

    def add_damage(self, kind: DiffKind, damage: Iterable[DamagedRange]) -> None:
        """Add what a reader has left out of one log."""
        for each in damage:
            start = each.next_offset
            end = start + 1 if each.end_offset is None else each.end_offset
            detail = f"{each.path} at byte {each.position}: {each.reason}"
            self.add(Difference(kind, start, end, 0, detail))

    def add_all(self, others: Differences, *, unless: DiffKind | None = None) -> None:
        """Add those of a part, but for one kind."""
        room = MOST_DIFFERENCES - len(self.found)
        self.found += [each for each in others.found if each.kind is not unless][:room]
        for kind, count in others.counts.items():
            if kind != unless:
                self.counts[kind] = self.counts.get(kind, 0) + count

    def in_order(self) -> list[Difference]:
        """Return them by offset."""
        return sorted(self.found, key=lambda each: (each.start_offset, each.end_offset))
