"""JSON text as Kafka's tools print messages: what `read_message` returns, without blanks.

Bytes are base64 with padding, ids 22 characters of base64url, and characters that are not ASCII
stand for themselves.

Source: JsonConverterGenerator, ObjectNode.toString (Jackson 2.21), Double.toString (OpenJDK 21).
"""

from __future__ import annotations

import base64
import math
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pylog.files.partition_metadata import format_uuid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    JsonValue = (
        None
        | bool
        | int
        | float
        | str
        | bytes
        | uuid.UUID
        | Sequence["JsonValue"]
        | Mapping[str, "JsonValue"]
    )


_ESCAPES = {code: f"\\u{code:04X}" for code in range(0x20)} | {
    ord('"'): '\\"',
    ord("\\"): "\\\\",
    0x08: "\\b",
    0x09: "\\t",
    0x0A: "\\n",
    0x0C: "\\f",
    0x0D: "\\r",
}


def json_text(value: JsonValue) -> str:
    """Return ``value`` as Jackson prints it."""
    return _TEXTS[type(value)](value)


def _object(fields: Mapping[str, JsonValue]) -> str:
    texts = (f"{_quoted(name)}:{json_text(value)}" for name, value in fields.items())
    return f"{{{','.join(texts)}}}"


def _array(values: Sequence[JsonValue]) -> str:
    return f"[{','.join(map(json_text, values))}]"


def _quoted(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


def _double(value: float) -> str:
    """Return Java's text of a double: shortest digits, an exponent from 10^7 and below 10^-3."""
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    shortest = repr(value)
    # Java looks for two digits where one would do.
    nearest = f"{value:.1e}"
    if float(nearest) == value:
        shortest = nearest
    sign, digits, exponent = Decimal(shortest).normalize().as_tuple()
    text = "".join(map(str, digits))
    point = len(text) + int(exponent)
    prefix = "-" if sign else ""
    if value == 0:
        return f"{prefix}0.0"
    if -3 < point <= 7:
        whole = text[:point].ljust(point, "0") if point > 0 else "0"
        rest = text[point:] if point > 0 else "0" * -point + text
        return f"{prefix}{whole}.{rest or '0'}"
    return f"{prefix}{text[0]}.{text[1:] or '0'}E{point - 1}"


_TEXTS: Mapping[type, Callable[[Any], str]] = {
    type(None): lambda _: "null",
    bool: lambda value: "true" if value else "false",
    int: str,
    float: _double,
    str: _quoted,
    bytes: lambda value: f'"{base64.b64encode(value).decode()}"',
    uuid.UUID: lambda value: f'"{format_uuid(value)}"',
    list: _array,
    dict: _object,
}
