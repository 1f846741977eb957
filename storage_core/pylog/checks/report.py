"""Findings, and what `pylog.doctor` and `pylog.repair_copy` return; without Arrow and NumPy."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from pylog.checks.codes import FINDING_CODES
from pylog.lazy_modules import LazyModule
from pylog.locations import printable_location

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from pylog.checks.broker_start import BrokerStart
    from pylog.columnar import rows as columnar_rows
    from pylog.model import TopicPartition
else:
    columnar_rows = LazyModule("pylog.columnar.rows")

FINDINGS = """\
What is wrong with a log, and what is worth knowing; no row if nothing is.

severity      string  ``error``: records are lost or cannot be read, or a broker does not start;
                      ``warning``: a side file that a broker would rebuild, delete or ignore;
                      ``info``: worth knowing, and nothing is wrong
code          string  what it is, in one word; docs/operators.md lists all
path          string  the file
position      int64   bytes from here on, where that has a meaning
end_position  int64   up to here, exclusive
next_offset   int64   offsets from here on, where that has a meaning
end_offset    int64   up to here, exclusive; null where nothing sound follows
message       string  what is wrong, with stored and expected values
broker_action string  what a broker does about it when it starts on the directory
advice        string  what to do

All is read, in one walk: checksums are verified and records decoded, headers held against indexes.
Memory is that of one window, of the indexes of two segments, and of what snapshots say. A file that
cannot be read at all (a FIFO, a link that leads nowhere) is a damaged one.

Rows about log directories come first, and have neither topic nor partition: what lies beside the
partitions, and what these contradict each other in. They are of all partitions, whichever are
chosen, and there are none where partition directories are given.
"""
"""The text of table ``findings``, see `pylog.columnar.rows`; the order is that of `Finding.row`."""


class Severity(StrEnum):
    """How bad a finding is, the worst first.

    Attributes
    ----------
    ERROR
        Records are lost or cannot be read, or a broker does not start on the directory.
    WARNING
        Side files and batches do not agree, or bytes stand where none should. All records that the
        log still holds can be read.
    INFO
        Worth knowing, and nothing is wrong: what a crash, compaction, an older broker or remote
        storage leaves.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Severity).index(self)

    def is_at_least(self, other: Severity) -> bool:
        """Whether this is as bad as ``other``, or worse."""
        return self.rank <= other.rank


class Finding(NamedTuple):
    """One row of table ``findings``, without topic and partition.

    Attributes
    ----------
    severity, code
        How bad, and what it is in one word: a key of `FINDING_CODES`.
    path
        The file, or the directory.
    message
        A line that suffices by itself next to the path.
    position, end_position
        Bytes ``[position, end_position)`` of the file; None where that has no meaning.
    next_offset, end_offset
        Offsets ``[next_offset, end_offset)`` that this is about; None likewise.
    """

    severity: Severity
    code: str
    path: str
    message: str
    position: int | None = None
    end_position: int | None = None
    next_offset: int | None = None
    end_offset: int | None = None

    @property
    def broker_action(self) -> str:
        """What a broker does about it when it starts on the directory."""
        return FINDING_CODES[self.code].broker_action

    @property
    def advice(self) -> str:
        """What an operator can do about it."""
        return FINDING_CODES[self.code].advice

    def row(self) -> tuple[object, ...]:
        """Return the values in the order of the table's columns."""
        return (
            str(self.severity),
            self.code,
            printable_location(self.path),
            self.position,
            self.end_position,
            self.next_offset,
            self.end_offset,
            self.message,
            self.broker_action,
            self.advice,
        )


def warning(code: str, path: str, message: str) -> Finding:
    """Return a warning about a whole file."""
    return Finding(Severity.WARNING, code, path, message)


def missing_index(kind: str, path: str) -> Finding:
    """Return the warning that an index file of a segment is missing; ``kind`` as in its code."""
    return warning(f"missing_{kind}", path, "the file is missing")


def info(code: str, path: str, message: str) -> Finding:
    """Return what is worth knowing of a whole file."""
    return Finding(Severity.INFO, code, path, message)


class OffsetTotals(NamedTuple):
    """How many offsets of a log are what."""

    # In sound batches
    records: int = 0
    control_records: int = 0
    compacted: int = 0  # removed by compaction
    missing: int = 0  # missing without a sign of compaction
    # missing because their bytes are damaged; those after the last sound batch are not known
    damaged: int = 0


@dataclass(frozen=True, slots=True)
class PartitionReport:
    """One partition.

    Attributes
    ----------
    topic_partition, path
        Which, and where it lies; without the secrets of a URI.
    findings
        About the log, the directory, indexes and side files, in this order.
    size_bytes, scanned_bytes
        Of the ``.log`` files; of them, what was read and is sound.
    start_offset, end_offset
        Of the files on the disk; the end is exclusive.
    offsets
        What has become of the offsets between them.
    start
        What a broker would do to the log; None where it cannot be read at all.
    """

    topic_partition: TopicPartition
    path: str
    findings: list[Finding]
    size_bytes: int
    scanned_bytes: int
    start_offset: int
    end_offset: int
    offsets: OffsetTotals
    start: BrokerStart | None


@dataclass(frozen=True, slots=True)
class LogDirectoryReport:
    """One log directory, the partitions in it left out.

    Attributes
    ----------
    path
        Without the secrets of a URI.
    is_clean
        Whether it was closed in order: the marker of a clean stop is in it.
    findings
        About the files right in it, and its partitions together.
    """

    path: str
    is_clean: bool
    findings: list[Finding]


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """What is wrong with some log directories.

    Attributes
    ----------
    partitions
        By log directory, topic and partition.
    directories
        In the order in which they were given; none where partition directories were.
    """

    partitions: list[PartitionReport]
    directories: list[LogDirectoryReport]

    @property
    def findings(self) -> Iterator[Finding]:
        """All findings: those about log directories, then those about partitions."""
        for directory in self.directories:
            yield from directory.findings
        for partition in self.partitions:
            yield from partition.findings

    @property
    def counts(self) -> dict[Severity, int]:
        """How many findings there are of each severity."""
        counted = Counter(each.severity for each in self.findings)
        return {severity: counted[severity] for severity in Severity}

    @property
    def worst(self) -> Severity | None:
        """The severity of the worst finding; None without any."""
        return next((severity for severity, count in self.counts.items() if count), None)

    @property
    def size_bytes(self) -> int:
        """The size of all ``.log`` files."""
        return sum(each.size_bytes for each in self.partitions)

    @property
    def scanned_bytes(self) -> int:
        """Of them, what was read and is sound."""
        return sum(each.scanned_bytes for each in self.partitions)

    def to_table(self) -> pa.Table:
        """Return the findings as table ``findings``; topic and partition are null in some rows.

        Namely in those about log directories.
        """
        rows: list[tuple[object, ...]] = [
            (None, None, *finding.row())
            for directory in self.directories
            for finding in directory.findings
        ]
        rows += [
            (*partition.topic_partition, *finding.row())
            for partition in self.partitions
            for finding in partition.findings
        ]
        schema = columnar_rows.TableText.of_partitions(FINDINGS).schema
        return columnar_rows.table_of_rows(rows, schema)


@dataclass(frozen=True, slots=True)
class RepairedPartition:
    """The copy of one partition.

    Attributes
    ----------
    topic_partition, path
        Which, and where the copy lies.
    copied_bytes, left_out_bytes
        Of the ``.log`` files.
    end_offset
        The end of the copy, exclusive.
    """

    topic_partition: TopicPartition
    path: str
    copied_bytes: int
    left_out_bytes: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class RepairSummary:
    """What was found, and what was copied.

    Attributes
    ----------
    directory
        The log directory that was made.
    source
        What is wrong with the logs that were copied.
    partitions
        The copies, in the order of the source's.
    copy
        What is wrong with the copy: gaps are left where damage was.
    left_out
        Partitions that are not copied: the log of a controller.
    """

    directory: str
    source: DoctorReport
    partitions: list[RepairedPartition]
    copy: DoctorReport
    left_out: list[TopicPartition]

    @property
    def copied_bytes(self) -> int:
        """Of all ``.log`` files."""
        return sum(each.copied_bytes for each in self.partitions)

    @property
    def left_out_bytes(self) -> int:
        """Of all ``.log`` files."""
        return sum(each.left_out_bytes for each in self.partitions)
