"""The metadata tables: each declares its columns and makes its rows; `tables.tables` lists them.

Their names are here: whoever checks a name needs no Arrow.
"""

from __future__ import annotations

import difflib
from typing import Literal, get_args

TableName = Literal[
    "partitions",
    "segments",
    "batches",
    "index_entries",
    "transactions",
    "producers",
    "leader_epochs",
    "cleaning",
    "findings",
    "latest",
    "schemas",
    "mm2_checkpoints",
    "mm2_offset_syncs",
    "mm2_heartbeats",
    "connect_offsets",
    "connect_configs",
    "connect_status",
]
TABLE_NAMES: tuple[TableName, ...] = get_args(TableName)
"""What `pylog.read_table` and Spark's option ``table`` take."""

_ALL = ", ".join(TABLE_NAMES)


def unknown_table(name: str) -> str:
    """Return what to say of a table that does not exist: the nearest name, and all names."""
    if name.lower() == "records":
        return f"records are not a table, pylog.scan reads them. The tables are: {_ALL}"
    near = difflib.get_close_matches(name.lower(), TABLE_NAMES, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return f"no table {name!r}{hint} The tables are: {_ALL}"
