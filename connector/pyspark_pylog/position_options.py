"""The options that say where to start and to end.

Precedence, as in Spark's ``kafka`` source: ``startingTimestamp``, ``startingOffsetsByTimestamp``,
``startingOffsets``; the same for the end. Offset JSON is ``{"t":{"0":23,"1":-2}}`` with -2 for
earliest and -1 for latest. More than there: partitions that are not named take the default, and a
whole topic may be given one value, ``{"t":"earliest"}``.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING

from pylog import EARLIEST, LATEST, Timestamp, TopicPartition
from pyspark_pylog.json_options import parse_json
from pyspark_pylog.stream_offset import OURS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pylog import OffsetSpec, OffsetSpecs

_OFFSETS_EXAMPLE = '{"topicA":{"0":23,"1":42}}'
_TIMESTAMPS_EXAMPLE = '{"topicA":{"0":1700000000000},"topicB":1700000000000}'
_WORDS = {EARLIEST: -2, LATEST: -1}
_DIGITS = re.compile(r"[0-9]{1,19}")


def parse_starting(lower: Mapping[str, str], *, is_stream: bool = False) -> OffsetSpecs:
    """Return where to start, from options with lower-cased names; ``ValueError`` if senseless.

    A stream starts at the latest offsets by default; a batch read may not start there.
    """
    strategy = lower.get("startingoffsetsbytimestampstrategy", "error").strip().lower()
    if strategy not in ("error", LATEST):
        msg = (
            "option startingOffsetsByTimestampStrategy is "
            f"{lower['startingoffsetsbytimestampstrategy']!r}, expected error or latest"
        )
        raise ValueError(msg)
    if is_stream:
        return _parse(lower, "starting", refused=None, default=LATEST, strategy=strategy)
    return _parse(lower, "starting", refused=LATEST, default=EARLIEST, strategy=strategy)


def parse_ending(lower: Mapping[str, str]) -> OffsetSpecs:
    """Return where to end, from options with lower-cased names; ``ValueError`` if senseless."""
    return _parse(lower, "ending", refused=EARLIEST, default=LATEST, strategy=LATEST)


def _parse(
    lower: Mapping[str, str], side: str, *, refused: str | None, default: str, strategy: str
) -> OffsetSpecs:
    # All are parsed, so that a broken one is reported even where another one has precedence.
    given: list[OffsetSpecs] = []
    name = f"{side}Timestamp"
    if name.lower() in lower:
        given.append(Timestamp(_milliseconds(lower[name.lower()], name), strategy))
    name = f"{side}OffsetsByTimestamp"
    if name.lower() in lower:
        given.append(
            _per_partition(
                lower[name.lower()],
                name,
                _TIMESTAMPS_EXAMPLE,
                lambda value: Timestamp(_milliseconds(value, name), strategy),
            )
        )
    offsets_name = f"{side}Offsets"
    if offsets_name.lower() in lower:
        text = lower[offsets_name.lower()]
        given.append(_offsets(text, offsets_name, refused))
    return given[0] if given else default


def _offsets(text: str, name: str, refused: str | None) -> OffsetSpecs:
    allowed = EARLIEST if refused == LATEST else LATEST
    instead = f"give {allowed}, offsets, or option {name.removesuffix('Offsets')}Timestamp"

    def offset(value: object) -> OffsetSpec:
        if isinstance(value, str):
            value = _WORDS.get(value.strip().lower(), value)
        if type(value) is not int or not -2 <= value < 1 << 63:
            msg = f"option {name} holds {value!r}, expected an offset, -2 (earliest) or -1 (latest)"
            raise ValueError(msg)
        if refused is not None and value == _WORDS[refused]:
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
        msg = (
            f"option {name} holds {value!r}, expected milliseconds since 1970 (0 or more)"
            f"{_date_in_milliseconds(text)}"
        )
        raise ValueError(msg)
    return milliseconds


def _date_in_milliseconds(text: str) -> str:
    """Return what to write for an ISO date, as the end of the sentence about it; "" for others."""
    try:
        instant = dt.datetime.fromisoformat(text)
        is_utc = instant.tzinfo is None
        milliseconds = Timestamp.of(instant.replace(tzinfo=dt.UTC) if is_utc else instant)
    except (ValueError, OverflowError):
        return ""
    zone = " in UTC" if is_utc else ""
    return f"; {text}{zone} is {milliseconds.milliseconds}"


def _per_partition(
    text: str, name: str, example: str, convert: Callable[[object], OffsetSpec]
) -> OffsetSpecs:
    parsed = parse_json(text, name, example)
    if not isinstance(parsed, dict):
        msg = f"option {name} is {text!r}, expected JSON like {example}"
        raise ValueError(msg)  # noqa: TRY004 - of the user's text, not of the program
    positions: dict[TopicPartition | tuple[str, int] | str, OffsetSpec | dt.datetime] = {}
    for topic, of_topic in parsed.items():
        if topic == OURS:
            continue  # of the offsets in a query's progress, which may be given as they are
        if not isinstance(of_topic, dict):
            positions[topic] = convert(of_topic)
            continue
        for number, value in of_topic.items():
            if not _DIGITS.fullmatch(number):
                msg = f"option {name} names partition {number!r} of topic {topic!r}: not a number"
                raise ValueError(msg)
            topic_partition = TopicPartition(topic, int(number))
            if topic_partition in positions:
                msg = f"option {name} names partition {int(number)} of topic {topic!r} twice"
                raise ValueError(msg)
            positions[topic_partition] = convert(value)
    return positions
