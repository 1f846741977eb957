"""Findings, and what `pylog.doctor` and `pylog.repair_copy` return; without Arrow and NumPy."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pylog.checks.verdict import verdict_on
from pylog.findings import kinds
from pylog.findings.finding import FINDINGS, Finding, Severity
from pylog.lazy_modules import LazyModule
from pylog.locations import parent_of, printable_location
from pylog.text.charts import NONE, Share, card, number, page, share_chart, size, table, text, tiles
from pylog.text.words import counted, named, offsets_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from pylog.checks.partition_report import LogDirectoryReport, PartitionReport
    from pylog.checks.verdict import Verdict
    from pylog.columnar import rows as columnar_rows
    from pylog.model import TopicPartition
    from pylog.reading import html_table as reading_html_table
else:
    reading_html_table = LazyModule("pylog.reading.html_table")
    columnar_rows = LazyModule("pylog.columnar.rows")


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """The findings about some log directories, and what was read for them.

    Attributes
    ----------
    partitions
        By log directory, topic and partition.
    directories
        In the order in which they were given; none where partition directories were.
    """

    partitions: list[PartitionReport]
    directories: list[LogDirectoryReport]

    def __repr__(self) -> str:
        counts = ", ".join(
            f"{count} info" if severity is Severity.INFO else counted(count, severity)
            for severity, count in self.counts.items()
            if count
        )
        partitions = counted(len(self.partitions), "partition")
        said = ". ".join(self.verdict.reasons[:2])
        return f"DoctorReport({partitions}, {counts or 'no findings'}: {said})"

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
        found = Counter(each.severity for each in self.findings)
        return {severity: found[severity] for severity in Severity}

    @property
    def worst(self) -> Severity | None:
        """The severity of the worst finding; None without any."""
        return next((severity for severity, count in self.counts.items() if count), None)

    @property
    def refusals(self) -> list[Finding]:
        """Why a broker does not start on the directories, or takes one of them offline."""
        return [each for each in self.findings if each.refuses_start]

    @property
    def gone(self) -> list[Finding]:
        """Partitions of which no record is left: their directories are missing, or empty."""
        return [
            each for each in self.findings if each.kind in _GONE and each.severity is Severity.ERROR
        ]

    @property
    def verdict(self) -> Verdict:
        """What a broker that is started on the directories makes of them, and what consumers get.

        Of all clusters together; see `of_clusters`.
        """
        return verdict_on(self.directories, self.partitions)

    @property
    def of_clusters(self) -> dict[str | None, DoctorReport]:
        """The report of each cluster by its id; None for what names no cluster, if there is any.

        Blanks at the ends of an id, with which no broker starts, make it no other one.
        """
        ids = {each.path: each.cluster_id and each.cluster_id.strip() for each in self.directories}
        reports: dict[str | None, DoctorReport] = {}
        for directory in self.directories:
            of_cluster = reports.setdefault(ids[directory.path], DoctorReport([], []))
            of_cluster.directories.append(directory)
        for partition in self.partitions:
            cluster_id = ids.get(parent_of(partition.path))
            reports.setdefault(cluster_id, DoctorReport([], [])).partitions.append(partition)
        return reports

    @property
    def size_bytes(self) -> int:
        """The size of all ``.log`` files."""
        return sum(each.size_bytes for each in self.partitions)

    @property
    def scanned_bytes(self) -> int:
        """Bytes of ``.log`` files that were read and are intact."""
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

    def html(self) -> str:
        """Return the report as one page that needs nothing beside it."""
        return _page(self)

    def _repr_html_(self) -> str:
        found = sorted(self.findings, key=lambda each: each.severity.rank)
        return reading_html_table.html_table(
            ". ".join(self.verdict.reasons),
            ("severity", "code", "file", "what", "what to do"),
            [
                (each.severity, each.code, printable_location(each.path), each.message, each.advice)
                for each in found
            ],
            len(found),
        )


_GONE = (kinds.ABSENT_PARTITION, kinds.EMPTY_PARTITION)


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
    missing
        Offsets ``[start, end)`` that were in the log, as names of files, batches, checkpoints and
        snapshots say, and are not in the copy.
    topic_id
        As Kafka prints it; None where it is known nowhere.
    kept
        Offsets ``[start, end)`` that two segments held, and the file whose records were copied.
    doubt
        What one side file alone says of the log's end, against the others; None if none does.
    source
        The directory that it was copied from; without the secrets of a URI.
    """

    topic_partition: TopicPartition
    path: str
    copied_bytes: int
    left_out_bytes: int
    end_offset: int
    missing: list[tuple[int, int]]
    topic_id: str | None
    kept: list[tuple[int, int, str]]
    doubt: str | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class RepairSummary:
    """The findings about the source, and the partitions that were copied.

    Attributes
    ----------
    directory
        The log directory that was made; of several, the directory that they are in.
    source
        What is wrong with the logs that were copied.
    partitions
        The copies, in the order of the source's; the log of the cluster's metadata is the last.
    copy
        What is wrong with the copy: gaps are left where damage was.
    left_out
        Partitions that are not copied: those that cannot be read, and the log of the cluster's
        metadata where it is damaged or this node is not the only controller.
    is_kraft
        Whether the source is a KRaft node's.
    absent
        Partitions of which nothing is left in the source, and the offsets ``[start, end)`` that
        they had, as checkpoints say.
    unreadable
        Why those of ``left_out`` are not copied whose files cannot be opened.
    """

    directory: str
    source: DoctorReport
    partitions: list[RepairedPartition]
    copy: DoctorReport
    left_out: list[TopicPartition]
    is_kraft: bool
    absent: dict[TopicPartition, tuple[int, int]]
    unreadable: dict[TopicPartition, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        lost = sum(end - start for each in self.partitions for start, end in each.missing)
        return (
            f"RepairSummary({self.directory!r}: {counted(len(self.partitions), 'partition')}, "
            f"{counted(self.copied_bytes, 'byte')}, {counted(lost, 'record')} lost, "
            f"{len(self.left_out)} not copied)"
        )

    @property
    def is_complete(self) -> bool:
        """Whether nothing is known that was in the source, and the copy lacks."""
        are_whole = not any(each.missing for each in self.partitions)
        return are_whole and not self.left_out and not self.absent

    def _repr_html_(self) -> str:
        rows = [
            (
                *(str(each.topic_partition), each.copied_bytes, each.left_out_bytes),
                "; ".join(
                    f"{counted(end - start, 'record')}, {offsets_text(start, end)}"
                    for start, end in each.missing
                ),
            )
            for each in self.partitions
        ]
        return reading_html_table.html_table(
            f"A repaired copy in {self.directory}",
            ("partition", "bytes copied", "left out", "lost"),
            rows,
            len(rows),
            notes=[
                *(f"not copied: {each}" for each in self.left_out),
                *(f"nothing is left of {each}" for each in self.absent),
            ],
        )

    @property
    def copied_bytes(self) -> int:
        """The bytes of all ``.log`` files together."""
        return sum(each.copied_bytes for each in self.partitions)

    @property
    def left_out_bytes(self) -> int:
        """The bytes of all ``.log`` files that the copy leaves out."""
        return sum(each.left_out_bytes for each in self.partitions)


_MOST_PLACES = 20  # of a kind
_MOST_PARTITIONS = 200
_COLOURS = {Severity.ERROR: "other", Severity.WARNING: "gzip", Severity.INFO: "lz4"}
_OFFSETS = (
    ("records", "records", "good"),
    ("control_records", "control records", "b"),
    ("compacted", "removed by compaction", "none"),
    ("missing", "missing", "gzip"),
    ("damaged", "damaged", "other"),
    ("torn_off", "torn off", "other"),
)
"""Kinds of offsets, their names and colours."""


def _page(report: DoctorReport) -> str:
    """Return the whole page: the verdict first, then findings by kind, then partitions."""
    paths = [each.path for each in report.directories] or [each.path for each in report.partitions]
    shown = named([text(printable_location(each)) for each in paths])
    body = (
        f'<header><h1>What is wrong with these Kafka logs</h1><p class="lead"><code>{shown}</code>'
        f"</p></header>{_page_part(report)}"
    )
    return page(shown, body, "pylog doctor")


def _page_part(report: DoctorReport) -> str:
    first, *others = (text(each, 2000) for each in report.verdict.reasons)
    colour = (
        _COLOURS[report.worst] if report.worst in (Severity.ERROR, Severity.WARNING) else "good"
    )
    verdict = f'<li style="color:var(--{colour})"><b>{first}</b></li>'
    verdict += "".join(f"<li>{each}</li>" for each in others)
    counts = report.counts
    plurals = {Severity.ERROR: "errors", Severity.WARNING: "warnings", Severity.INFO: "info"}
    figures = [
        (size(report.scanned_bytes), f"of {size(report.size_bytes)} are intact"),
        (
            number(len(report.partitions)),
            "partitions" if len(report.partitions) != 1 else "partition",
        ),
        *((number(counts[each]), plurals[each]) for each in Severity),
    ]
    cards = "".join([*_kind_cards(report), *_partition_cards(report)])
    return (
        f'<div class="problems"><b>Verdict</b><ul>{verdict}</ul></div>{tiles(figures)}'
        f'<div class="grid">{cards}</div>'
    )


def _kind_cards(report: DoctorReport) -> Iterator[str]:
    found: dict[tuple[Severity, str], list[Finding]] = {}
    for each in report.findings:
        found.setdefault((each.severity, each.code), []).append(each)
    for (severity, code), findings in sorted(found.items(), key=lambda item: item[0][0].rank):
        first = findings[0]
        actions = dict.fromkeys(text(each.broker_action) for each in findings)
        note = f"{'; or '.join(actions)}. <b>To do:</b> {text(first.advice)}."
        rows = [
            (
                f"<code>{text(printable_location(each.path))}</code>",
                _place(each),
                text(each.message),
            )
            for each in findings[:_MOST_PLACES]
        ]
        more = len(findings) - len(rows)
        if more > 0:
            rows.append((f"and {number(more)} more", NONE, ""))
        style = f"color:var(--{_COLOURS[severity]})"
        title = f'<span style="{style}">●</span> {severity}: {text(code)}'
        content = table(("file", "where", "what"), rows, left=3)
        yield card(title, content, note=f"A broker: {note}", wide=True)


def _place(finding: Finding) -> str:
    parts = []
    if finding.position is not None:
        end = NONE if finding.end_position is None else f"{finding.end_position - 1:,}"
        parts.append(f"bytes {finding.position:,} to {end}")
    if finding.next_offset is not None:
        parts.append(offsets_text(finding.next_offset, finding.end_offset))
    return ", ".join(parts)


def _partition_cards(report: DoctorReport) -> Iterator[str]:
    wrong = [each for each in report.partitions if _has_warning(each)]
    for each in wrong[:_MOST_PARTITIONS]:
        offsets, torn_off = each.offsets, _torn_off(report, each)
        parts = [
            Share(name, count, f"{name}: {number(count)}", colour, colour)
            for kind, name, colour in _OFFSETS
            if (count := getattr(offsets, kind, torn_off))
        ]
        start = "" if each.start_text is None else f" A start: {text(each.start_text)}."
        note = f"Start offset {each.start_offset:,}, end offset {each.end_offset:,}.{start}"
        chart = share_chart(parts, number) if parts else ""
        yield card(text(each.topic_partition), chart, note=note)
    more = len(wrong) - _MOST_PARTITIONS
    if more > 0:
        yield card("More partitions", "", note=f"{counted(more, 'partition')} more with findings.")


def _torn_off(report: DoctorReport, partition: PartitionReport) -> int:
    """Return how many offsets were in the log, and are after its end now."""
    count = 0
    for each in report.verdict.lost_already:
        start, end = each.from_offset, each.to_offset
        if (each.topic, each.partition) == tuple(partition.topic_partition) and (
            start is not None and end is not None and start >= (partition.end_offset or 0)
        ):
            count += end - start
    return count


def _has_warning(partition: PartitionReport) -> bool:
    return any(each.severity.is_at_least(Severity.WARNING) for each in partition.findings)
