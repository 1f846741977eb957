"""The page about the metadata tables: every column, as the modules of the tables document it."""

from __future__ import annotations

import re
import sys
from typing import NamedTuple

import pyarrow as pa

from pylog.inspect.tables.metadata_table import METADATA_TABLES

PAGE = "docs/table-columns.md"

_RULE = re.compile(r"^=+( +=+)+$", re.MULTILINE)
_HEAD = """\
# Columns of the metadata tables

`make import-graph` makes this page from the schemas and the docstrings of the modules in
`pylog.inspect.tables`; `make lint` fails when it is out of date. [Tables](tables.md) says what
the tables are for and how to read them.

Timestamps have milliseconds and the time zone UTC. In Spark the columns have the corresponding
types: `bigint` for `int64`, `int` for `int32`, `timestamp`, `string`, `boolean`, `array`, `struct`.

"""
_INDEX_STATE = """
An index state is a struct of `state` (`missing`, `empty`, `ok` or `damaged`), `entries` (how many,
null where that is not known) and `reason` (what is wrong with a damaged one).
"""
_SHARED = {"topic": "name of the topic", "partition": "number of the partition"}


class TableText(NamedTuple):
    """What the docstring of a table's module says.

    Attributes
    ----------
    summary
        The first sentence.
    meanings
        What each column means, by its name; topic and partition, which all tables have, are not
        among them.
    notes
        The paragraphs after the columns.
    """

    summary: str
    meanings: dict[str, str]
    notes: str


def table_page() -> str:
    """Return the page: a section for each table, in the order of `METADATA_TABLES`."""
    links = "".join(f"- [`{each.name}`](#{each.name})\n" for each in METADATA_TABLES)
    return _HEAD + links + "".join(_section(each.name, each.schema) for each in METADATA_TABLES)


def table_text(name: str) -> TableText:
    """Return the parts of the docstring of the module that defines a table."""
    text = sys.modules[f"pylog.inspect.tables.{name}_table"].__doc__ or ""
    rules = list(_RULE.finditer(text))
    heads, rows = text[: rules[0].start()], text[rules[1].end() : rules[2].start()]
    columns = [match.start() for match in re.finditer("=+", rules[0].group())]
    meanings: dict[str, str] = {}
    name_of_row = ""
    for row in rows.strip("\n").splitlines():
        name_of_row = row[: columns[1]].strip() or name_of_row
        before = meanings.get(name_of_row, "")
        meanings[name_of_row] = f"{before} {row[columns[2] :].strip()}".strip()
    summary = " ".join(heads.split("``: ", 1)[1].split())
    return TableText(summary[0].upper() + summary[1:], meanings, text[rules[2].end() :].strip())


def _section(name: str, schema: pa.Schema) -> str:
    text = table_text(name)
    meanings = {**_SHARED, **text.meanings}
    rows = "".join(
        f"| `{column.name}` | {_type_name(column.type)} | {_markdown(meanings[column.name])} |\n"
        for column in schema
    )
    table = f"| column | type | meaning |\n|---|---|---|\n{rows}"
    note = _INDEX_STATE if any(pa.types.is_struct(column.type) for column in schema) else ""
    notes = f"\n{_markdown(text.notes)}\n" if text.notes else ""
    return f"\n## {name}\n\n{_markdown(text.summary)}\n\n{table}{note}{notes}"


def _type_name(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return "timestamp"
    if pa.types.is_struct(kind):
        return "index state"
    if pa.types.is_list(kind):
        return f"list of {_type_name(kind.value_type)}"
    return str(kind)


def _markdown(text: str) -> str:
    return text.replace("``", "`").replace("|", "\\|").replace("`IndexState`", "below")
