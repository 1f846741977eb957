"""The names of the metadata tables, by themselves: whoever checks a name needs no Arrow."""

from __future__ import annotations

import difflib

RECORDS = "records"
"""What is read where no metadata table is asked for; not one of `TABLE_NAMES`."""

TABLE_NAMES = (
    "partitions",
    "segments",
    "batches",
    "index_entries",
    "transactions",
    "producers",
    "leader_epochs",
    "findings",
)


def unknown_table(name: str, known: tuple[str, ...] = TABLE_NAMES) -> str:
    """Return what to say of a table that does not exist: the nearest name, and all names."""
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return f"no table {name!r}{hint} The tables are: {', '.join(known)}"
