"""``pylog doctor``: what is wrong with log directories, and what to do about it."""

from __future__ import annotations

import sys

import click

import pylog
from pylog.cli import exit_status, options
from pylog.cli.command_help import command
from pylog.cli.parameter_types import DIRECTORY
from pylog.cli.rendering import progress
from pylog.cli.rendering.compile_notice import announce_compilation
from pylog.cli.rendering.doctor_json import doctor_document
from pylog.cli.rendering.doctor_text import print_doctor_report, print_repair_summary
from pylog.cli.rendering.summary import write_json


@command(
    "doctor",
    "pylog doctor /mnt/kafka-logs",
    "pylog doctor /mnt/kafka-logs --severity error --json",
    "pylog doctor /mnt/snapshot --repair-to /mnt/repaired",
)
@options.paths
@options.topics("Only these topics; may be given several times. Default: all.")
@options.partitions()
@click.option(
    "--severity",
    type=click.Choice([str(each) for each in pylog.Severity]),
    default="info",
    help="Show findings that are at least so severe.",
)
@options.threads("partitions are read side by side")
@click.option(
    "--repair-to",
    metavar="DIR",
    type=DIRECTORY,
    help="Write a copy of what is sound, on which a broker boots, to this directory, which does "
    "not exist or is empty. Takes one PATH, on which no broker should be working.",
)
@click.option(
    "--stop-at-damage",
    is_flag=True,
    help="Let the copy of a log end before its first damage, as a broker's recovery does. Without "
    "it, what is sound after damage is kept, too, with a gap in the offsets.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help='Print one JSON document, {"directories": [...], "partitions": [...], "summary": {...}}, '
    "with sizes in bytes.",
)
def doctor(
    paths: tuple[str, ...],
    *,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    severity: str,
    threads: int | None,
    repair_to: str | None,
    stop_at_damage: bool,
    as_json: bool,
) -> int:
    """Find everything that is wrong in log directories, and say what to do.

    All is read: every checksum is verified and every record decoded; indexes, producer snapshots,
    leader epochs, checkpoints and the names of files are compared with the batches. For offsets
    that are missing it says why: removed by compaction, damaged, or lost. Nothing is changed or
    locked; a broker may be running on the directory.

    Each kind of finding has a code, what a broker does about it at its start, and what can be done.
    An error means that records are lost or cannot be read, or that a broker does not start; a
    warning that a side file is wrong; info is worth knowing, and nothing is wrong.
    docs/operators.md lists all codes.

    Nothing is ever repaired in place. With --repair-to, all that is sound is copied; indexes,
    snapshots and checkpoints are rebuilt. Where damage has cost a batch, its offsets are missing
    in the copy. A transaction that has lost a part is then given as it is, or stays open. Nothing
    is copied of __cluster_metadata, which other controllers have.

    Exit status: 0 no error or warning was found, 1 there is one (in what was copied, whatever the
    copy is like), 2 wrong usage, nothing under a PATH can be read, or DIR cannot be written.
    """
    least = pylog.Severity(severity)
    has_bar = progress.is_seen()
    if repair_to is not None and len(paths) > 1:
        msg = "--repair-to takes one PATH: the copy is one log directory"
        raise click.UsageError(msg)
    if stop_at_damage and repair_to is None:
        msg = "--stop-at-damage is about the copy that --repair-to writes"
        raise click.UsageError(msg)
    names = options.names_in(topics, None) or None
    numbers = partitions or None
    announce_compilation()
    summary = None
    with progress.ProgressBar("reading", None) as bar:
        show = bar.show if has_bar else None
        if repair_to is None:
            report = pylog.doctor(
                *paths, topics=names, partitions=numbers, threads=threads, progress=show
            )
        else:
            summary = pylog.repair_copy(
                paths[0],
                repair_to,
                topics=names,
                partitions=numbers,
                stop_at_damage=stop_at_damage,
                threads=threads,
                progress=show,
            )
            report = summary.source
    if as_json:
        write_json(doctor_document(report, least, summary))
    else:
        print_doctor_report(report, least, sys.stdout)
        if summary is not None:
            print_repair_summary(summary, sys.stdout)
    return _status_of(report)


def _status_of(report: pylog.DoctorReport) -> int:
    unreadable = [
        any(each.code == "unreadable" for each in partition.findings)
        for partition in report.partitions
    ]
    if unreadable and all(unreadable):
        return exit_status.UNUSABLE
    worst = report.worst
    is_wrong = worst is not None and worst.is_at_least(pylog.Severity.WARNING)
    return exit_status.FINDINGS if is_wrong else exit_status.SOUND
