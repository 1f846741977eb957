"""Values behind the prefixes and headers of registries, harmed, and what they refer to.

Written by the tables of what registries do, for payloads of schemas with three known ids.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

IDS = (1, 2, 70_000)
GUIDS = {number: str(uuid.UUID(int=(number << 90) + 12_345)) for number in IDS}
HEADER = "__value_schema_id"
ROOT = b"\x02\x04"
"""Confluent's message indexes of the third message of a file."""


class RefusedError(Exception):
    """The judge reads no value."""


@dataclass(frozen=True)
class Framed:
    """A value with the header of its record, if it has one."""

    content: bytes
    header: bytes | None = None


def harmed(content: bytes, chance: random.Random) -> bytes:
    """Return bytes with some changed, cut off, put in, repeated or appended."""
    made = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        at = chance.randrange(len(made) + 1)
        way = chance.randrange(7)
        if way == 0:
            del made[at:]
        elif way == 1:
            made[at:at] = chance.randbytes(chance.randrange(1, 9))
        elif way == 2:
            made += chance.randbytes(1)
        elif way == 3:
            made[at:at] = made[chance.randrange(len(made) + 1) : at]
        elif way == 4:
            del made[at : at + chance.randrange(1, 4)]
        elif made and way == 5:
            made[at - 1] = chance.choice((0, 1, 2, 0x7F, 0x80, 0xFF, ord('"'), ord("}")))
        elif made:
            made[at - 1] ^= 1 << chance.randrange(8)
    return bytes(made)


def harmed_text(text: str, chance: random.Random) -> str:
    """Return a text with characters changed."""
    made = list(text)
    for _ in range(chance.choice((1, 1, 2))):
        at = chance.randrange(len(made))
        if chance.random() < 0.5:
            made[at] = chance.choice('"{}[],:0129-x \\\0é')
        else:
            del made[at : at + chance.choice((1, 1, 5))]
        if not made:
            break
    return "".join(made)


def changed_json(chance: random.Random, value: Any, words: Sequence[Any]) -> Any:  # noqa: ANN401
    """Return JSON in which a few parts are others."""
    if chance.random() < 0.04:
        return chance.choice(words)
    if isinstance(value, dict):
        made = {}
        for name, each in value.items():
            if chance.random() < 0.02:
                continue
            key = chance.choice(words) if chance.random() < 0.02 else name
            made[key if isinstance(key, str) else name] = changed_json(chance, each, words)
        return made
    if isinstance(value, list):
        return [changed_json(chance, each, words) for each in value]
    return value


def framed(payload: bytes, number: int, chance: random.Random, kind: str) -> Framed:
    """Return a payload behind one of the prefixes, or with a header."""
    digits = uuid.UUID(GUIDS[number]).bytes
    indexes = ROOT if kind == "PROTOBUF" else b""
    way = chance.randrange(6)
    if way == 0:
        return Framed(b"\x01" + digits + indexes + payload)
    if way == 1:
        return Framed(payload, b"\x01" + digits + indexes)
    if way == 2:
        return Framed(payload, b"\0" + struct.pack(">i", number) + indexes)
    if way == 3 and kind != "PROTOBUF":
        return Framed(b"\0" + struct.pack(">q", number) + payload)
    if way == 4 and kind != "PROTOBUF":
        if chance.random() < 0.5:
            return Framed(b"\x03\x05" + digits + zlib.compress(payload))
        return Framed(b"\x03\0" + digits + payload)
    return Framed(b"\0" + struct.pack(">i", number) + indexes + payload)


def unframed(value: Framed) -> tuple[int, str, bytes]:
    """Return the number of the schema, whose framing it is, and what is behind the prefix."""
    content = value.content
    if value.header is not None:
        return _by_header(value.header, content)
    if content[:1] == b"\0" and len(content) >= 5:
        number = int.from_bytes(content[1:5], "big", signed=True)
        if number in IDS:
            return number, "Confluent", content[5:]
        if number == 0 and len(content) >= 9:
            return _known(int.from_bytes(content[1:9], "big", signed=True)), "Apicurio", content[9:]
    if content[:1] == b"\x01" and len(content) >= 17:
        return _by_guid(content[1:17]), "Confluent", content[17:]
    if content[:1] == b"\x03" and len(content) >= 18 and content[1] in (0, 5):
        payload = _unpacked(content[18:]) if content[1] == 5 else content[18:]
        return _by_guid(content[2:18]), "Glue", payload
    raise RefusedError


def _by_header(header: bytes, content: bytes) -> tuple[int, str, bytes]:
    if header[:1] == b"\0" and len(header) >= 5:
        number = int.from_bytes(header[1:5], "big", signed=True)
        return _known(number), "Confluent", header[5:] + content
    if header[:1] == b"\x01" and len(header) >= 17:
        return _by_guid(header[1:17]), "Confluent", header[17:] + content
    raise RefusedError


def _unpacked(payload: bytes) -> bytes:
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(payload)
    except zlib.error:
        raise RefusedError from None
    if not stream.eof or stream.unused_data:
        raise RefusedError
    return content


def _known(number: int) -> int:
    if number not in IDS:
        raise RefusedError
    return number


def _by_guid(digits: bytes) -> int:
    for number, guid in GUIDS.items():
        if uuid.UUID(guid).bytes == digits:
            return number
    raise RefusedError


def some_values(
    payloads: Sequence[tuple[int, bytes]], harmed_count: int, chance: random.Random, kind: str
) -> list[Framed]:
    """Return framed values, those that are not harmed first."""
    good = [framed(payload, number, chance, kind) for number, payload in payloads]
    made = list(good)
    for _ in range(harmed_count):
        if chance.random() < 0.6:
            number, payload = chance.choice(payloads)
            made.append(framed(harmed(payload, chance), number, chance, kind))
            continue
        value = chance.choice(good)
        if value.header is not None and chance.random() < 0.3:
            made.append(Framed(value.content, harmed(value.header, chance)))
        else:
            made.append(Framed(harmed(value.content, chance), value.header))
    return made
