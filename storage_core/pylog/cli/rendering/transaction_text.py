"""Transactions for people, and as a JSON document."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pylog
from pylog.cli.rendering.aligned_columns import aligned_columns
from pylog.cli.rendering.counted import counted
from pylog.cli.rendering.instants import duration_text, time_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pylog import ListedTransaction, TransactionListing

_LEFT = {"TOPIC", "STATE", "STARTED", "TRANSACTIONAL ID", "COORDINATOR", "NOTE"}
_COLUMNS = {"size_bytes": "size_in_bytes"}  # attributes that tables call something else


def transaction_lines(listing: TransactionListing, width: int | None = None) -> Iterator[str]:
    """Yield a table, if there is a row for it, and the sums; ``width`` is that of the terminal."""
    rows = listing.transactions
    if rows:
        columns = {
            "TOPIC": [pylog.printable(row.topic) for row in rows],
            "PARTITION": [str(row.partition) for row in rows],
            "PRODUCER": [f"{row.producer_id}/{row.producer_epoch}" for row in rows],
            "STATE": [row.state for row in rows],
            "FIRST": [_known(row.first_offset) for row in rows],
            "LAST": [_known(row.last_offset) for row in rows],
            "MARKER": [_known(row.marker_offset) for row in rows],
            "STARTED": [time_text(row.started_ms) for row in rows],
            "OPEN FOR": [duration_text(row.open_ms) for row in rows],
            "TRANSACTIONAL ID": [pylog.printable(row.transactional_id or "-") for row in rows],
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
        yield from aligned_columns(columns, _LEFT, width, _least_needed(columns))
    totals = listing.totals
    states = [f"{totals.get(state, 0)} {state}" for state in ("open", "committed", "aborted")]
    if totals.get("unknown"):
        states.append(f"{totals['unknown']} unknown (damage may have hidden a marker)")
    where = f"{len(listing.counts)} of {counted(listing.partition_count, 'partition')}"
    yield f"{', '.join(states)}, in {where}"


def _least_needed(columns: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the columns that a narrow terminal does without, the least needed first.

    Place, owner, for how long and the note stay; the owner of one that has ended may go.
    """
    least_needed = ["COORDINATOR", "LAST", "MARKER"]
    if "OPEN FOR" in columns:
        least_needed.append("STARTED")
    if set(columns["STATE"]) == {"open"}:
        least_needed.append("STATE")
    if "TRANSACTIONAL ID" in columns:
        least_needed.append("PRODUCER")
    return least_needed


def _note(row: ListedTransaction) -> str:
    notes = ["overdue"] if row.is_overdue else []
    return ", ".join([*notes, "hanging"] if row.is_hanging else notes)


def _known(value: int | None) -> str:
    return "-" if value is None else str(value)


def transaction_document(listing: TransactionListing) -> dict[str, Any]:
    """Return the document of ``--json``."""
    return {
        "transactions": [
            {
                pylog.json_name(_COLUMNS.get(name, name)): value
                for name, value in asdict(each).items()
            }
            for each in listing.transactions
        ],
        "partitions": [
            {"topic": place.topic, "partition": place.partition, "transactions": counts}
            for place, counts in listing.counts.items()
        ],
        "totals": listing.totals,
        "hasCoordinators": listing.has_coordinators,
        "errors": [str(each) for each in listing.errors],
    }
