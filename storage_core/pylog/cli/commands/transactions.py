"""``pylog transactions``: which transactions are open, and since when."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

import pylog
from pylog.cli import exit_status, options
from pylog.cli.command_help import command
from pylog.cli.parameter_types import DURATION
from pylog.cli.rendering import progress
from pylog.cli.rendering.output_traits import OutputTraits
from pylog.cli.rendering.summary import write_json
from pylog.cli.rendering.transaction_text import transaction_document, transaction_lines

if TYPE_CHECKING:
    from collections.abc import Callable


@command(
    "transactions",
    "pylog transactions /mnt/kafka-logs",
    "pylog transactions /mnt/snapshot --now 2026-11-20T08:00Z --max-timeout 1h",
)
@options.paths
@options.topics("Only these topics; may be given several times. Default: all, internal ones too.")
@options.partitions()
@click.option(
    "--max-timeout",
    "max_timeout_ms",
    metavar="DURATION",
    type=DURATION,
    default="15m",
    help="How long a transaction may be open (30s, 15m, 2h, 1d) before it is overdue and comes "
    "first: the brokers' transaction.max.timeout.ms.",
)
@options.now("how long transactions have been open")
@click.option(
    "--all", "includes_ended", is_flag=True, help="List committed and aborted ones as well."
)
@options.threads("partitions are read side by side")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def transactions(
    paths: tuple[str, ...],
    *,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    max_timeout_ms: int,
    now_ms: int | None,
    includes_ended: bool,
    threads: int | None,
    as_json: bool,
) -> int:
    """List open transactions: since when, and whose they are.

    A transaction is open in a partition until a marker says commit or abort; consumers with
    read_committed read nothing from its first record on. All comes from batch headers and markers.
    STATE is open, committed, aborted, or unknown where damage may have hidden a marker. STARTED is
    the time of the first batch that is here, or what the coordinator has written. OPEN FOR is
    counted to now; of a copy, give the time at which it was made (--now). Overdue ones come first.

    With partitions of __transaction_state among the PATHs there are the TRANSACTIONAL ID, and the
    state that its COORDINATOR has written. An overdue transaction that its coordinator does not
    have under way is "hanging": nobody will end it (kafka-transactions abort does).

    Of a partition that is damaged, what is before the damage is listed. A terminal that is too
    narrow does without COORDINATOR, LAST, MARKER and other columns, as far as it must.

    Exit status: 0 nothing wrong was seen, 1 damage was found, or a transaction is overdue, 2 wrong
    usage or a path that cannot be read.
    """
    names = options.names_in(topics, None)
    with progress.ProgressBar("reading headers", None) as bar:
        show: Callable[[int, int], None] | None = bar.show if progress.is_seen() else None
        listing = pylog.transactions(
            *paths,
            topics=names or None,
            partitions=partitions,
            max_timeout_ms=max_timeout_ms,
            now_ms=now_ms,
            includes_ended=includes_ended,
            threads=threads,
            progress=show,
        )
    if as_json:
        write_json(transaction_document(listing))
    else:
        lines = transaction_lines(listing, OutputTraits.of(sys.stdout).width)
        sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()
    for error in listing.errors:
        sys.stderr.write(f"pylog: warning: {pylog.printable(str(error))}\n")
    is_sound = not listing.errors and not any(each.is_overdue for each in listing.transactions)
    return exit_status.SOUND if is_sound else exit_status.FINDINGS
