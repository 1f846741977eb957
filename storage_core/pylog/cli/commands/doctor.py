"""``pylog doctor``: what is wrong with log directories, and what to do about it."""

from __future__ import annotations

import shlex
import sys
import textwrap
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import click

import pylog
from pylog.cli import exit_status, options, progress
from pylog.cli.options import DIRECTORY, command
from pylog.cli.output import write_json
from pylog.cli.style import BOLD, BOLD_GREEN, BOLD_RED, BOLD_YELLOW, DIM, RED, YELLOW, OutputTraits
from pylog.cli.table import ensure_can_be_written, write_page
from pylog.results import Severity
from pylog.text.words import counted, format_bytes, named, offsets_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pylog.results import (
        DoctorReport,
        Finding,
        LogDirectoryReport,
        PartitionReport,
        RepairedPartition,
        RepairSummary,
    )


@command(
    "doctor",
    "pylog doctor /mnt/kafka-logs",
    "pylog doctor /mnt/kafka-logs --topic orders --verbose",
    "pylog doctor /mnt/kafka-logs --severity error --json",
    "pylog doctor /mnt/snapshot --repair-to /mnt/repaired",
)
@options.paths
@options.topics("Only these topics; may be given several times. Default: all.")
@options.partitions()
@click.option(
    "--severity",
    type=click.Choice([str(each) for each in Severity]),
    default="info",
    help="Show findings of at least this severity.",
)
@options.flag(
    "-v",
    "--verbose",
    help="Show every finding with its place: also infos, and all findings of a kind that is found "
    "often. --json always has all of them.",
)
@options.threads(
    "partitions are read side by side",
    default="one for partitions below 1 MiB on average, and one for each processor otherwise",
)
@click.option(
    "--kafka-version",
    metavar="VERSION",
    help="Version of the broker that will use the directories, 3.9 to 4.4. Default: the newest.",
)
@options.server_properties_for(
    "for the order of its log.dirs, by default the order of the PATHs; for "
    "offsets.retention.minutes, by default 7 days; and for values with which it does not start."
)
@click.option(
    "--as-user",
    metavar="USER",
    help="Name or id of the user that a broker runs as. Default: the owner of most files in the "
    "log directory.",
)
@click.option(
    "--repair-to",
    metavar="DIR",
    type=DIRECTORY,
    help="Write a copy of all intact batches, on which a broker starts, to this directory, which "
    "must not exist or be empty. No broker should be working on PATH. With several PATHs, DIR "
    "gets a log directory of the same name for each; give all PATHs of a node together.",
)
@options.html("Write a page to FILE: the verdict, findings, offsets")
@options.color
@options.json_output(
    'Print one JSON document, {"verdict": {...}, "clusters": [...], "directories": [...], '
    '"partitions": [...], "summary": {...}}, with sizes in bytes, times in milliseconds.'
)
def doctor(
    paths: tuple[str, ...],
    *,
    topics: tuple[str, ...],
    severity: str,
    verbose: bool,
    server_properties: pylog.ServerProperties | None,
    repair_to: str | None,
    html: str | None,
    as_json: bool,
    **of_library: Any,  # noqa: ANN401 - options that `pylog.doctor` has, too
) -> int:
    """Find everything that is wrong in log directories, and say what to do.

    It reads everything: verifies every checksum, decodes every record, and compares indexes,
    producer snapshots, leader epochs, checkpoints and file names with the batches. It says why
    offsets are missing: removed by compaction, damaged, or lost. It changes and locks nothing; a
    broker may be running on the directory.

    Each kind of finding has a code, what a broker does about it at its start, and what can be done.
    An error means that records are lost or cannot be read, or that a broker does not start; a
    warning that a side file is wrong; info is worth knowing, and nothing is wrong.
    docs/doctor-codes.md lists all codes.

    The PATHs of one node are taken for its log.dirs, in this order: the first one holds the
    cluster's metadata.

    First comes the verdict: whether a broker can start from this, which partitions lose records,
    and what to type. Then come errors, warnings and info, each kind once, with where it was found;
    of info there is one line for each kind, unless --verbose is given.

    Nothing is ever repaired in place. With --repair-to, all intact batches are copied, at their
    offsets; indexes, snapshots and checkpoints are rebuilt. Offsets of batches that damage has
    destroyed are missing in the copy, and named. A transaction that has lost a part is copied as it
    is, or stays open. A partition that cannot be read is left out, and named. __cluster_metadata is
    copied if this node is the only controller; otherwise the other controllers have it. What an
    interrupted call has left in DIR keeps brokers from starting there, and the next call replaces
    it.

    Exit status: 0 no error or warning was found, 1 there is one (in what was copied), or the copy
    lacks something or has an error, 2 wrong usage, nothing under a PATH can be read, or DIR cannot
    be written.
    """
    least = Severity(severity)
    if server_properties is not None:
        paths = tuple(server_properties.in_order(paths))
        if repair_to is None:
            of_library["server_properties"] = server_properties
    if html is not None:
        ensure_can_be_written(html)
    of_library["topics"] = options.names_in(topics, None) or None
    of_library["partitions"] = of_library["partitions"] or None
    summary = None
    with progress.bar_or_lines("reading") as bar:
        of_library["progress"] = bar.show
        if repair_to is None:
            report = pylog.doctor(*paths, **of_library)
        else:
            del of_library["kafka_version"], of_library["as_user"]
            summary = pylog.repair_copy(
                paths if len(paths) > 1 else paths[0], repair_to, **of_library
            )
            report = summary.source
    if html is not None:
        write_page(report.html(), html)
    if as_json:
        write_json(_document(report, least, summary))
    elif html is None or summary is not None:
        advice = "" if summary is not None else _how_to_copy(paths)
        paragraphs = _report_paragraphs(report, least, is_verbose=verbose, advice=advice)
        copied = () if summary is None else _repair_paragraphs(summary)
        traits = OutputTraits.of(sys.stdout)
        for paragraph in (*paragraphs, *copied):
            sys.stdout.writelines(_lines(paragraph, traits))
    status = _status_of(report)
    is_bad_copy = summary is not None and (
        not summary.is_complete or summary.copy.worst is Severity.ERROR
    )
    return exit_status.FINDINGS if status == exit_status.SOUND and is_bad_copy else status


def _status_of(report: pylog.results.DoctorReport) -> int:
    unreadable = [each.is_unreadable for each in report.partitions]
    if unreadable and all(unreadable):
        return exit_status.UNUSABLE
    worst = report.worst
    is_wrong = worst is not None and worst.is_at_least(Severity.WARNING)
    return exit_status.FINDINGS if is_wrong else exit_status.SOUND


_SHOWN_PLACES = 3  # of a kind in one partition
_SHOWN_OF_A_KIND = 20
_LEAST_WIDTH = 40
_DEEP = 4  # blanks before what stands below a label that is too long for its line
_STYLES = {Severity.ERROR: RED, Severity.WARNING: YELLOW, Severity.INFO: DIM}
_HEADLINES = {
    Severity.ERROR: BOLD_RED,
    Severity.WARNING: BOLD_YELLOW,
    Severity.INFO: BOLD_GREEN,
    None: BOLD_GREEN,
}
"""Style of the first line, by the worst severity that is found."""
# Not worth a line of their own.
_NOTHING, _NO_NEED = "nothing", "nothing needs to be done"


class Paragraph(NamedTuple):
    """Text that may be wrapped."""

    label: str  # what its first line begins with, and later ones have blanks for
    text: str  # the rest
    style: str = ""  # escape sequence that the label is printed with in a terminal, or ""
    text_style: str = ""  # the same for the text


def _how_to_copy(paths: Sequence[str]) -> str:
    # A URI may have secrets in it.
    is_local = not any("://" in each for each in paths)
    place = shlex.join(paths) if is_local else "PATH"
    return f"pylog doctor {place} --repair-to DIR copies all that is intact."


def _copy_sentences(partition: RepairedPartition, *, is_kraft: bool) -> Iterator[str]:
    """Yield sentences about what the copy of a partition lacks."""
    if partition.left_out_bytes:
        all_bytes = partition.left_out_bytes + partition.copied_bytes
        left_out = f"{partition.left_out_bytes} of {all_bytes} bytes"
        yield f"{left_out} were left out; ends at {partition.end_offset}"
    for start, end, name in partition.kept:
        text = offsets_text(start, end)
        yield f"{text} {'is' if end - start == 1 else 'are'} of {name}; another segment has more"
    if partition.missing:
        lost = named([offsets_text(*each) for each in partition.missing], _SHOWN_PLACES)
        records = counted(sum(end - start for start, end in partition.missing), "record")
        yield f"{records} lost, {lost}"
    if partition.doubt is not None:
        yield partition.doubt
    if is_kraft and partition.topic_id is None:
        yield "its topic id is not known: a broker sets it aside as -stray"


def _repair_paragraphs(summary: RepairSummary) -> Iterator[Paragraph]:
    copied, all_of_them = len(summary.partitions), len(summary.partitions) + len(summary.left_out)
    partitions = counted(all_of_them, "partition")
    partitions = partitions if copied == all_of_them else f"{copied} of {partitions}"
    text = f"{partitions}, {format_bytes(summary.copied_bytes)}"
    yield Paragraph("", "")
    yield Paragraph(f"{summary.directory}  ", f"a copy of what is intact: {text}", BOLD)
    for each in summary.partitions:
        for text in _copy_sentences(each, is_kraft=summary.is_kraft):
            yield Paragraph("  ", f"{each.topic_partition}: {text}")
    for each in summary.partitions:
        if each.source.endswith(("-stray", "-delete", "-future")):
            text = (
                f"made of {each.source}; a cluster that knows another topic id of that name sets "
                "it aside as -stray"
            )
            yield Paragraph("  ", f"{each.topic_partition}: {text}")
    nothing = "nothing is left to copy; according to checkpoints, it had"
    yield from (
        Paragraph("  ", f"{absent}: {nothing} {offsets_text(start, end)}")
        for absent, (start, end) in summary.absent.items()
    )
    for topic_partition, reason in summary.unreadable.items():
        text = (
            f"not copied, since it cannot be read ({reason}). Make it readable and copy again: a "
            "broker that starts on this copy creates it empty"
        )
        yield Paragraph("  ", f"{topic_partition}: {text}")
    for topic_partition in summary.left_out:
        if topic_partition in summary.unreadable:
            continue
        text = (
            "not copied. The other controllers have it; if this node is the only one, a broker "
            "starts without any topic, and sets all partitions aside as -stray"
        )
        yield Paragraph("  ", f"{topic_partition}: {text}")
    wrong = [each for each in summary.copy.findings if each.severity is not Severity.INFO]
    codes = ", ".join(sorted({each.code for each in wrong}))
    if wrong:
        yield Paragraph("  ", f"the copy still has: {codes}")
    elif summary.is_complete:
        yield Paragraph("  ", "nothing is wrong with it")


def _lines(paragraph: Paragraph, traits: OutputTraits) -> Iterator[str]:
    label, text = pylog.jobs.printable(paragraph.label), pylog.jobs.printable(paragraph.text)
    if traits.width is None:
        styled = (
            f"{traits.styled(label, paragraph.style)}{traits.styled(text, paragraph.text_style)}"
        )
        yield styled.rstrip() + "\n"
        return
    start = traits.styled(label, paragraph.style)
    width = max(_LEAST_WIDTH, traits.width)
    indent = len(label)
    if text and len(label) > width // 2 and len(label) + len(text) > width:
        # As of a topic whose name fills the line.
        yield f"{traits.styled(label.rstrip(), paragraph.style)}\n"
        start, indent = " " * _DEEP, _DEEP
    lines = textwrap.wrap(text, width - indent, break_on_hyphens=False, break_long_words=False) or [
        ""
    ]
    for line in lines:
        yield f"{start}{traits.styled(line, paragraph.text_style)}".rstrip() + "\n"
        start = " " * indent


def _report_paragraphs(
    report: DoctorReport, least: Severity, *, is_verbose: bool, advice: str
) -> Iterator[Paragraph]:
    """Yield all that is printed, in order; ``advice`` below the verdict if there is an error."""
    clusters = report.of_clusters
    for cluster_id, each in clusters.items():
        if len(clusters) > 1:
            name = "no cluster" if cluster_id is None else f"cluster {cluster_id}"
            paths = [one.path for one in each.directories or each.partitions]
            yield Paragraph(f"{name}  ", ", ".join(paths), BOLD)
        styles = [_HEADLINES[each.worst], *([BOLD] * len(each.verdict.reasons))]
        for sentence, style in zip(each.verdict.reasons, styles, strict=False):
            yield Paragraph("", sentence, text_style=style)
    if advice and report.worst is Severity.ERROR:
        yield Paragraph("", advice)
    yield Paragraph("", "")
    base = _common_directory(report)
    for severity in Severity:
        kinds = _kinds(report, severity) if severity.is_at_least(least) else {}
        is_folded = severity is Severity.INFO and not is_verbose
        for code, found in kinds.items():
            yield _heading(severity, code, found)
            if not is_folded:
                yield from _about(found, base, is_verbose=is_verbose)
                yield Paragraph("", "")
        if kinds and is_folded:
            yield Paragraph("  ", "Use --verbose for details.", text_style=DIM)
            yield Paragraph("", "")
    for partition in report.partitions:
        yield from _partition(partition, least)
    yield from _summary(report, least)


class _Found(NamedTuple):
    """A finding, and the directory that it was found in: a partition's, or a log directory."""

    directory: str
    finding: Finding


def _kinds(report: DoctorReport, severity: Severity) -> dict[str, list[_Found]]:
    """Return the findings of a severity by their codes, in the order in which they were found."""
    kinds: dict[str, list[_Found]] = {}
    places: list[LogDirectoryReport | PartitionReport] = [*report.directories, *report.partitions]
    for each in places:
        for finding in each.findings:
            if finding.severity is severity:
                kinds.setdefault(finding.code, []).append(_Found(each.path, finding))
    return kinds


def _heading(severity: Severity, code: str, found: Sequence[_Found]) -> Paragraph:
    count = f", {len(found)} times" if len(found) > 1 else ""
    places = len({each.directory for each in found})
    if places > 1:
        count += f" in {places} directories"
    style = _STYLES[severity]
    return Paragraph(
        f"{severity:<9} ", f"{code}{count}", style, DIM if severity is Severity.INFO else ""
    )


def _about(found: Sequence[_Found], base: str | None, *, is_verbose: bool) -> Iterator[Paragraph]:
    """Yield where findings of a kind are, and then once what is said of the kind."""
    seen: Counter[str] = Counter()
    shown = 0
    for directory, finding in found:
        seen[directory] += 1
        if is_verbose or (seen[directory] <= _SHOWN_PLACES and shown < _SHOWN_OF_A_KIND):
            shown += 1
            yield Paragraph("    ", f"{_place(finding, base)}: {finding.message}")
    if shown < len(found):
        yield Paragraph("    ", f"and {len(found) - shown} more, which --verbose lists")
    kind = found[0].finding
    actions = Counter(finding.broker_action for _, finding in found)
    for action, times in actions.most_common():
        if action != _NOTHING or len(actions) > 1:
            often = f"{times} of {len(found)}: " if len(actions) > 1 else ""
            yield Paragraph("    broker  ", f"{often}{action}")
    if kind.advice != _NO_NEED:
        yield Paragraph("    advice  ", kind.advice)


def _partition(partition: PartitionReport, least: Severity) -> Iterator[Paragraph]:
    """Yield what is left of a partition in which an error is shown, and what a start does to it."""
    shown = {each.severity for each in partition.findings if each.severity.is_at_least(least)}
    if Severity.ERROR not in shown or partition.start_text is None:
        return
    offsets = partition.offsets
    counts = [
        counted(offsets.records, "record"),
        counted(offsets.control_records, "control record") if offsets.control_records else "",
        f"{offsets.compacted} removed by compaction" if offsets.compacted else "",
        f"{offsets.missing} missing" if offsets.missing else "",
        f"{offsets.damaged} damaged" if offsets.damaged else "",
    ]
    text = offsets_text(partition.start_offset, partition.end_offset).partition(" ")[2]
    text = text if partition.start_offset < partition.end_offset else "none"
    yield Paragraph(f"{partition.topic_partition}  ", partition.path, BOLD)
    yield Paragraph("    offsets ", f"{text}: " + ", ".join(each for each in counts if each))
    yield Paragraph("    start   ", partition.start_text)
    yield Paragraph("", "")


def _common_directory(report: DoctorReport) -> str | None:
    """Return the one log directory that everything is in; None if there are several."""
    parents = {each.path.rstrip("/").rpartition("/")[0] for each in report.partitions}
    parents |= {each.path.rstrip("/") for each in report.directories}
    return parents.pop() if len(parents) == 1 else None


def _place(finding: Finding, base: str | None) -> str:
    """Return the file, below the log directory if there is one alone, with bytes and offsets."""
    path = finding.path
    if base and path.startswith(f"{base}/"):
        path = path[len(base) + 1 :]
    elif path == base:
        path = "the directory"
    where = ""
    if finding.position is not None and finding.end_position is not None:
        where = f" bytes {finding.position} to {finding.end_position - 1}"
    elif finding.position is not None:
        where = f" at byte {finding.position}"
    if finding.next_offset is not None and finding.end_offset is not None:
        if finding.next_offset < finding.end_offset:
            where += f", {offsets_text(finding.next_offset, finding.end_offset)}"
    elif finding.next_offset is not None:
        where += f", {offsets_text(finding.next_offset, None)}"
    return f"{path}{where}"


def _summary(report: DoctorReport, least: Severity) -> Iterator[Paragraph]:
    topics = {each.topic_partition.topic for each in report.partitions}
    parts = [
        counted(len(topics), "topic"),
        counted(len(report.partitions), "partition"),
        f"{format_bytes(report.scanned_bytes)} of {format_bytes(report.size_bytes)} intact",
        *_severities(report),
    ]
    yield Paragraph("", ", ".join(parts))
    for directory in report.directories:
        yield Paragraph("", _start_of(directory))
    hidden = sum(not each.severity.is_at_least(least) for each in report.findings)
    if hidden:
        yield Paragraph("", f"{counted(hidden, 'finding')} below --severity {least} not shown")


def _severities(report: DoctorReport) -> Iterator[str]:
    plurals = {Severity.ERROR: "errors", Severity.WARNING: "warnings", Severity.INFO: "info"}
    counts = report.counts
    if not any(counts.values()):
        yield "nothing found"
    for severity, count in counts.items():
        if count:
            yield counted(count, str(severity), plurals[severity])


def _start_of(directory: LogDirectoryReport) -> str:
    named = (
        ("cluster", directory.cluster_id),
        ("node", directory.node_id),
        ("directory id", directory.directory_id),
    )
    identity = ", ".join(f"{name} {value}" for name, value in named if value is not None)
    place = f"{directory.path} ({identity})" if identity else directory.path
    if directory.is_clean:
        return f"{place} was shut down cleanly"
    if directory.is_of_a_controller:
        return f"{place} is a controller's: it scans its log at each start"
    return (
        f"{place} was not shut down cleanly, or is in use: a broker scans its logs from their "
        "recovery points on"
    )


_NAMES = {
    "scanned_bytes": "soundBytes",
    "is_clean": "cleanShutdown",
    "is_of_a_controller": None,
    "lacks_metadata": None,
    "positions": None,
    "files": None,
    "cuts_intact": None,
    "broken_swap": None,
    "recovered": None,
    "first_undecided_offset": None,
    "losses": None,
    "is_read_on_loading": None,
    "start": "brokerStart",
    "kind": None,
    "own_effect": None,
    "own_action": None,
    "from_offset": "from",
    "to_offset": "to",
}


def _document(
    report: DoctorReport, least: Severity, summary: RepairSummary | None = None
) -> dict[str, Any]:
    """Return what was found that is bad enough, and a repaired copy, if one was written."""
    document = _report_document(report, least)
    if summary is not None:
        document["copy"] = {
            "directory": summary.directory,
            "partitions": pylog.jobs.document_of(summary.partitions),
            "leftOut": [str(each) for each in summary.left_out],
            "unreadable": {str(each): reason for each, reason in summary.unreadable.items()},
            "absent": [
                {"topic": each.topic, "partition": each.partition, "missing": [offsets]}
                for each, offsets in summary.absent.items()
            ],
            "report": _report_document(summary.copy, least),
        }
    return document


def _report_document(report: DoctorReport, least: Severity) -> dict[str, Any]:
    def with_findings(each: PartitionReport | LogDirectoryReport) -> dict[str, Any]:
        document: dict[str, Any] = pylog.jobs.document_of(each, _NAMES)
        document["findings"] = [
            {
                "severity": None,  # to come first
                "code": one.code,
                **pylog.jobs.document_of(one, _NAMES),
                "brokerAction": one.broker_action,
                "advice": one.advice,
            }
            for one in each.findings
            if one.severity.is_at_least(least)
        ]
        return document

    partitions = []
    for partition in report.partitions:
        document = with_findings(partition)
        if partition.start is not None:
            del document["brokerStart"]["endOffset"]
            refusal = partition.start.refusal
            document["brokerStart"]["refusal"] = None if refusal is None else refusal.message
            document["brokerStart"]["losesRecords"] = partition.start.loses_records
        partitions.append(document)
    of_clusters = report.of_clusters
    return {
        "verdict": pylog.jobs.document_of(report.verdict, _NAMES),
        "clusters": [
            {"clusterId": cluster_id, "verdict": pylog.jobs.document_of(each.verdict, _NAMES)}
            for cluster_id, each in of_clusters.items()
        ],
        "directories": [with_findings(each) for each in report.directories],
        "partitions": partitions,
        "summary": {
            "partitions": len(report.partitions),
            "sizeInBytes": report.size_bytes,
            "soundBytes": report.scanned_bytes,
            **{f"{severity}s": count for severity, count in report.counts.items()},
        },
    }
