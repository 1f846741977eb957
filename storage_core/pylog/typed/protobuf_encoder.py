"""Values to Protobuf messages, as one schema has them; the other way than `protobuf_reader`.

Values are JSON as `pylog cat` prints it, or Python's own objects. A field that is left out is
absent, null is that only where a reader gives null back, and a name that the message does not have
is an error. Fields without presence are left out where they have their default, as Protobuf's own
writers do it.

Source: protobuf.dev, "Encoding", "ProtoJSON Format".
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import json
import math
import re
import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pylog.kernels import protobuf_values as kernel
from pylog.typed.encoder import UnencodableError
from pylog.typed.exact_texts import instant_of, unscaled
from pylog.typed.kernel_runs import UnreadablePayloadError
from pylog.typed.protobuf_reader import read_protobuf
from pylog.typed.protobuf_types import DECIMAL, DURATION, JSON, MAP, TIMESTAMP, WRAPPER
from pylog.typed.protobuf_wire import DELIMITED, FIXED32, FIXED64, VARINT, sized, varint

if TYPE_CHECKING:
    from pylog.typed.protobuf_types import ProtoNode

_NANOS = 10**9
_SECONDS = re.compile(r"(-?)([0-9]{1,12})(?:\.([0-9]{1,9}))?s")
_NO_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_ZIGZAG = {kernel.SINT32, kernel.SINT64}
_EXCERPT = 40


class ProtobufEncoder:
    """Encodes messages, each behind the indexes that say which message of the schema it is."""

    def __init__(self, root: ProtoNode, indexes: bytes, *, is_json: bool) -> None:
        self._root, self._is_json = root, is_json
        self.indexes = indexes

    def encode(self, value: object) -> bytes:
        """Return a message in binary; `UnencodableError` if it does not follow the schema."""
        payload = self._message(self._root, value)
        try:
            read_protobuf(payload, self._root)
        except UnreadablePayloadError as error:
            raise UnencodableError(str(error)) from None
        return payload

    def _message(self, node: ProtoNode, value: Any) -> bytes:  # noqa: ANN401 - checked here
        if not isinstance(value, Mapping):
            raise _refusal(value, "an object")
        names = {child.name for child in node.children}
        for name in value:
            if name not in names:
                raise UnencodableError("the message has no such field", f".{name}")
        chosen: dict[str, str] = {}
        parts = []
        for child in node.children:
            if value.get(child.name) is not None and child.oneof:
                other = chosen.setdefault(child.oneof, child.name)
                if other != child.name:
                    raise UnencodableError(
                        f"of oneof {child.oneof} there is {other}, too", f".{child.name}"
                    )
            try:
                parts.append(self._field(child, value))
            except UnencodableError as error:
                raise error.within(f".{child.name}") from None
        return b"".join(parts)

    def _field(self, node: ProtoNode, message: Mapping[str, Any]) -> bytes:
        value = message.get(node.name)
        if value is None:
            if node.is_required:
                raise UnencodableError("it is missing, and required")
            if node.name in message and node.is_present:
                raise UnencodableError("it cannot be null: leave it out for its default")
            return b""
        if node.kind == kernel.LIST:
            return self._entries(node, value) if node.shape == MAP else self._list(node, value)
        content = self._value(node, value)
        can_be_left_out = node.is_implicit and node.default is not None and not node.oneof
        if can_be_left_out and content == self._value(node, node.default):
            return b""
        return _tagged(node, content)

    def _list(self, node: ProtoNode, value: Any) -> bytes:  # noqa: ANN401 - checked here
        if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
            raise _refusal(value, "an array")
        (element,) = node.children
        contents = []
        for place, each in enumerate(value):
            try:
                contents.append(self._value(element, each))
            except UnencodableError as error:
                raise error.within(f"[{place}]") from None
        if element.wire == DELIMITED:
            return b"".join(_tagged(element, each) for each in contents)
        packed = b"".join(contents)
        return varint(node.number << 3 | DELIMITED) + sized(packed) if packed else b""

    def _entries(self, node: ProtoNode, value: Any) -> bytes:  # noqa: ANN401 - checked here
        if not isinstance(value, Mapping):
            raise _refusal(value, "an object")
        (entry,) = node.children
        key, item = entry.children
        parts = []
        for name, each in value.items():
            try:
                made = _tagged(key, self._value(key, _key(key, name)))
                made += _tagged(item, self._value(item, each))
            except UnencodableError as error:
                raise error.within(f".{name}") from None
            parts.append(varint(node.number << 3 | DELIMITED) + sized(made))
        return b"".join(parts)

    def _value(self, node: ProtoNode, value: Any) -> bytes:  # noqa: ANN401 - checked here
        """Return a value without its field's number and length."""
        if node.shape == WRAPPER:
            (inner,) = node.children
            return self._field(inner, {inner.name: value})
        if node.shape in {TIMESTAMP, DURATION}:
            return _time(node, value)
        if node.shape == JSON:
            return self._json(node, value)
        if node.shape == DECIMAL:
            return _decimal(node, value)
        if node.kind == kernel.STRUCT:
            return self._message(node, value)
        if node.kind == kernel.BYTES:
            return self._bytes(value)
        return _scalar(node, value)

    def _bytes(self, value: object) -> bytes:
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        if not self._is_json or not isinstance(value, str):
            raise _refusal(value, "bytes")
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise _refusal(value, "base64") from None

    def _json(self, node: ProtoNode, value: object) -> bytes:
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                raise _refusal(value, "JSON as text") from None
        return _json_message(node.message.rpartition(".")[2], value)


def indexes_of(path: Sequence[int]) -> bytes:
    """Return the place of a message in its file as Confluent's serializers write it."""
    if tuple(path) == (0,):
        return b"\0"
    return b"".join(varint(each << 1) for each in (len(path), *path))


def _refusal(value: object, expected: str) -> UnencodableError:
    text = str(value) if isinstance(value, Decimal) else repr(value)
    text = "null" if value is None else text
    shown = text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"
    return UnencodableError(f"{shown} is not {expected}")


def _tagged(node: ProtoNode, content: bytes) -> bytes:
    tag = varint(node.number << 3 | node.wire)
    return tag + (sized(content) if node.wire == DELIMITED else content)


def _key(node: ProtoNode, name: object) -> object:
    """Return a map's key, which is text in JSON."""
    if not isinstance(name, str) or node.kind == kernel.STRING:
        return name
    if node.kind == kernel.BOOL:
        return {"true": True, "false": False}.get(name, name)
    try:
        return int(name)
    except ValueError:
        return name


def _scalar(node: ProtoNode, value: Any) -> bytes:  # noqa: ANN401 - checked here
    kind = str(node.type)
    if node.kind == kernel.STRING:
        return _text(value)
    if node.enum is not None:
        return varint(_number_of(node, value))
    if node.kind == kernel.BOOL:
        if not isinstance(value, bool):
            raise _refusal(value, kind)
        return varint(int(value))
    if pa.types.is_floating(node.type):
        return _float(node, value)
    width: int = node.type.bit_width
    low = 0 if pa.types.is_unsigned_integer(node.type) else -(1 << (width - 1))
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if not is_number or not low <= value < low + (1 << width):
        raise _refusal(value, kind)
    number: int = value
    if node.wire == VARINT:
        return varint((number << 1) ^ (number >> 63) if node.kind in _ZIGZAG else number)
    return (number & ((1 << width) - 1)).to_bytes(width // 8, "little")


def _text(value: object) -> bytes:
    if not isinstance(value, str):
        raise _refusal(value, "text")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise UnencodableError("half of a surrogate pair is no character") from None


def _number_of(node: ProtoNode, value: object) -> int:
    """Return an enum's number: of its name, or of digits where the enum is open."""
    assert node.enum is not None  # noqa: S101 - of an enum
    for number, name in node.enum.names.items():
        if name == value:
            return number
    try:
        number = int(str(value))
    except ValueError:
        number = 1 << 31
    if isinstance(value, bool) or not -(1 << 31) <= number < 1 << 31:
        raise _refusal(value, f"a name of the enum: {', '.join(node.enum.names.values())}")
    return number


def _float(node: ProtoNode, value: Any) -> bytes:  # noqa: ANN401 - checked here
    if isinstance(value, str):
        value = _NO_NUMBERS.get(value, value)
    form = {FIXED64: "<d", FIXED32: "<f"}[node.wire]
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        try:
            content = struct.pack(form, value)
            (stored,) = struct.unpack(form, content)
        except (OverflowError, struct.error):
            raise _refusal(value, str(node.type)) from None
        if math.isinf(stored) == math.isinf(value):
            return content
    raise _refusal(value, str(node.type))


def _time(node: ProtoNode, value: Any) -> bytes:  # noqa: ANN401 - checked here
    number: int | None = None
    if node.shape == TIMESTAMP:
        text = value.isoformat() if isinstance(value, dt.datetime) else value
        number = instant_of(text, 9, is_zoned=True) if isinstance(text, str) else None
    elif isinstance(value, dt.timedelta):
        number = (value // dt.timedelta(microseconds=1)) * 1000
    elif isinstance(value, str) and (match := _SECONDS.fullmatch(value)):
        number = int(match[2]) * _NANOS + int((match[3] or "").ljust(9, "0"))
        number = -number if match[1] else number
    if number is None:
        sample = "2026-11-30T09:15:00Z" if node.shape == TIMESTAMP else "1.5s"
        raise _refusal(value, f"a time such as {sample}")
    seconds, nanos = divmod(number, _NANOS)
    if node.shape == DURATION and number < 0 and nanos:
        seconds, nanos = seconds + 1, nanos - _NANOS
    parts = ((1, seconds), (2, nanos))
    return b"".join(varint(field << 3) + varint(each) for field, each in parts if each)


def _decimal(node: ProtoNode, value: Any) -> bytes:  # noqa: ANN401 - checked here
    """Return a ``confluent.type.Decimal``: bytes, precision, scale."""
    if isinstance(value, str):
        try:
            value = Decimal(value)
        except ArithmeticError:
            raise _refusal(value, "a decimal") from None
    if not isinstance(value, (int, Decimal)) or isinstance(value, bool):
        raise _refusal(value, "a decimal")
    number = Decimal(value)
    if not number.is_finite():
        raise _refusal(value, "a decimal")
    kind = node.type
    is_fixed = pa.types.is_decimal(kind)
    scale = kind.scale if is_fixed else max(-int(number.as_tuple().exponent), 0)
    precision = kind.precision if is_fixed else max(len(number.as_tuple().digits), scale, 1)
    whole = unscaled(str(number), scale, precision if is_fixed else 1000)
    if whole is None:
        raise _refusal(value, str(kind))
    bits = (whole if whole >= 0 else ~whole).bit_length()
    made = b"\x0a" + sized(whole.to_bytes(bits // 8 + 1, "big", signed=True))
    made += b"\x10" + varint(precision)
    return made + (b"\x18" + varint(scale) if scale else b"")


def _json_message(kind: str, value: object) -> bytes:
    """Return a ``Struct``, a ``ListValue`` or a ``Value``."""
    if kind == "Struct":
        if not isinstance(value, Mapping):
            raise _refusal(value, "an object")
        entries = (
            b"\x0a" + sized(_text(name)) + b"\x12" + sized(_json_message("Value", each))
            for name, each in value.items()
        )
        return b"".join(b"\x0a" + sized(each) for each in entries)
    if kind == "ListValue":
        if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
            raise _refusal(value, "an array")
        return b"".join(b"\x0a" + sized(_json_message("Value", each)) for each in value)
    if value is None:
        return b"\x08\0"
    if isinstance(value, bool):
        return b"\x20" + varint(int(value))
    if isinstance(value, (int, float, Decimal)):
        number = float(value)
        if isinstance(value, int) and int(number) != value:
            raise _refusal(value, "double")
        return b"\x11" + struct.pack("<d", number)
    if isinstance(value, str):
        return b"\x1a" + sized(_text(value))
    is_struct = isinstance(value, Mapping)
    content = _json_message("Struct" if is_struct else "ListValue", value)
    return (b"\x2a" if is_struct else b"\x32") + sized(content)
