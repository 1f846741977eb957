r"""Records as text: key, tab, value, one record a line.

Keys and values are read as UTF-8. A missing (null) key or value is ``\N``, as in the text files of
databases, an empty one is empty. Bytes that are not UTF-8 are ``\x..``; control characters, and
those that change the direction of text, are ``\t``, ``\n``, ``\r``, ``\x..`` or ``\u....``; a
backslash is doubled. So a line is always one record, a tab always stands between key and value, and
nothing is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

from pylog.cli.rendering.escaped_column import escaped_column
from pylog.cli.rendering.printable import printable
from pylog.cli.rendering.text_column import joined, whole_text

if TYPE_CHECKING:
    import pyarrow as pa

TEXT_COLUMNS = ("key", "value")
"""The columns that a batch must have to be formatted here."""

_NULL = r"\N"


def text_lines(batch: pa.RecordBatch) -> memoryview:
    """Return a line for each record of ``batch``."""
    keys, values = _text(batch.column("key")), _text(batch.column("value"))
    return whole_text(joined(keys, "\t", values, "\n", null=_NULL))


def _text(column: pa.Array) -> pa.Array:
    return escaped_column(column, _text_of_printable, _text_of_value)


def _text_of_printable(column: pa.Array) -> pa.Array:
    return pc.replace_substring(column, "\\", r"\\")


def _text_of_value(value: bytes) -> bytes:
    text = value.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")
    return (text if text.isprintable() else printable(text)).encode()
