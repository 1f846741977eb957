"""One Protobuf message to one value, in plain Python: what the kernel's result has to equal.

It reads what the kernel leaves, and says what is wrong and where. A field of another wire type than
the schema's is an error, where Protobuf's own readers pass it over and give the default: no writer
makes one by the schema.
"""

from __future__ import annotations

import json
import math
import struct
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pylog.kernels import protobuf_values as kernel
from pylog.typed.kernel_runs import UnreadablePayloadError
from pylog.typed.protobuf_types import DECIMAL, DURATION, JSON, MAP, TIMESTAMP, WRAPPER
from pylog.typed.protobuf_wire import DELIMITED, NAMES, WireError, varint_at, wire_fields

if TYPE_CHECKING:
    from pylog.typed.protobuf_types import ProtoNode

_NANOS = 10**9
_MOST_SCALE = 1000
_MOST_DEPTH = 100


def read_protobuf(payload: bytes, node: ProtoNode) -> Any:  # noqa: ANN401 - as the type says
    """Return a value that Arrow takes for the node's type.

    Raises
    ------
    UnreadablePayloadError
        Says what is wrong, and where in the value.
    """
    return _value([payload], node, "")


def _refused(path: str, reason: str) -> UnreadablePayloadError:
    return UnreadablePayloadError(f"{path.removeprefix('.')}: {reason}" if path else reason)


def _value(parts: list[Any], node: ProtoNode, path: str) -> Any:  # noqa: ANN401 - as the type says
    """Return the value of a field that came with these values on the wire: they are merged."""
    if node.kind == kernel.STRUCT:
        message = _message(_merged(parts, path), node, path)
        return _shaped(message, node, path)
    if node.kind == kernel.BYTES and node.shape:
        return read_raw(_merged(parts, path), node, path)
    return [_scalar(each, node, path) for each in parts][-1]  # what is not kept has to be right


def _merged(parts: list[bytes], path: str) -> bytes:
    """Return parts of a message as one, each of which is a message by itself."""
    try:
        return _joined(parts)
    except WireError as error:
        raise _refused(path, str(error)) from None


def _joined(parts: list[bytes]) -> bytes:
    for each in parts if len(parts) > 1 else ():
        for _ in wire_fields(each):
            pass
    return b"".join(parts)


def _message(content: bytes, node: ProtoNode, path: str) -> dict[str, Any]:
    fields = {child.number: child for child in node.children}
    seen: dict[int, list[Any]] = {}
    oneofs: dict[str, int] = {}
    try:
        for number, wire, value in wire_fields(content):
            child = fields.get(number)
            if child is None:
                continue
            values = _wire_values(child, wire, value, f"{path}.{child.name}")
            if not values and child.kind != kernel.LIST:
                continue
            if child.oneof:
                before = oneofs.get(child.oneof, number)
                if before != number and before in seen:  # not kept, and right nevertheless
                    _field(fields[before], seen.pop(before), f"{path}.{fields[before].name}")
                oneofs[child.oneof] = number
            seen.setdefault(number, []).extend(values)
    except WireError as error:
        raise _refused(path, str(error)) from None
    return {
        child.name: _field(child, seen.get(child.number), f"{path}.{child.name}")
        for child in node.children
    }


def _wire_values(child: ProtoNode, wire: int, value: int | bytes, path: str) -> list[Any]:
    """Return what lies there of a field; a closed enum passes over numbers that it has not."""
    element = child.children[0] if child.kind == kernel.LIST else child
    if wire != element.wire:
        is_packed = child.kind == kernel.LIST and wire == DELIMITED
        if not is_packed or not isinstance(value, bytes):
            raise _refused(path, f"expected {NAMES[element.wire]}, found {NAMES[wire]}")
        values = _unpacked(value, element.wire)
    else:
        values = [value]
    enum = element.enum
    if enum is not None and enum.is_closed:
        return [each for each in values if _signed(each, 32) in enum.names]
    return values


def _unpacked(content: bytes, wire: int) -> list[Any]:
    values, at = [], 0
    while at < len(content):
        if wire == 0:
            value, at = varint_at(content, at)
        else:
            width = 8 if wire == 1 else 4
            if at + width > len(content):
                raise WireError(f"packed values end within one of {width} bytes")
            value = int.from_bytes(content[at : at + width], "little")
            at += width
        values.append(value)
    return values


def _field(child: ProtoNode, values: list[Any] | None, path: str) -> Any:  # noqa: ANN401
    if child.kind == kernel.LIST:
        element = child.children[0]
        found = [
            _value([each], element, f"{path}[{place}]") for place, each in enumerate(values or ())
        ]
        if child.shape == MAP:
            return list({each["key"]: each["value"] for each in found}.items())
        return found
    if values is None:
        if child.is_required:
            raise _refused(path, "it is missing, and required")
        if child.default is None and child.is_present:  # the value of a map's entry
            return _value([b""], child, path)
        return child.default
    return _value(values, child, path)


def _scalar(value: Any, node: ProtoNode, path: str) -> Any:  # noqa: ANN401 - as the type says
    kind = node.kind
    if kind == kernel.STRING:
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise _refused(path, f"it is not UTF-8 at byte {error.start} of the string") from None
    if kind == kernel.BYTES:
        return value
    if node.enum is not None:
        number = _signed(value, 32)
        return node.enum.names.get(number, str(number))
    if pa.types.is_floating(node.type):
        return _float(value, 8 if kind == kernel.FIXED64 else 4)
    if kind == kernel.BOOL:
        return bool(value)
    if kind in {kernel.SINT32, kernel.SINT64}:
        value &= 0xFFFFFFFF if kind == kernel.SINT32 else 0xFFFFFFFFFFFFFFFF
        return (value >> 1) ^ -(value & 1)
    width = node.type.bit_width
    if pa.types.is_unsigned_integer(node.type):
        return value & ((1 << width) - 1)
    return _signed(value, width)


def _signed(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def _float(bits: int, width: int) -> float:
    value: float = struct.unpack("<d" if width == 8 else "<f", bits.to_bytes(width, "little"))[0]
    return value


def _shaped(message: dict[str, Any], node: ProtoNode, path: str) -> Any:  # noqa: ANN401
    if node.shape == WRAPPER:
        return message["value"]
    if node.shape in {TIMESTAMP, DURATION}:
        value = message["seconds"] * _NANOS + message["nanos"]
        if not are_nanoseconds(message["seconds"], message["nanos"], node.shape):
            raise _refused(
                path,
                f"{message['seconds']} s and {message['nanos']} ns, expected at most 2^63 ns and "
                "less than a second of ns",
            )
        return value
    return message


def are_nanoseconds(seconds: int, nanos: int, shape: int) -> bool:
    """Return whether an int64 holds a time, and its parts are as they should be."""
    is_sound = 0 <= nanos < _NANOS if shape == TIMESTAMP else -_NANOS < nanos < _NANOS
    if shape == DURATION and seconds * nanos < 0:
        return False
    return is_sound and -(1 << 63) < seconds * _NANOS + nanos < 1 << 63


def read_raw(content: bytes, node: ProtoNode, path: str = "") -> Any:  # noqa: ANN401 - any type
    """Return what a message is that the kernel keeps as its bytes."""
    try:
        return _raw(content, node)
    except ValueError as error:
        raise _refused(path, str(error)) from None


def _raw(content: bytes, node: ProtoNode) -> Any:  # noqa: ANN401 - as the type says
    if node.shape == JSON:
        kind = node.message.rpartition(".")[2]
        return json.dumps(_json(content, kind, 0), ensure_ascii=False, separators=(",", ":"))
    if node.shape == DECIMAL:
        return _decimal(content, node.type)
    for _ in wire_fields(content):  # a message within itself: its fields lie within it
        pass
    return content


def _json(content: bytes, kind: str, depth: int) -> Any:  # noqa: ANN401 - JSON
    if depth > _MOST_DEPTH:
        raise WireError(f"values are nested deeper than {_MOST_DEPTH}")
    if kind == "Struct":
        entries = [_entry(value) for value in _delimited(content, 1)]
        return {name: _json(value, "Value", depth + 1) for name, value in entries}
    if kind == "ListValue":
        return [_json(value, "Value", depth + 1) for value in _delimited(content, 1)]
    last: tuple[int, Any] | None = None
    for number, wire, value in wire_fields(content):
        if not 1 <= number <= 6:
            continue
        if wire != (0, 1, 2, 0, 2, 2)[number - 1]:
            raise WireError(f"field {number} of a JSON value is {NAMES[wire]}")
        merged: Any = value
        if last is not None and last[0] == number >= 5:
            merged = _joined([last[1], merged])
        elif last is not None:
            _json_value(*last, depth)  # not kept, and right nevertheless
        last = (number, merged)
    return None if last is None else _json_value(*last, depth)


def _json_value(number: int, value: Any, depth: int) -> Any:  # noqa: ANN401 - JSON
    if number == 2:
        found = _float(value, 8)
        return found if math.isfinite(found) else _infinite(found)
    if number == 3:
        return value.decode()
    if number == 4:
        return bool(value)
    if number == 1:
        return None
    return _json(value, "Struct" if number == 5 else "ListValue", depth + 1)


def _infinite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _delimited(content: bytes, number: int) -> list[bytes]:
    found = []
    for each, _, value in wire_fields(content):
        if each == number:
            if not isinstance(value, bytes):
                raise WireError(f"field {each} of a JSON value is no message")
            found.append(value)
    return found


def _entry(content: bytes) -> tuple[str, bytes]:
    names, values = _delimited(content, 1), _delimited(content, 2)
    return [each.decode() for each in names or [b""]][-1], _joined(values)


def _decimal(content: bytes, kind: pa.DataType) -> Any:  # noqa: ANN401 - as the type says
    digits, scale = b"", 0
    for number, wire, value in wire_fields(content):
        if number == 1 and isinstance(value, bytes):
            digits = value
        elif number == 3 and isinstance(value, int):
            scale = _signed(value, 32)
        elif number in {1, 3} or (number == 2 and wire):
            raise WireError(f"field {number} of a decimal is {NAMES[wire]}")
    if abs(scale) > _MOST_SCALE or len(digits) > _MOST_SCALE:
        raise WireError(f"a decimal has {len(digits)} bytes and the scale {scale}")
    unscaled = int.from_bytes(digits, "big", signed=True)
    written = Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))
    if not pa.types.is_decimal(kind):
        return f"{written:f}"
    moved = unscaled * 10 ** max(kind.scale - scale, 0)
    factor = 10 ** max(scale - kind.scale, 0)
    if moved % factor or abs(moved // factor) >= 10**kind.precision:
        raise WireError(f"{written:f} is no {kind}")
    value = moved // factor
    return Decimal((int(value < 0), tuple(map(int, str(abs(value)))), -kind.scale))
