"""Records as an event pipeline has them: JSON text, skewed ids, clocks that jitter.

Everything comes from one fixed seed, so every run and every machine reads the same bytes
(compressed bytes may differ between versions of a codec library; their content never does).
"""

import random
from collections.abc import Iterator
from typing import NamedTuple

BASE_TIMESTAMP_MS = 1_748_736_000_000  # 2025-06-01T00:00:00Z; record i is stamped base + i + jitter
JITTER_MS = 40
KEY_BYTES = 8

_SEED = 20250601
_EVENTS = ("page_view", "click", "search", "add_to_cart", "login", "purchase", "scroll", "logout")
_CONSONANTS = "bcdfghklmnprstvw"
_VOWELS = "aeiou"
_TEXT_BYTES = 1 << 20


class Event(NamedTuple):
    """One record's content; ``timestamp_ms`` is CreateTime."""

    key: bytes
    value: bytes
    timestamp_ms: int


def _skewed(rng: random.Random, below: int) -> int:
    """Return small numbers far more often than large ones, as user and item ids are."""
    return int(below * rng.random() ** 3)


def _word(rng: random.Random) -> str:
    length = rng.randint(3, 9)
    return "".join(rng.choice(_VOWELS if i % 2 else _CONSONANTS) for i in range(length))


def _text(rng: random.Random) -> str:
    """Return a megabyte of words, common ones common; values quote slices of it."""
    words = [_word(rng) for _ in range(600)]
    parts: list[str] = []
    size = 0
    while size < _TEXT_BYTES:
        word = words[_skewed(rng, len(words))]
        parts.append(word)
        size += len(word) + 1
    return " ".join(parts)


def events(value_bytes: int, count: int) -> Iterator[Event]:
    """Yield `count` events whose values are exactly `value_bytes` long, always the same ones."""
    rng = random.Random(_SEED + value_bytes)
    text = _text(rng)
    last_start = len(text) - value_bytes
    uniform = rng.random
    for i in range(count):
        user = int(10_000_000 * uniform() ** 3)
        timestamp_ms = BASE_TIMESTAMP_MS + i + int(JITTER_MS * uniform())
        head = (
            f'{{"ev":"{_EVENTS[int(8 * uniform() ** 3)]}","uid":{user},'
            f'"item":{int(100_000 * uniform() ** 3)},"ms":{int(3000 * uniform() ** 3)},"msg":"'
        )
        start = int(last_start * uniform())
        message = text[start : start + value_bytes - len(head) - 2]
        yield Event(b"u%07d" % user, f'{head}{message}"}}'.encode(), timestamp_ms)
