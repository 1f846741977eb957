r"""Lines of text to records: what ``pylog cat`` prints, read back.

A JSON line is an object with the keys ``topic``, ``partition``, ``timestamp`` (ms), ``key``,
``value`` and ``headers`` (pairs of name and value), of which ``value`` must be there. ``offset``,
``timestampType`` and ``leaderEpoch`` are ignored: the log assigns them. Without ``timestamp`` a
record gets the time of writing. Where ``values`` is ``"text"``, key, value and headers' values are
text, ``{"base64": …}`` or null; where it is ``"base64"``, they are base64 or null. A line without
``values`` is read as the caller says. Where it is ``"typed"``, a schema says what bytes keys and
values are; headers, and what no schema is given for, are as with ``"text"``.

A text line is key, tab, value: ``\N`` is null, ``\t \n \r \\``, ``\x1b`` and ``\u2028`` are single
characters. The first tab separates.
"""

from __future__ import annotations

import binascii
import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from pylog.kernels import parse_lines as kernel
from pylog.model import NO_TIMESTAMP
from pylog.typed.encoder import JSON_VALUES
from pylog.writing.record_rows import ROW_SCHEMA, RecordRow, encoded_row

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from pylog.writing.column_encoder import ColumnEncoder

    _ValueParser = Callable[[str, object], bytes | None]


_KNOWN = frozenset(
    {
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
        "leaderEpoch",
        "values",
        "key",
        "value",
        "headers",
    }
)
_FORMAT_TEXT = "; if it is a key, a tab and a value, give --format text"
_MAX_INT32 = 2**31 - 1
_MAX_INT64 = 2**63 - 1
_NULL = rb"\N"
_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|([tnr\\])|)")
_NAMED = {b"t": b"\t", b"n": b"\n", b"r": b"\r", b"\\": b"\\"}


class ParsedLine(NamedTuple):
    """A record, and where the line says it belongs; None: it does not say."""

    topic: str | None
    partition: int | None
    row: RecordRow


_TYPED = "typed"


def parse_json_line(
    line: bytes, values: str = "text", encoders: Mapping[str, ColumnEncoder] | None = None
) -> ParsedLine | None:
    """Return the record of one JSON line, None if the line is blank.

    Keys and values that ``encoders`` has are JSON of any form, and so they are in lines whose
    ``values`` is ``"typed"``.
    """
    if not line.strip():
        return None
    try:
        text = line.decode()
        fields = JSON_VALUES.decode(text) if encoders else json.loads(text)
    except json.JSONDecodeError as error:
        is_text = b"\t" in line and not line.lstrip().startswith(b"{")
        hint = _FORMAT_TEXT if is_text else ""
        msg = f"not JSON: {error.msg} at column {error.colno}{hint}"
        raise ValueError(msg) from error
    except UnicodeDecodeError as error:
        msg = f"byte {error.start + 1} is not UTF-8"
        raise ValueError(msg) from error
    except RecursionError as error:
        msg = "not a record: nested too deeply"
        raise ValueError(msg) from error
    if not isinstance(fields, dict):
        msg = f"not a JSON object, but {_kind(fields)}"
        raise ValueError(msg)  # noqa: TRY004 - of the line, not of an argument
    if not fields.keys() <= _KNOWN:
        unknown = ", ".join(sorted(fields.keys() - _KNOWN))
        msg = f"unknown key {unknown}; those of a record are {', '.join(sorted(_KNOWN))}"
        raise ValueError(msg)
    if "value" not in fields:
        msg = "key value is missing (null stands for no value)"
        raise ValueError(msg)
    topic = fields.get("topic")
    if topic is not None and not isinstance(topic, str):
        msg = f"topic is {_kind(topic)}, expected text"
        raise ValueError(msg)
    parse_value = VALUE_PARSERS[_encoding(fields, values, encoders)]
    row = encoded_row(
        encoders or {},
        {name: fields.get(name) for name in ("key", "value")},
        _integer("timestamp", fields.get("timestamp"), NO_TIMESTAMP, _MAX_INT64),
        _headers(fields.get("headers"), parse_value),
        lambda content, name: parse_value(name, content),
        is_json=True,
    )
    return ParsedLine(topic, _integer("partition", fields.get("partition"), 0, _MAX_INT32), row)


def _encoding(
    fields: Mapping[str, object], values: str, encoders: Mapping[str, ColumnEncoder] | None
) -> str:
    """Return how a line has what is not encoded by a schema."""
    given = fields.get("values", _TYPED if encoders else values)
    expected = [_TYPED] if encoders else [*VALUE_PARSERS]
    if given not in expected:
        shown = json.dumps(given, default=str)[:80]
        hint = "; name the schema that encodes them, with --value-schema" if given == _TYPED else ""
        msg = f"values is {shown}, expected {' or '.join(expected)}{hint}"
        raise ValueError(msg)
    return "text" if given == _TYPED else str(given)


def _kind(value: object) -> str:
    if value is None:
        return "null"
    kinds = {dict: "an object", list: "a list", str: "text", bool: "a truth value"}
    return kinds.get(type(value), "a number")


def _integer(name: str, value: object, lowest: int, highest: int) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
        stored = value if isinstance(value, int | float) else _kind(value)
        msg = f"{name} is {stored}, expected {lowest} to {highest}"
        raise ValueError(msg)
    return value


_HINT_AT_TEXT = '; if it is text, write "values": "text" in the line, or leave --values base64 out'


def _base64(name: str, value: object, hint: str = _HINT_AT_TEXT) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, str):
        msg = f"{name} is {_kind(value)}, expected base64 or null"
        raise ValueError(msg)  # noqa: TRY004 - as above
    try:
        return binascii.a2b_base64(value, strict_mode=True)
    except ValueError as error:
        msg = f"{name} is not base64: {error}{hint}"
        raise ValueError(msg) from error


def _text(name: str, value: object) -> bytes | None:
    if isinstance(value, dict) and value.keys() == {"base64"}:
        return _base64(name, value["base64"], hint="")
    if value is None:
        return None
    if not isinstance(value, str):
        msg = f'{name} is {_kind(value)}, expected text, {{"base64": ...}} or null'
        raise ValueError(msg)  # noqa: TRY004 - as above
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        msg = f"{name} has half of a surrogate pair, which is not a character"
        raise ValueError(msg) from error


VALUE_PARSERS: dict[str, _ValueParser] = {"text": _text, "base64": _base64}
"""What makes bytes of a JSON value, by the name of how it is written."""


def _headers(
    value: Any,  # noqa: ANN401 - checked here
    parse_value: _ValueParser,
) -> tuple[tuple[str, bytes | None], ...]:
    if not value and (value is None or isinstance(value, list)):
        return ()
    if not isinstance(value, list):
        msg = f"headers are {_kind(value)}, expected a list of [name, value]"
        raise ValueError(msg)  # noqa: TRY004 - as above
    headers = []
    for pair in value:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            msg = f"a header is {json.dumps(pair)[:80]}, expected [name, value]"
            raise ValueError(msg)
        if any("\ud800" <= character <= "\udfff" for character in pair[0]):
            msg = "a header's name has half of a surrogate pair, which is not a character"
            raise ValueError(msg)
        headers.append((pair[0], parse_value("a header's value", pair[1])))
    return tuple(headers)


def parse_text_line(line: bytes) -> ParsedLine:
    """Return the record of one text line."""
    key, tab, value = line.partition(b"\t")
    if not tab:
        msg = "no tab between key and value"
        raise ValueError(msg)
    return ParsedLine(None, None, RecordRow(_unescaped(key), _unescaped(value)))


def _unescaped(text: bytes) -> bytes | None:
    if text == _NULL:
        return None
    return _ESCAPE.sub(_character, text) if b"\\" in text else text


def _character(match: re.Match[bytes]) -> bytes:
    hexadecimal, code, name = match.groups()
    if hexadecimal is not None:
        return bytes.fromhex(hexadecimal.decode())
    if name is not None:
        return _NAMED[name]
    if code is not None and not 0xD800 <= int(code, 16) <= 0xDFFF:
        return chr(int(code, 16)).encode()
    place = match.string[match.start() : match.start() + 6].decode("utf-8", "replace")
    msg = rf"backslash that begins no escape at {place!r} (a backslash itself is \\)"
    raise ValueError(msg)


LINE_PARSERS: dict[str, Callable[[bytes], ParsedLine | None]] = {
    "jsonl": parse_json_line,
    "text": parse_text_line,
}
"""What makes a record of a line, by the name of the lines' format; None of one that holds none."""


# Neighbouring JSON lines of the common form, to columns at once.
#
# What the common form is, says `pylog.kernels.parse_lines`; what lines mean, `record_line`.


_MOST_BYTES = 1 << 30
"""Of the lines that are looked at together: places in columns have 31 bits."""


class LineRun(NamedTuple):
    """Records of neighbouring lines that belong to one partition, or are to be given one each."""

    topic: str | None
    partition: int | None
    rows: pa.RecordBatch


class LineRuns:
    """Finds runs in some lines. One thread."""

    def __init__(self, lines: Sequence[bytes], *, is_text: bool) -> None:
        self._is_text = is_text
        content = b"\n".join([*lines, b""])
        self._content = np.frombuffer(content, dtype=np.uint8)
        line_feeds = np.flatnonzero(self._content == ord("\n"))
        # A line feed within a line would be a blank to JSON, and must not be an end to us.
        self._is_possible = len(content) <= _MOST_BYTES and line_feeds.size == len(lines)
        self._starts = np.concatenate([[0], line_feeds + 1])
        rows = len(lines)
        self._timestamps = np.empty(rows, dtype=np.int64)
        self._ends = [np.empty(rows + 1, dtype=np.int32) for _ in range(2)]
        self._data = [np.empty(self._content.size, dtype=np.uint8) for _ in range(2)]
        self._has = [np.empty(rows, dtype=np.uint8) for _ in range(2)]

    def run_from(self, index: int) -> LineRun | None:
        """Return the run that begins with a line; None if that line is not of the common form."""
        if not self._is_possible:
            return None
        run = np.empty(kernel.RUN_FIELDS, dtype=np.int64)
        columns = zip(self._ends, self._data, self._has, strict=True)
        count = kernel.parse_lines(
            self._content,
            self._starts[index:],
            self._is_text,
            self._timestamps,
            *(array for column in columns for array in column),
            run,
        )
        if count == 0:
            return None
        topic = None
        if run[kernel.RUN_TOPIC_START] >= 0:
            name = self._content[run[kernel.RUN_TOPIC_START] : run[kernel.RUN_TOPIC_END]]
            topic = name.tobytes().decode("ascii")
        partition = int(run[kernel.RUN_PARTITION])
        key, value = (self._column(each, count) for each in range(2))
        rows = [key, value, self._times(count), pa.nulls(count, ROW_SCHEMA.field("headers").type)]
        return LineRun(
            topic,
            None if partition == kernel.NONE else partition,
            pa.record_batch(rows, schema=ROW_SCHEMA),
        )

    def _column(self, number: int, count: int) -> pa.Array:
        ends = self._ends[number][: count + 1]
        has = self._has[number][:count]
        return pa.Array.from_buffers(
            pa.binary(),
            count,
            [
                _validity(has.view(np.bool_)),
                pa.py_buffer(ends.tobytes()),
                pa.py_buffer(self._data[number][: ends[-1]].tobytes()),
            ],
        )

    def _times(self, count: int) -> pa.Array:
        times = self._timestamps[:count]
        content = pa.py_buffer(times.tobytes())
        validity = _validity(times != kernel.NULL_TIMESTAMP)
        return pa.Array.from_buffers(pa.int64(), count, [validity, content])


def _validity(is_valid: npt.NDArray[np.bool_]) -> pa.Buffer | None:
    if is_valid.all():
        return None
    return pa.py_buffer(np.packbits(is_valid, bitorder="little").tobytes())
