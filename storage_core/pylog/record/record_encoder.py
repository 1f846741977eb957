"""Encode one record of format v2; `pylog.record.record` has its layout.

Source: DefaultRecord.writeTo, sizeInBytes, sizeOfBodyInBytes (Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.record.varint import encode_varint, encode_varlong, size_of_varint, size_of_varlong

if TYPE_CHECKING:
    from collections.abc import Sequence


Bytes = bytes | bytearray | memoryview
HeaderPair = tuple[str, bytes | None]

_ATTRIBUTES = b"\x00"
_NULL_LENGTH = encode_varint(-1)
_NULL_SIZE = len(_NULL_LENGTH)


def encode_record(
    timestamp_delta: int,
    offset_delta: int,
    key: Bytes | None,
    value: Bytes | None,
    headers: Sequence[HeaderPair] = (),
) -> bytes:
    """Return the record, its length in front."""
    parts: list[Bytes] = [_ATTRIBUTES, encode_varlong(timestamp_delta), encode_varint(offset_delta)]
    _add_bytes(parts, key)
    _add_bytes(parts, value)
    parts.append(encode_varint(len(headers)))
    for name, content in headers:
        _add_bytes(parts, _header_key_bytes(name))
        _add_bytes(parts, content)
    body = b"".join(parts)
    return encode_varint(len(body)) + body


def _add_bytes(parts: list[Bytes], data: Bytes | None) -> None:
    if data is None:
        parts.append(_NULL_LENGTH)
        return
    parts.append(encode_varint(len(data)))
    parts.append(data)


def _header_key_bytes(name: str | None) -> bytes:
    if name is None:
        msg = "a header key must not be null"
        raise ValueError(msg)
    return name.encode()


def _size_of_bytes(data: Bytes | None) -> int:
    return _NULL_SIZE if data is None else size_of_varint(len(data)) + len(data)


def size_of_record(
    timestamp_delta: int,
    offset_delta: int,
    key: Bytes | None,
    value: Bytes | None,
    headers: Sequence[HeaderPair] = (),
) -> int:
    """Return how many bytes `encode_record` gives, without encoding."""
    body = len(_ATTRIBUTES) + size_of_varlong(timestamp_delta) + size_of_varint(offset_delta)
    body += _size_of_bytes(key) + _size_of_bytes(value) + size_of_varint(len(headers))
    for name, content in headers:
        body += _size_of_bytes(_header_key_bytes(name)) + _size_of_bytes(content)
    return size_of_varint(body) + body
