"""What ``pylog doctor`` found, as one page: no script, no network, no file beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.checks.findings import Severity
from pylog.locations import printable_location
from pylog.text.charts import NONE, Share, card, number, page, share_chart, size, table, text, tiles
from pylog.text.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.checks.findings import Finding
    from pylog.checks.report import DoctorReport, PartitionReport

_MOST_PLACES = 20  # of a kind
_MOST_PARTITIONS = 200
_COLOURS = {Severity.ERROR: "other", Severity.WARNING: "gzip", Severity.INFO: "lz4"}
_OFFSETS = (
    ("records", "records", "good"),
    ("control_records", "control records", "b"),
    ("compacted", "removed by compaction", "none"),
    ("missing", "missing", "gzip"),
    ("damaged", "damaged", "other"),
)
"""Kinds of offsets, their names and colours."""


def doctor_page(report: DoctorReport) -> str:
    """Return the whole page: the verdict first, then findings by kind, then partitions."""
    paths = [each.path for each in report.directories] or [each.path for each in report.partitions]
    shown = ", ".join(text(printable_location(each)) for each in paths[:3])
    if len(paths) > 3:
        shown += f" and {len(paths) - 3} more"
    body = (
        f'<header><h1>What is wrong with these Kafka logs</h1><p class="lead"><code>{shown}</code>'
        f"</p></header>{report_part(report)}"
    )
    return page(shown, body, "pylog doctor")


def report_part(report: DoctorReport) -> str:
    """Return what the page and a notebook show below the title."""
    verdict = "".join(f"<li>{text(each, 2000)}</li>" for each in report.verdict)
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
    cards = "".join([*_kinds(report), *_partitions(report)])
    return (
        f'<div class="problems"><b>Verdict</b><ul>{verdict}</ul></div>{tiles(figures)}'
        f'<div class="grid">{cards}</div>'
    )


def _kinds(report: DoctorReport) -> Iterator[str]:
    found: dict[tuple[Severity, str], list[Finding]] = {}
    for each in report.findings:
        found.setdefault((each.severity, each.code), []).append(each)
    for (severity, code), findings in sorted(found.items(), key=lambda item: item[0][0].rank):
        first = findings[0]
        note = f"{text(first.broker_action)}. <b>To do:</b> {text(first.advice)}."
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
        end = NONE if finding.end_position is None else f"{finding.end_position:,}"
        parts.append(f"bytes {finding.position:,} to {end}")
    if finding.next_offset is not None:
        end = NONE if finding.end_offset is None else f"{finding.end_offset:,}"
        parts.append(f"offsets {finding.next_offset:,} to {end}")
    return ", ".join(parts)


def _partitions(report: DoctorReport) -> Iterator[str]:
    wrong = [each for each in report.partitions if _is_wrong(each)]
    for each in wrong[:_MOST_PARTITIONS]:
        offsets = each.offsets
        parts = [
            Share(name, count, f"{name}: {number(count)}", colour, colour)
            for kind, name, colour in _OFFSETS
            if (count := getattr(offsets, kind))
        ]
        start = f" A start: {text(each.start.describe())}." if each.start is not None else ""
        note = f"Offsets {each.start_offset:,} to {each.end_offset:,} (exclusive).{start}"
        chart = share_chart(parts, number) if parts else ""
        yield card(text(each.topic_partition), chart, note=note)
    more = len(wrong) - _MOST_PARTITIONS
    if more > 0:
        yield card("More partitions", "", note=f"{counted(more, 'partition')} more with findings.")


def _is_wrong(partition: PartitionReport) -> bool:
    return any(each.severity.is_at_least(Severity.WARNING) for each in partition.findings)
