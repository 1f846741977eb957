"""``pylog doctor``: what is wrong with log directories, and what to do about it."""

from __future__ import annotations

import sys

import click

import pylog
from pylog.cli import exit_status, options
from pylog.cli.command_help import command
from pylog.cli.rendering import progress
from pylog.cli.rendering.compile_notice import announce_compilation
from pylog.cli.rendering.doctor_json import doctor_document
from pylog.cli.rendering.doctor_text import print_doctor_report
from pylog.cli.rendering.summary import write_json


@command("doctor")
@options.paths
@options.topics("Only these topics; may be given several times. Default: all.")
@options.one_partition(required=False)
@click.option(
    "--severity",
    type=click.Choice([str(each) for each in pylog.Severity]),
    default="info",
    help="Show findings that are at least so severe.",
)
@click.option(
    "--threads",
    metavar="N",
    type=click.IntRange(min=1),
    help="How many partitions are read side by side. Default: one for each processor.",
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
    partition: int | None,
    severity: str,
    threads: int | None,
    as_json: bool,
) -> int:
    """Find everything that is wrong in log directories, and say what to do.

    All is read: every checksum is verified and every record decoded; indexes, producer snapshots,
    leader epochs, checkpoints and the names of files are held against the batches. Offsets that are
    missing are told apart: removed by compaction, damaged, or lost. Nothing is changed or locked; a
    broker may be running on the directory.

    Each kind of finding has a code, what a broker does about it at its start, and what can be done.
    An error means that records are lost or cannot be read, or that a broker does not start; a
    warning that a side file is wrong; info is worth knowing, and nothing is wrong.
    docs/operators.md lists all codes.

    Exit status: 0 no error or warning was found, 1 there is one, 2 wrong usage, or nothing under a
    PATH can be read.
    """
    least = pylog.Severity(severity)
    has_bar = sys.stderr is not None and sys.stderr.isatty()
    announce_compilation()
    with progress.ProgressBar("reading", None) as bar:
        report = pylog.doctor(
            *paths,
            topics=options.names_in(topics, None) or None,
            partitions=None if partition is None else [partition],
            threads=threads,
            progress=bar.show if has_bar else None,
        )
    if as_json:
        write_json(doctor_document(report, least))
    else:
        print_doctor_report(report, least, sys.stdout)
    worst = report.worst
    is_wrong = worst is not None and worst.is_at_least(pylog.Severity.WARNING)
    return exit_status.FINDINGS if is_wrong else exit_status.SOUND
