r"""Records as text: key, tab, value, one record a line.

Keys and values are read as UTF-8. A missing (null) key or value is ``\N``, as in the text files of
databases, an empty one is empty. Bytes that are not UTF-8 are ``\x..``; control characters, and
those that change the direction of text, are ``\t``, ``\n``, ``\r``, ``\x..`` or ``\u....``; a
backslash is doubled. So a line is always one record, a tab always stands between key and value, and
nothing is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.cli.rendering.printable import printable

if TYPE_CHECKING:
    import pyarrow as pa

TEXT_COLUMNS = ("key", "value")
"""The columns that a batch must have to be formatted here."""

_NULL = r"\N"


def text_lines(batch: pa.RecordBatch) -> bytes:
    """Return a line for each record of ``batch``."""
    keys = map(_text, batch.column("key").to_pylist())
    values = map(_text, batch.column("value").to_pylist())
    return "".join(f"{key}\t{value}\n" for key, value in zip(keys, values, strict=True)).encode()


def _text(value: bytes | None) -> str:
    if value is None:
        return _NULL
    text = value.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")
    return text if text.isprintable() else printable(text)
