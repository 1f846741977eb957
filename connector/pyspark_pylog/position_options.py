"""The options that tell where to start and to end.

Precedence, as in Spark's ``kafka`` source: ``startingTimestamp``, ``startingOffsetsByTimestamp``,
``startingOffsets``; the same for the end. Offset JSON is ``{"t":{"0":23,"1":-2}}`` with -2 for
earliest and -1 for latest. More than there: partitions that are not named take the default, and a
whole topic may be given one value, ``{"t":"earliest"}``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pyspark_pylog.json_options import parse_json

PartitionKey = tuple[str, int]
Position = str | int | tuple[str, int, str]
"""A word, an offset, or ("timestamp", milliseconds, what to do without such a record)."""

Positions = Position | Mapping[str | PartitionKey, Position]
"""One position for all partitions, or one a topic or partition."""

TIMESTAMP = "timestamp"
_OFFSETS_EXAMPLE = '{"topicA":{"0":23,"1":42}}'
_TIMESTAMPS_EXAMPLE = '{"topicA":{"0":1700000000000},"topicB":1700000000000}'
_WORDS = {"earliest": -2, "latest": -1}
_DIGITS = re.compile(r"[0-9]{1,19}")


def parse_starting(lower: Mapping[str, str]) -> Positions:
    """Return where to start, from options with lower-cased names; ``ValueError`` if senseless."""
    strategy = lower.get("startingoffsetsbytimestampstrategy", "error").strip().lower()
    if strategy not in ("error", "latest"):
        msg = (
            "option startingOffsetsByTimestampStrategy is "
            f"{lower['startingoffsetsbytimestampstrategy']!r}, expected error or latest"
        )
        raise ValueError(msg)
    return _parse(lower, "starting", refused="latest", default="earliest", strategy=strategy)


def parse_ending(lower: Mapping[str, str]) -> Positions:
    """Return where to end, from options with lower-cased names; ``ValueError`` if senseless."""
    return _parse(lower, "ending", refused="earliest", default="latest", strategy="latest")


def _parse(
    lower: Mapping[str, str], side: str, *, refused: str, default: str, strategy: str
) -> Positions:
    # All are parsed, so that a broken one is told even where another one has precedence.
    found: list[Positions] = []
    name = f"{side}Timestamp"
    if name.lower() in lower:
        found.append((TIMESTAMP, _milliseconds(lower[name.lower()], name), strategy))
    name = f"{side}OffsetsByTimestamp"
    if name.lower() in lower:
        found.append(
            _per_partition(
                lower[name.lower()],
                name,
                _TIMESTAMPS_EXAMPLE,
                lambda value: (TIMESTAMP, _milliseconds(value, name), strategy),
            )
        )
    offsets_name = f"{side}Offsets"
    if offsets_name.lower() in lower:
        text = lower[offsets_name.lower()]
        found.append(_offsets(text, offsets_name, refused))
    return found[0] if found else default


def _offsets(text: str, name: str, refused: str) -> Positions:
    allowed = "earliest" if refused == "latest" else "latest"
    instead = f"give {allowed}, offsets, or option {name.removesuffix('Offsets')}Timestamp"

    def offset(value: object) -> Position:
        if isinstance(value, str):
            value = _WORDS.get(value.strip().lower(), value)
        if type(value) is not int or not -2 <= value < 1 << 63:
            msg = f"option {name} holds {value!r}, expected an offset, -2 (earliest) or -1 (latest)"
            raise ValueError(msg)
        if value == _WORDS[refused]:
            msg = f"option {name} holds {refused} ({value}), and nothing would be read; {instead}"
            raise ValueError(msg)
        return value

    word = text.strip().lower()
    if word in _WORDS:
        offset(word)
        return word
    return _per_partition(text, name, _OFFSETS_EXAMPLE, offset)


def _milliseconds(value: object, name: str) -> int:
    text = value.strip() if isinstance(value, str) else str(value) if type(value) is int else ""
    milliseconds = int(text) if _DIGITS.fullmatch(text) else 1 << 63
    if milliseconds >= 1 << 63:
        msg = f"option {name} holds {value!r}, expected milliseconds since 1970 (0 or more)"
        raise ValueError(msg)
    return milliseconds


def _per_partition(
    text: str, name: str, example: str, convert: Callable[[object], Position]
) -> dict[str | PartitionKey, Position]:
    parsed = parse_json(text, name, example)
    if not isinstance(parsed, dict):
        msg = f"option {name} is {text!r}, expected JSON like {example}"
        raise ValueError(msg)  # noqa: TRY004 - of the user's text, not of the program
    positions: dict[str | PartitionKey, Position] = {}
    for topic, of_topic in parsed.items():
        if not isinstance(of_topic, dict):
            positions[topic] = convert(of_topic)
            continue
        for number, value in of_topic.items():
            if not _DIGITS.fullmatch(number):
                msg = f"option {name} names partition {number!r} of topic {topic!r}: no number"
                raise ValueError(msg)
            if (topic, int(number)) in positions:
                msg = f"option {name} names partition {int(number)} of topic {topic!r} twice"
                raise ValueError(msg)
            positions[topic, int(number)] = convert(value)
    return positions
