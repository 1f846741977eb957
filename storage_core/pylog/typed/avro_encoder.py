"""Values to Avro's binary form, as one schema has them; the other way than `avro_decoder`.

Values are JSON as `pylog cat` prints it, or Python's own objects. Nothing is cut off or left out: a
field that the schema does not have is an error, and so is a number out of range. Only floats are
rounded, to the nearest one.

==================  ===============================================================================
int, long           an integer
float, double       a number; or ``"NaN"``, ``"Infinity"``, ``"-Infinity"``
bytes, fixed        base64, or `bytes`
enum                the symbol
record              an object; a field that it does not have takes its default
map, array          an object, an array
union               a value of one of its types; or ``{"<type>": value}`` if several take it; or
                    the members ``member0``, ``member1``, … of a column, of which one is not null
decimal             a number, or `Decimal`
date, time          ``"2026-11-30"``, ``"09:15:00.5"``, or Python's; the number that is stored
timestamp           ISO 8601 with a zone, local ones without; the same, Python's or the number
uuid                the text, or `UUID`
duration            an object: ``months``, ``days``, ``milliseconds``
==================  ===============================================================================
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
import uuid
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pylog.typed.avro_defaults import encoded_default, encoded_long
from pylog.typed.avro_schema import MISSING
from pylog.typed.encoder import UnencodableError
from pylog.typed.exact_texts import days_of, instant_of, time_of_day, unscaled

if TYPE_CHECKING:
    from collections.abc import Callable

    from pylog.typed.avro_schema import AvroField, AvroType

    _Write = Callable[[Any], bytes]

_BITS = {"int": 31, "long": 63}
_PLACES = {"millis": 3, "micros": 6, "nanos": 9}
_DAY_SECONDS = 86_400
_NO_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_DURATION = ("months", "days", "milliseconds")
_FLOATS = ("double", "float")
_EXCERPT = 40


class AvroEncoder:
    """Encodes values by a schema.

    Parameters
    ----------
    schema
        The schema.
    is_json
        Whether text stands for bytes where the schema has these; otherwise bytes are `bytes`.
    is_raw_bytes
        Whether bytes that are the whole value have no length, as in Confluent's framing.
    """

    indexes = b""

    def __init__(
        self, schema: AvroType, *, is_json: bool = True, is_raw_bytes: bool = False
    ) -> None:
        self._is_json = is_json
        self._is_raw = is_raw_bytes and schema.kind == "bytes"
        self._schema = schema
        self._write = self._writer(schema)

    def encode(self, value: object) -> bytes:
        """Return a value in binary; `UnencodableError` if it does not follow the schema."""
        if not self._is_raw:
            return self._write(value)
        is_decimal = self._schema.logical == "decimal"
        return (_digits if is_decimal else self._content)(self._schema, value)

    def _writer(self, kind: AvroType) -> _Write:
        if kind.kind == "record":
            return self._of_record(kind)
        if kind.kind in ("array", "map"):
            return self._of_items(kind)
        if kind.kind == "union":
            return self._of_union(kind)
        if kind.logical in _LOGICAL:
            stored = _LOGICAL[kind.logical]
            return lambda value: stored(kind, value)
        if kind.kind in ("bytes", "fixed"):
            return lambda value: _sized(kind, self._content(kind, value))
        plain = _PLAIN[kind.kind]
        return lambda value: plain(kind, value)

    def _of_record(self, kind: AvroType) -> _Write:
        fields = [(each.name, self._writer(each.type), _default(each)) for each in kind.fields]
        names = {each.name for each in kind.fields}

        def write(value: Any) -> bytes:  # noqa: ANN401 - any value
            if not isinstance(value, Mapping):
                raise _refusal(kind, value)
            if not value.keys() <= names:
                unknown = next(each for each in value if each not in names)
                raise UnencodableError("the schema has no such field", f".{unknown}")
            parts = []
            for name, write_field, default in fields:
                if name not in value:
                    if default is None:
                        raise UnencodableError("it is missing, and has no default", f".{name}")
                    parts.append(default)
                    continue
                try:
                    parts.append(write_field(value[name]))
                except UnencodableError as error:
                    raise error.within(f".{name}") from None
            return b"".join(parts)

        return write

    def _of_items(self, kind: AvroType) -> _Write:
        assert kind.items is not None  # noqa: S101 - of every array and map
        write_item = self._writer(kind.items)
        is_map = kind.kind == "map"

        def write(value: Any) -> bytes:  # noqa: ANN401 - any value
            is_list = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
            if not (isinstance(value, Mapping) if is_map else is_list):
                raise _refusal(kind, value)
            parts = [encoded_long(len(value))] if len(value) else []
            for place, item in value.items() if is_map else enumerate(value):
                try:
                    if is_map:
                        parts.append(_text(kind, place))
                    parts.append(write_item(item))
                except UnencodableError as error:
                    raise error.within(f".{place}" if is_map else f"[{place}]") from None
            return b"".join([*parts, b"\0"])

        return write

    def _of_union(self, kind: AvroType) -> _Write:
        writers = [
            (each, encoded_long(number), self._writer(each))
            for number, each in enumerate(kind.branches)
        ]
        null = next((prefix for each, prefix, _ in writers if each.kind == "null"), None)
        others = [each for each in writers if each[0].kind != "null"]
        members = {f"member{number}": each for number, each in enumerate(others)}

        def write(value: Any) -> bytes:  # noqa: ANN401 - any value
            if len(others) > 1 and isinstance(value, Mapping) and value.keys() == members.keys():
                present = [name for name, each in value.items() if each is not None]
                if len(present) > 1:
                    raise _refusal(kind, value)
                if present:
                    _, prefix, write_member = members[present[0]]
                    return prefix + write_member(value[present[0]])
                value = None
            if value is None:
                if null is None:
                    raise _refusal(kind, value)
                return null
            if len(others) == 1:  # whose own error says more
                return others[0][1] + others[0][2](value)
            return _chosen(kind, others, value)

        return write

    def _content(self, kind: AvroType, value: object) -> bytes:
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        if not self._is_json or not isinstance(value, str):
            raise _refusal(kind, value)
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise _refusal(kind, value, "base64") from None


def _default(field: AvroField) -> bytes | None:
    if field.default is MISSING:
        return None
    return encoded_default(field.type, field.default, field.name)


def _chosen(kind: AvroType, branches: list[tuple[AvroType, bytes, _Write]], value: Any) -> bytes:  # noqa: ANN401 - any value
    """Return the value as the one type of a union that takes it."""
    taken = _taken(branches, value)
    if isinstance(value, Mapping) and len(value) == 1:
        ((name, inner),) = value.items()
        for each, prefix, write in branches:
            if name != (each.name or each.kind):
                continue
            try:
                taken.append((each, prefix + write(inner)))
            except UnencodableError as error:
                if not taken:
                    raise error.within(f".{name}") from None
    if len(taken) > 1 and isinstance(value, (int, float, Decimal)):
        # Of types that hold a number without loss, the nearest one.
        order = ("int", "long", "float", "double") if isinstance(value, int) else _FLOATS
        if all(each.kind in order and not each.logical for each, _ in taken):
            return min(taken, key=lambda each: order.index(each[0].kind))[1]
    if len(taken) == 1:
        return taken[0][1]
    if not taken:
        raise _refusal(kind, value)
    names = [each.name or each.kind for each, _ in taken]
    choices = " or ".join(f'{{"{each}": …}}' for each in names)
    raise UnencodableError(f"{_shown(value)} may be any of {', '.join(names)}: write {choices}")


def _taken(
    branches: list[tuple[AvroType, bytes, _Write]],
    value: Any,  # noqa: ANN401 - any value
) -> list[tuple[AvroType, bytes]]:
    """Return the types of a union that take a value, with what it is as each."""
    found = []
    for each, prefix, write in branches:
        try:
            found.append((each, prefix + write(value)))
        except UnencodableError:
            continue
    return found


def _refusal(kind: AvroType, value: object, form: str = "") -> UnencodableError:
    expected = f"{form or kind.logical or kind}"
    if kind.logical == "decimal":
        expected = f"a decimal of {kind.precision} digits, {kind.scale} after the point"
    return UnencodableError(f"{_shown(value)} is not {expected}")


def _shown(value: object) -> str:
    text = "null" if value is None else repr(value)
    if isinstance(value, Decimal):
        text = str(value)
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"


def _sized(kind: AvroType, content: bytes) -> bytes:
    if kind.kind == "bytes":
        return encoded_long(len(content)) + content
    if len(content) != kind.size:
        raise UnencodableError(f"it has {len(content)} bytes, {kind} has {kind.size}")
    return content


def _null(kind: AvroType, value: object) -> bytes:
    if value is not None:
        raise _refusal(kind, value)
    return b""


def _boolean(kind: AvroType, value: object) -> bytes:
    if not isinstance(value, bool):
        raise _refusal(kind, value)
    return bytes([value])


def _integer(kind: AvroType, value: object) -> bytes:
    limit = 1 << _BITS[kind.kind]
    if not isinstance(value, int) or isinstance(value, bool) or not -limit <= value < limit:
        raise _refusal(kind, value)
    return encoded_long(value)


def _float(kind: AvroType, value: object) -> bytes:
    if isinstance(value, str) and value in _NO_NUMBERS:
        value = _NO_NUMBERS[value]
    if not isinstance(value, (int, float, Decimal)) or isinstance(value, bool):
        raise _refusal(kind, value)
    try:
        content = struct.pack("<f" if kind.kind == "float" else "<d", value)
    except (OverflowError, struct.error):
        raise _refusal(kind, value) from None
    (stored,) = struct.unpack("<f" if kind.kind == "float" else "<d", content)
    if math.isinf(stored) and not math.isinf(value):
        raise _refusal(kind, value)
    return content


def _text(kind: AvroType, value: object) -> bytes:
    if not isinstance(value, str):
        raise _refusal(kind, value, "text")
    try:
        content = value.encode()
    except UnicodeEncodeError:
        raise UnencodableError("half of a surrogate pair is no character") from None
    return encoded_long(len(content)) + content


def _enum(kind: AvroType, value: object) -> bytes:
    if value not in kind.symbols:
        raise UnencodableError(f"{_shown(value)} is no symbol of {kind}")
    return encoded_long(kind.symbols.index(str(value)))


def _decimal(kind: AvroType, value: object) -> bytes:
    return _sized(kind, _digits(kind, value))


def _digits(kind: AvroType, value: object) -> bytes:
    """Return a decimal's digits as bytes, without a length."""
    if not isinstance(value, (int, Decimal)) or isinstance(value, bool):
        raise _refusal(kind, value)
    whole = unscaled(str(value), kind.scale, kind.precision)
    if whole is None:
        raise _refusal(kind, value)
    if kind.kind == "fixed":
        return whole.to_bytes(kind.size, "big", signed=True)
    # As few bytes as hold it, as BigInteger.toByteArray of Java.
    bits = (whole if whole >= 0 else ~whole).bit_length()
    return whole.to_bytes(bits // 8 + 1, "big", signed=True)


def _date(kind: AvroType, value: object) -> bytes:
    if isinstance(value, date) and not isinstance(value, datetime):
        value = value.isoformat()
    return _integer(kind, _stored(kind, value, days_of(value) if isinstance(value, str) else None))


def _time(kind: AvroType, value: object) -> bytes:
    places = _PLACES[kind.logical.rpartition("-")[2]]
    if isinstance(value, time) and value.tzinfo is None:
        value = value.isoformat()
    found = time_of_day(value, places) if isinstance(value, str) else None
    number = _stored(kind, value, found)
    if not isinstance(number, int) or not 0 <= number < _DAY_SECONDS * 10**places:
        raise _refusal(kind, value)
    return _integer(kind, number)


def _timestamp(kind: AvroType, value: object) -> bytes:
    family, _, unit = kind.logical.rpartition("-")
    if isinstance(value, datetime):  # pandas' have nanoseconds, too
        value = value.isoformat()
    found = None
    if isinstance(value, str):
        found = instant_of(value, _PLACES[unit], is_zoned=family == "timestamp")
    return _integer(kind, _stored(kind, value, found))


def _stored(kind: AvroType, value: object, of_text: int | None) -> object:
    """Return the number that a text or an object is, or that was given as it is."""
    if isinstance(value, str):
        if of_text is None:
            raise _refusal(kind, value)
        return of_text
    return value


def _uuid(kind: AvroType, value: object) -> bytes:
    text = str(value)
    try:
        found = uuid.UUID(text)
    except ValueError:
        raise _refusal(kind, value) from None
    if str(found) != text.lower():
        raise _refusal(kind, value)
    return found.bytes if kind.kind == "fixed" else _text(kind, text)


def _duration(kind: AvroType, value: object) -> bytes:
    if not isinstance(value, Mapping) or value.keys() != set(_DURATION):
        raise _refusal(kind, value)
    try:
        return struct.pack("<3I", *(value[name] for name in _DURATION))
    except struct.error:
        raise _refusal(kind, value) from None


_PLAIN: dict[str, Callable[[AvroType, Any], bytes]] = {
    "null": _null,
    "boolean": _boolean,
    "int": _integer,
    "long": _integer,
    "float": _float,
    "double": _float,
    "string": _text,
    "enum": _enum,
}
_TIMES = ("timestamp-millis", "timestamp-micros", "timestamp-nanos")
_LOGICAL: dict[str, Callable[[AvroType, Any], bytes]] = {
    "decimal": _decimal,
    "date": _date,
    "time-millis": _time,
    "time-micros": _time,
    **dict.fromkeys((*_TIMES, *(f"local-{each}" for each in _TIMES)), _timestamp),
    "uuid": _uuid,
    "duration": _duration,
}
