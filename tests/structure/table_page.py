"""The page about the metadata tables: every column, as the tables declare it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.tables.tables import METADATA_TABLES

if TYPE_CHECKING:
    from pylog.tables.metadata_table import MetadataTable

PAGE = "docs/table-columns.md"

_HEAD = """\
# Columns of the metadata tables

[Tables about logs](sql.md#tables-about-logs) says what
the tables are for and how to read them.

Timestamps have milliseconds and the time zone UTC. In Spark the columns have the corresponding
types: `bigint` for `int64`, `int` for `int32`, `timestamp`, `string`, `boolean`, `array`, `struct`.

"""
_INDEX_STATE = """
An index state is a struct of `state` (`missing`, `empty`, `ok` or `damaged`), `entries` (how many,
null where that is not known) and `reason` (what is wrong with a damaged one).
"""


def table_page() -> str:
    """Return the page: a section for each table, in the order of `METADATA_TABLES`."""
    links = "".join(f"- [`{each.name}`](#{each.name})\n" for each in METADATA_TABLES)
    return _HEAD + links + "".join(map(_section, METADATA_TABLES))


def _section(table: MetadataTable) -> str:
    text = table.text
    assert text is not None
    rows = "".join(
        f"| `{name}` | {_type_name(kind)} | {_markdown(meaning)} |\n"
        for name, kind, meaning in text.columns
    )
    columns = f"| column | type | meaning |\n|---|---|---|\n{rows}"
    note = _INDEX_STATE if any(kind == "index_state" for _, kind, _ in text.columns) else ""
    notes = f"\n{_markdown(text.notes)}\n" if text.notes else ""
    return f"\n## {table.name}\n\n{_markdown(text.summary)}\n\n{columns}{note}{notes}"


def _type_name(kind: str) -> str:
    return kind.replace("list<", "list of ").rstrip(">").replace("_", " ")


def _markdown(text: str) -> str:
    return text.replace("``", "`").replace("|", "\\|")
