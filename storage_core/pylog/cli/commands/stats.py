"""``pylog stats``: what logs are made of."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import click

import pylog
from pylog.cli import exit_status, options
from pylog.cli.command_help import command
from pylog.cli.parameter_types import FILE
from pylog.cli.rendering import progress
from pylog.cli.rendering.bars import can_show_blocks
from pylog.cli.rendering.byte_size import format_bytes
from pylog.cli.rendering.compile_notice import announce_compilation
from pylog.cli.rendering.output_traits import BOLD, GREEN, OutputTraits
from pylog.cli.rendering.statistics_text import StatisticsText
from pylog.cli.rendering.summary import write_json

_WIDTH_ELSEWHERE = 100
_MOST_WIDTH = 140


@command(
    "stats",
    "pylog stats /mnt/kafka-logs",
    "pylog stats /mnt/kafka-logs --topic orders --sample",
    "pylog stats /mnt/kafka-logs --full --html kafka-logs.html",
)
@options.paths
@options.topics("Only these topics; may be given several times. Default: all, internal ones too.")
@options.partitions()
@click.option(
    "--sample",
    is_flag=True,
    help="Read some records, too: the most frequent keys, the largest records, and what other "
    "codecs and batch sizes would save.",
)
@click.option(
    "--full",
    is_flag=True,
    help="Read all records: keys and large records are counted over all of them, and of topics "
    "known to be compacted it says what is live. Savings come from a sample as with --sample.",
)
@click.option(
    "--sample-bytes",
    metavar="BYTES",
    type=click.IntRange(min=1),
    default=64 << 20,
    help="How much of the .log files is read for the sample. Topics that are small enough for "
    "their share of it are read as a whole.",
)
@click.option(
    "--top",
    metavar="N",
    type=click.IntRange(min=1),
    default=10,
    help="How many topics are shown one by one, and how many keys and large records of each.",
)
@click.option(
    "--html",
    metavar="FILE",
    type=FILE,
    help="Write a page with charts to FILE. It needs nothing beside it, neither files nor a "
    "network. An existing file is replaced.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one JSON document with all tables, sizes in bytes and timestamps in milliseconds.",
)
@options.threads("partitions are read side by side")
def stats(
    paths: tuple[str, ...],
    *,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    sample: bool,
    full: bool,
    sample_bytes: int,
    top: int,
    html: str | None,
    as_json: bool,
    threads: int | None,
) -> int:
    """Show what logs are made of: sizes, batches, codecs, keys, times.

    Without --sample and --full every batch header is read, and no record. That tells size and
    records by topic, partition and segment; how full batches are; which codecs they have; when
    records came, by the hour of the largest timestamp of their batch; how even partitions are; and
    timestamps that are out of order or in the future.

    --sample reads some records, at random places. What it says about all records has bounds: the
    true value lies within them in 95 % of samples. --full reads all: then the bounds are certain,
    and there are none where all keys of a topic fit into 8 MiB.

    What a topic would take with another codec or batch size is measured: the sample is compressed
    again. A batch size is before compression.

    A directory that a broker is writing to can be looked at as well. What is damaged is left out
    and named at the end.

    Exit status: 0 nothing wrong was seen (records are read with --full alone), 1 something is
    damaged or cannot be read, 2 wrong usage or a path that holds no log.
    """
    if sample and full:
        msg = "give either --sample or --full, not both"
        raise click.UsageError(msg)
    if html is not None:
        _ensure_can_be_written(html)
    announce_compilation()
    has_bar = progress.is_seen()
    with progress.ProgressBar("reading", None) as bar:
        found = pylog.stats(
            *paths,
            topics=options.names_in(topics, None) or None,
            partitions=partitions,
            read="all" if full else "sample" if sample else "headers",
            sample_bytes=sample_bytes,
            most=top,
            threads=threads,
            progress=bar.show if has_bar else None,
        )
    if html is not None:
        _write_page(found, html)
    if as_json:
        write_json(found.document())
    elif html is None:
        _print(found, top)
    return exit_status.FINDINGS if found.problems else exit_status.SOUND


def _ensure_can_be_written(path: str) -> None:
    """Raise the error now that writing the page would raise once everything has been read."""
    target = Path(path)
    code = None
    if target.is_dir():
        code = errno.EISDIR
    elif not target.parent.is_dir():
        code = errno.ENOENT
    elif not os.access(target if target.exists() else target.parent, os.W_OK):
        code = errno.EACCES
    if code is not None:
        raise OSError(code, os.strerror(code), path)


def _write_page(found: pylog.LogStatistics, path: str) -> None:
    page = found.html().encode()
    Path(path).write_bytes(page)
    sys.stderr.write(f"pylog: written to {pylog.printable(path)} ({format_bytes(len(page))})\n")


def _print(found: pylog.LogStatistics, top: int) -> None:
    traits = OutputTraits.of(sys.stdout)
    width = _WIDTH_ELSEWHERE if traits.width is None else min(_MOST_WIDTH, traits.width)
    text = StatisticsText(
        found,
        width,
        blocks=can_show_blocks(sys.stdout.encoding),
        most_topics=top,
        heading=lambda line: traits.styled(line, BOLD),
        drawing=lambda bar: traits.styled(bar, GREEN),
    )
    sys.stdout.writelines(f"{line}\n" for line in text.lines())
