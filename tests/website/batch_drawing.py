"""The drawing of a batch: its bytes as a broker wrote them, coloured by the field they belong to.

The format is read here once more, by `struct` alone.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from tests.website.svg import drawing, text_at

if TYPE_CHECKING:
    from collections.abc import Iterator

HEADER_FIELDS = (
    ("base offset", "q"),
    ("length", "i"),
    ("leader epoch", "i"),
    ("magic", "b"),
    ("CRC-32C", "I"),
    ("attributes", "h"),
    ("last offset delta", "i"),
    ("base timestamp", "q"),
    ("max timestamp", "q"),
    ("producer id", "q"),
    ("producer epoch", "h"),
    ("base sequence", "i"),
    ("records", "i"),
)
"""The 61 bytes at the beginning of a batch: names, and types as `struct` knows them."""

_COLOURS = (
    "#8dd3c7", "#fdfdb3", "#c6c2e0", "#fb9a8e", "#8fbcdb", "#fdc083", "#b9e07a",
    "#fccde5", "#d9d9d9", "#c99ccb", "#ccebc5", "#ffed8f", "#a6cee3",
)  # fmt: skip


class Field(NamedTuple):
    """Bytes of a batch that belong together."""

    name: str
    position: int
    size: int
    value: str


def header_fields(data: bytes) -> list[Field]:
    """Return the fields of the batch header with which ``data`` begins."""
    fields, position = [], 0
    for name, kind in HEADER_FIELDS:
        [value] = struct.unpack_from(f">{kind}", data, position)
        size = struct.calcsize(f">{kind}")
        shown = f"{value:#010x}" if name == "CRC-32C" else str(value)
        fields.append(Field(name, position, size, shown))
        position += size
    return fields


def record_fields(data: bytes, position: int) -> list[Field]:
    """Return the fields of the uncompressed record at a position; it has a key and a value."""
    fields: list[Field] = []

    def take(name: str, size: int | None = None) -> int:
        at = fields[-1].position + fields[-1].size if fields else position
        if size is None:
            value, size = _varint(data, at)
            fields.append(Field(name, at, size, str(value)))
            return value
        fields.append(Field(name, at, size, f"{size} byte" + "s" * (size != 1)))
        return 0

    take("length")
    take("attributes", 1)
    take("timestamp delta")
    take("offset delta")
    take("key", take("key length"))
    take("value", take("value length"))
    take("headers")
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of the varint encoding, and how many bytes it takes."""
    value = size = 0
    while True:
        byte = data[at + size]
        value |= (byte & 0x7F) << (7 * size)
        size += 1
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), size


def batch_drawing(data: bytes) -> str:
    """Return a drawing of the bytes of a batch's header and of its first record."""
    header = header_fields(data)
    end = header[-1].position + header[-1].size
    record = record_fields(data, end)
    parts = [text_at(20, 30, "The header of a batch: 61 bytes", bold=True)]
    parts += _grid(data, header, 48)
    parts += _legend(header, 208)
    parts.append(text_at(20, 340, f"The first record: from byte {end} on", bold=True))
    parts += _grid(data, record, 358)
    rows = -(-(record[-1].position + record[-1].size - end) // 16)
    parts += _legend(record, 358 + rows * 34 + 16)
    return drawing(358 + rows * 34 + 16 + 90, parts, "Bytes of a batch, coloured by field")


def _grid(data: bytes, fields: list[Field], top: int) -> Iterator[str]:
    """Yield the bytes of fields as cells, 16 in a row, with the position of each row."""
    begin, size = fields[0].position, 42
    for number, field in enumerate(fields):
        for at in range(field.position, field.position + field.size):
            row, column = divmod(at - begin, 16)
            x, y = 64 + column * size, top + row * 34
            colour = _COLOURS[number % len(_COLOURS)]
            yield f'<rect x="{x}" y="{y}" width="{size - 1}" height="32" fill="{colour}"/>'
            yield text_at(x + size / 2, y + 15, f"{data[at]:02x}", middle=True, mono=True)
            letter = chr(data[at])
            if field.name in ("key", "value") and letter.isascii() and letter.isprintable():
                yield text_at(x + size / 2, y + 28, letter, middle=True, small=True)
            if column == 0:
                yield text_at(56, y + 20, str(at), end=True, small=True)


def _legend(fields: list[Field], top: int) -> Iterator[str]:
    """Yield the names of fields with their colours and values, three in a row."""
    for number, field in enumerate(fields):
        row, column = divmod(number, 3)
        x, y = (64, 262, 522)[column], top + row * 22
        colour = _COLOURS[number % len(_COLOURS)]
        yield f'<rect x="{x}" y="{y}" width="14" height="14" fill="{colour}"/>'
        yield text_at(x + 20, y + 12, f"{field.name}: {field.value}", small=True)
