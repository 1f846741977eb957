"""What Java makes of malformed UTF-8: ``new String(bytes, StandardCharsets.UTF_8)``, recorded.

Written by OpenJDK 17.0.15, for each of the inputs below:
``new String(input, UTF_8).getBytes(UTF_8)``. Kafka's Java client decodes header keys in this way
(``Utils.utf8``).
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ANSWERS = (
    ("61", "a"),
    ("d0 ba d0 bb", "\u043a\u043b"),
    ("ff", "\ufffd"),
    ("ff fe", "\ufffd\ufffd"),
    ("80", "\ufffd"),
    ("bf 80", "\ufffd\ufffd"),
    ("c0 80", "\ufffd\ufffd"),
    ("c1 bf", "\ufffd\ufffd"),
    ("c2", "\ufffd"),
    ("c2 41", "\ufffdA"),
    ("c2 c2 a9", "\ufffd\xa9"),
    ("df bf", "\u07ff"),
    ("e0 80 80", "\ufffd\ufffd\ufffd"),
    ("e0 9f bf", "\ufffd\ufffd\ufffd"),
    ("e0 a0", "\ufffd"),
    ("e0 a0 80", "\u0800"),
    ("e2 82", "\ufffd"),
    ("e2 82 41", "\ufffdA"),
    ("e2 28 a1", "\ufffd(\ufffd"),
    ("e2 82 e2 82 ac", "\ufffd\u20ac"),
    ("ed 9f bf", "\ud7ff"),
    ("ed a0", "\ufffd"),
    ("ed a0 41", "\ufffdA"),
    ("ed a0 80", "\ufffd"),
    ("ed bf bf", "\ufffd"),
    ("ed a0 80 ed b0 80", "\ufffd\ufffd"),
    ("ed a0 ed a0", "\ufffd\ufffd"),
    ("61 ed a0", "a\ufffd"),
    ("ed", "\ufffd"),
    ("ee 80 80", "\ue000"),
    ("ef bf", "\ufffd"),
    ("ef bf bf", "\uffff"),
    ("f0 80 80 80", "\ufffd\ufffd\ufffd\ufffd"),
    ("f0 8f bf bf", "\ufffd\ufffd\ufffd\ufffd"),
    ("f0 90", "\ufffd"),
    ("f0 90 80", "\ufffd"),
    ("f0 90 80 80", "\U00010000"),
    ("f0 9f 98", "\ufffd"),
    ("f0 9f 98 41", "\ufffdA"),
    ("f0 9f 41 80", "\ufffdA\ufffd"),
    ("f0 9f 98 80", "\U0001f600"),
    ("f0 28 8c bc", "\ufffd(\ufffd\ufffd"),
    ("f4 8f bf bf", "\U0010ffff"),
    ("f4 90 80 80", "\ufffd\ufffd\ufffd\ufffd"),
    ("f5 80 80 80", "\ufffd\ufffd\ufffd\ufffd"),
    ("f7 bf bf bf", "\ufffd\ufffd\ufffd\ufffd"),
    ("f8 88 80 80 80", "\ufffd\ufffd\ufffd\ufffd\ufffd"),
    ("fc 84 80 80 80 80", "\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd"),
    ("fe fe ff ff", "\ufffd\ufffd\ufffd\ufffd"),
    ("61 f0 9f 62", "a\ufffdb"),
    ("61 80 62 e2 82 63 ff", "a\ufffdb\ufffdc\ufffd"),
    ("f1 80 e1 80 c2", "\ufffd\ufffd\ufffd"),
    ("00 c0 00", "\x00\ufffd\x00"),
)
"""Bytes in hexadecimal, and the text."""

_EDGES = bytes.fromhex(
    "00 41 7f 80 8f 90 9f a0 bf c0 c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5 f8 ff"
)
_LEADS = bytes.fromhex("c2 df e0 e1 ed ef f0 f1 f4 f5")


def all_short_inputs() -> Iterator[bytes]:
    """Yield every sequence of 1 and 2 bytes, and those of 3 and 4 where a rule could turn."""
    for length in (1, 2):
        yield from map(bytes, product(range(256), repeat=length))
    yield from map(bytes, product(_EDGES, repeat=3))
    yield from map(bytes, product(_LEADS, _EDGES, _EDGES, _EDGES))


SHORT_INPUTS = 259_128
SHORT_INPUTS_SHA256 = "ece5c227dd4277f0fc058b6a874bd8fa85649bdc196c58f7220b540af4035f32"
"""SHA-256 of Java's answers to all of them, each in UTF-8 and ended by a byte 0xFF."""
