"""Values of options: booleans, counts, sizes, durations, names, and JSON of partitions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark_pylog.json_options import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping

_SIZE = re.compile(r"([0-9]{1,18})\s*(|b|k|kb|m|mb|g|gb|t|tb)", re.IGNORECASE)
_SIZE_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_DURATION = re.compile(
    r"([0-9]{1,15})\s*(ms|milliseconds?|s|seconds?|m|min|minutes?|h|hours?|d|days?)", re.IGNORECASE
)
_DURATION_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_COUNT = re.compile(r"[0-9]{1,18}")


def boolean(lower: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Return the value of a boolean option."""
    text = lower.get(name.lower())
    if text is None:
        return default
    if text.strip().lower() in ("true", "false"):
        return text.strip().lower() == "true"
    msg = f"option {name} is {text!r}, expected true or false"
    raise ValueError(msg)


def count(lower: Mapping[str, str], name: str) -> int | None:
    """Return the value of an option that is a number above 0; None if it is not given."""
    text = lower.get(name.lower())
    if text is None:
        return None
    if _COUNT.fullmatch(text.strip()) and int(text) > 0:
        return int(text)
    msg = f"option {name} is {text!r}, expected a number of 1 or more"
    raise ValueError(msg)


def size_bytes(lower: Mapping[str, str], name: str, default: int) -> int:
    """Return the value of an option that is a size, as Spark writes them: ``128m``."""
    text = lower.get(name.lower())
    if text is None:
        return default
    match = _SIZE.fullmatch(text.strip())
    size = int(match[1]) * _SIZE_UNITS[match[2].lower()[:1]] if match else 0
    if size < 1:
        msg = f"option {name} is {text!r}, expected a size like 128m or 1g"
        raise ValueError(msg)
    return size


def milliseconds(lower: Mapping[str, str], name: str) -> int | None:
    """Return the value of an option that is a duration, ``90 seconds``; None if it is not given."""
    text = lower.get(name.lower())
    if text is None:
        return None
    match = _DURATION.fullmatch(text.strip())
    if not match:
        msg = f"option {name} is {text!r}, expected a duration like 500ms, 90 seconds or 2h"
        raise ValueError(msg)
    unit = match[2].lower()
    if unit.startswith("min"):
        return int(match[1]) * 60_000
    return int(match[1]) * _DURATION_UNITS["ms" if unit.startswith(("ms", "mil")) else unit[0]]


def one_of(lower: Mapping[str, str], name: str, known: tuple[str, ...]) -> str:
    """Return the value of an option that is one of some words; the first if it is not given."""
    text = lower.get(name.lower())
    if text is None:
        return known[0]
    for word in known:
        if text.strip().lower() == word.lower():
            return word
    msg = f"option {name} is {text!r}, expected {', '.join(known[:-1])} or {known[-1]}"
    raise ValueError(msg)


def names(text: str | None, option: str) -> tuple[str, ...] | None:
    """Return names that are separated by commas; None if the option is not given."""
    if text is None:
        return None
    listed = tuple(name.strip() for name in text.split(",") if name.strip())
    if not listed:
        msg = f"option {option} is {text!r}, expected names separated by commas"
        raise ValueError(msg)
    return listed


def assignment(text: str | None) -> dict[str, tuple[int, ...]] | None:
    """Return partitions by topic, from JSON like ``{"topicA":[0,1]}``; None if it is not given."""
    if text is None:
        return None
    example = '{"topicA":[0,1],"topicB":[2]}'
    parsed = parse_json(text, "assign", example)
    sound = isinstance(parsed, dict) and all(
        isinstance(numbers, list) and all(type(number) is int for number in numbers)
        for numbers in parsed.values()
    )
    if not sound or not parsed:
        msg = f"option assign is {text!r}, expected JSON like {example}"
        raise ValueError(msg)
    return {topic: tuple(numbers) for topic, numbers in parsed.items()}


def pattern(text: str | None) -> str | None:
    """Return a regular expression that Python can compile; None if it is not given."""
    if text is None:
        return None
    text = text.strip()
    if not text:
        msg = "option subscribePattern is empty, expected a regular expression"
        raise ValueError(msg)
    try:
        re.compile(text)
    except re.error as error:
        msg = (
            f"option subscribePattern is {text!r}, which is not a regular expression of Python: "
            f"{error}"
        )
        raise ValueError(msg) from error
    return text
