r"""What SQL gets beside the rows: keys and values as text and JSON, topics by name, and refusals.

DuckDB casts bytes to text of its own for a function of JSON: ``\\x22status\\x22``. That is no JSON,
and so ``value->>'$.status'`` would be null in each row, and a count of it 0. Macros of these names
refuse bytes; whether an argument is bytes is known when the query is bound.

Source: ``Blob::ToString`` in ``src/common/types/blob.cpp`` (DuckDB 2.0).
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from pylog.reading.log_view import LogView

TEXT_OF = ("key", "value")
"""Columns of bytes that have others beside them, with their text."""
BYTES_HINT = "keys and values are bytes: use key_text, value_text or value_json"
_REFUSAL = BYTES_HINT.replace("keys and values are", "this is")
_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
_FUNCTIONS = {
    "->>": ("json_extract_string", (2,)),
    "json_extract_string": ("json_extract_string", (2,)),
    "json_extract_path_text": ("json_extract_string", (2,)),
    "json_value": ("json_value", (2,)),
    "json_exists": ("json_exists", (2,)),
    "json_contains": ("json_contains", (2,)),
    "json_keys": ("json_keys", (1, 2)),
    "json_type": ("json_type", (1, 2)),
    "json_array_length": ("json_array_length", (1, 2)),
    "json_valid": ("json_valid", (1,)),
    "json_structure": ("json_structure", (1,)),
    "from_json": ("from_json", (2,)),
    "from_json_strict": ("from_json_strict", (2,)),
    "json_transform": ("json_transform", (2,)),
    "json_transform_strict": ("json_transform_strict", (2,)),
}
"""Functions of JSON, DuckDB's own function for each, and how many arguments they take.

Not ``json_extract``: DuckDB makes calls of it from ``->`` and ``value_json.status``, and takes no
macro for it.
"""


def refusals() -> Iterator[str]:
    """Yield statements that make functions of JSON refuse bytes, for one connection."""
    for name, (own, counts) in _FUNCTIONS.items():
        forms = []
        for count in counts:
            names = ", ".join(("v", "p")[:count])
            call = f"system.main.{own}({names})"
            forms.append(
                f"({names}) AS CASE WHEN typeof(v) = 'BLOB' THEN error('{_REFUSAL}') "
                f"ELSE {call} END"
            )
        yield f'CREATE OR REPLACE TEMP MACRO "{name}"{", ".join(forms)}'


def view_with_texts(name: str, source: str, schema: pa.Schema) -> str:
    """Return the statement for a view of ``source`` with the texts of its keys and values."""
    columns = ["*"]
    for each in TEXT_OF:
        if each not in schema.names or not any(of(schema.field(each).type) for of in _BYTES):
            continue
        # Null where the bytes are no UTF-8.
        columns.append(f"TRY(decode({each})) AS {each}_text")
        if each == "value":
            columns.append("TRY_CAST(TRY(decode(value)) AS JSON) AS value_json")
    selected = f"SELECT {', '.join(columns)} FROM {quoted(source)}"  # noqa: S608 - quoted
    return f"CREATE OR REPLACE TEMP VIEW {quoted(name)} AS {selected}"


def view_of_topic(topic: str, records: str) -> str:
    """Return the statement for a view of one topic's records."""
    constant = topic.replace("'", "''")
    return (
        f"CREATE TEMP VIEW IF NOT EXISTS {quoted(topic)} AS "  # noqa: S608 - quoted
        f"SELECT * FROM {records} WHERE topic = '{constant}'"
    )


def quoted(name: str) -> str:
    """Return a name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


_LITERAL = re.compile(r"'(?:[^']|'')*'")
_TEXT_TYPES = r"(?:json|varchar|text|string|char)\b"
_COLUMN = r'(?:\w+\.)?"?(?:key|value)"?'
_CAST = re.compile(
    rf"(?<![\w.\"])(?:{_COLUMN}\s*(?:::\s*{_TEXT_TYPES}|->(?!>))"
    rf"|json_extract(?:_path)?\s*\(\s*{_COLUMN}\s*,"
    rf"|(?:try_)?cast\s*\(\s*{_COLUMN}\s+as\s+{_TEXT_TYPES})",
    re.IGNORECASE,
)
_OTHER_VALUES = re.compile(r"\b(?:json_each|json_tree|unnest|map_entries)\s*\(", re.IGNORECASE)


def find_cast_of_bytes(sql: str) -> str | None:
    r"""Return where a statement casts keys or values to text, if it does.

    Such text has ``\\x22`` for a quotation mark, and no comparison finds it.
    """
    found = None if _OTHER_VALUES.search(sql) else _CAST.search(_LITERAL.sub("''", sql))
    if found is None:
        return None
    text = found[0].rstrip(", ")
    return f"{text}{')' * ('(' in text)}: {BYTES_HINT}"


_NO_COLUMN = re.compile(r'Referenced column "(\w+)" not found')
_OF_JSON = re.compile(r"argument types '[^']*\bJSON\b")
_UNKNOWN = re.compile(r"Table with name (.+?) does not exist!.*", re.DOTALL)
_MOST_NAMES = 20


def unknown_table(message: str) -> str | None:
    """Return the name of the table that is not there, if that is what DuckDB says."""
    found = _UNKNOWN.search(message)
    return None if found is None else found[1]


def with_hint(message: str, known: Collection[str]) -> str:
    """Return DuckDB's message with what was probably meant; ``known``: views by name."""
    unknown = _UNKNOWN.search(message)
    if unknown is not None:
        near = difflib.get_close_matches(unknown[1], known, n=1, cutoff=0.75)
        hint = f"; did you mean {near[0]}?" if near else ""
        names = sorted(known)
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        views = ", ".join(names[:_MOST_NAMES]) + more
        what = f"{message[: unknown.start()]}Table with name {unknown[1]} does not exist"
        return f"{what}{hint} (there are: {views})"
    if "the expression has side effects" in message:  # as error() has, of which refusals are made
        return f"{message}; write the expression itself in the place of its alias"
    if "No function matches" in message and "BLOB" in message:
        return f"{message}; {BYTES_HINT}"
    if "No function matches" in message and _OF_JSON.search(message):
        return f"{message}; cast a field of JSON first: (value_json->>'$.price')::DOUBLE"
    if "Malformed JSON" in message:
        return f"{message}; value_json is null where the bytes are no JSON: use that"
    return message


def with_field_hint(message: str, sql: str, tables: Collection[str]) -> str:
    """Return DuckDB's message; where it knows no such column, it may be a field of values."""
    column = _NO_COLUMN.search(message)
    if column is None or any(re.search(rf"(?i)\b(?:from|join)\s+{each}\b", sql) for each in tables):
        return message
    return f"{message}; a field of a JSON value is value_json->>'$.{column[1]}'"


def topics_of(partitions: Iterable[LogView]) -> list[str]:
    """Return the topics of views of logs, each once."""
    return list(dict.fromkeys(each.topic_partition.topic for each in partitions))
