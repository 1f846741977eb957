"""``pylog transactions``: which transactions are open, and since when."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

import pylog
from pylog.cli import exit_status, options, progress
from pylog.cli.options import DURATION, command
from pylog.cli.output import known, tell, write_summary
from pylog.cli.style import OutputTraits
from pylog.cli.table import aligned_columns
from pylog.text.words import counted, duration_text, format_bytes, time_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pylog.results import ListedTransaction, TransactionListing


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
@options.flag("--all", "includes_ended", help="List committed and aborted ones as well.")
@options.server_properties
@options.threads("partitions are read side by side")
@options.as_json_document
def transactions(
    paths: tuple[str, ...],
    *,
    topics: tuple[str, ...],
    as_json: bool,
    **of_library: Any,  # noqa: ANN401 - options that `pylog.transactions` has, too
) -> int:
    """List open transactions: since when, and whose they are.

    A transaction is open in a partition until a marker says commit or abort; consumers with
    read_committed read nothing from its first record on. All comes from batch headers and markers.
    STATE is open, committed, aborted, or unknown where damage may have hidden a marker. STARTED is
    the time of the first batch that is here, or the time that the coordinator has written. OPEN FOR
    is counted to now; for a copy, give the time at which it was made (--now). Overdue transactions
    come first.

    With partitions of __transaction_state among the PATHs there are the TRANSACTIONAL ID, and the
    state that its COORDINATOR has written. An overdue transaction that its coordinator does not
    have under way is "hanging": nobody will end it (kafka-transactions abort does). For one whose
    end is decided (PrepareCommit, PrepareAbort) and whose marker is not here, NOTE says since when,
    and how many offsets are blocked behind it.

    In a damaged partition, transactions before the damage are listed. In a narrow terminal,
    COORDINATOR, LAST, MARKER and further columns are dropped.

    Two transactional ids with one producer id are a warning that names both.

    Exit status: 0 nothing wrong was seen, 1 damage was found, a transaction is overdue, or a
    producer id has two transactional ids, 2 wrong usage or a path that cannot be read.
    """
    with progress.ProgressBar("reading headers", None) as bar:
        listing = pylog.transactions(
            *paths,
            topics=options.names_in(topics, None) or None,
            progress=bar.show if progress.is_seen() else None,
            **of_library,
        )
    lines = _lines(listing, OutputTraits.of(sys.stdout).width)
    write_summary(_document(listing), lines, as_json=as_json)
    tell("note", *listing.stale)
    tell("warning", *listing.errors, *listing.shared_producers)
    has_overdue = any(each.is_overdue for each in listing.transactions)
    is_sound = not (listing.errors or listing.shared_producers or has_overdue)
    return exit_status.SOUND if is_sound else exit_status.FINDINGS


_LEFT = {"TOPIC", "STATE", "STARTED", "TRANSACTIONAL ID", "COORDINATOR", "NOTE"}


def _lines(listing: TransactionListing, width: int | None) -> Iterator[str]:
    """Yield a table, if there is a row for it, and the sums; ``width`` is that of the terminal."""
    rows = listing.transactions
    if rows:
        columns = {
            "TOPIC": [pylog.jobs.printable(row.topic) for row in rows],
            "PARTITION": [str(row.partition) for row in rows],
            "PRODUCER": [f"{row.producer_id}/{row.producer_epoch}" for row in rows],
            "STATE": [row.state for row in rows],
            "FIRST": [known(row.first_offset) for row in rows],
            "LAST": [known(row.last_offset) for row in rows],
            "MARKER": [known(row.marker_offset) for row in rows],
            "STARTED": [time_text(row.started_ms) for row in rows],
            "OPEN FOR": [duration_text(row.open_ms) for row in rows],
            "TRANSACTIONAL ID": [pylog.jobs.printable(row.transactional_id or "-") for row in rows],
            "COORDINATOR": [row.coordinator_state or "-" for row in rows],
            "NOTE": [_note(row) for row in rows],
        }
        for heading in ("MARKER", "OPEN FOR"):
            if not any(cell != "-" for cell in columns[heading]):
                del columns[heading]
        if not listing.has_coordinators:
            del columns["TRANSACTIONAL ID"], columns["COORDINATOR"]
        if not any(columns["NOTE"]):
            del columns["NOTE"]
        yield from aligned_columns(
            columns, _LEFT, width, _least_needed(columns), ("OPEN FOR", "FIRST")
        )
    totals = listing.totals
    states = [f"{totals.get(state, 0)} {state}" for state in ("open", "committed", "aborted")]
    if totals.get("unknown"):
        states.append(f"{totals['unknown']} unknown (damage may have hidden a marker)")
    where = f"{len(listing.counts)} of {counted(listing.partition_count, 'partition')}"
    yield f"{', '.join(states)}, in {where}"


def _least_needed(columns: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the columns that a narrow terminal does without, the least needed first."""
    least_needed = ["COORDINATOR", "LAST", "MARKER"]
    if "OPEN FOR" in columns:
        least_needed.append("STARTED")
    if set(columns["STATE"]) == {"open"}:
        least_needed.append("STATE")
    if "TRANSACTIONAL ID" in columns:
        least_needed.append("PRODUCER")
    if set(columns["STATE"]) != {"open"}:  # without --all they have it
        least_needed.append("OPEN FOR")
    return least_needed


def _note(row: ListedTransaction) -> str:
    notes = ["overdue"] if row.is_overdue else []
    if row.state == "open" and row.open_ms is None and row.started_ms is not None:
        notes.append("began later")
    if row.is_hanging:
        notes.append("hanging")
    if row.prepared_ms is not None:
        notes.append(f"decided {time_text(row.prepared_ms)}")
    if row.waiting_records is not None and row.waiting_bytes is not None:
        waiting = counted(row.waiting_records, "record")
        notes.append(f"{waiting}, {format_bytes(row.waiting_bytes)} wait")
    return ", ".join(notes)


def _document(listing: TransactionListing) -> dict[str, Any]:
    return {
        "transactions": pylog.jobs.document_of(listing.transactions),
        "partitions": [
            {**place._asdict(), "transactions": counts} for place, counts in listing.counts.items()
        ],
        "totals": listing.totals,
        "hasCoordinators": listing.has_coordinators,
        "stale": pylog.jobs.document_of(listing.stale),
        "errors": pylog.jobs.document_of(listing.errors),
        "sharedProducers": pylog.jobs.document_of(listing.shared_producers),
    }
