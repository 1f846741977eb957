"""Types of option values: each reads an option's text, or raises what was expected instead.

An error starts with a verb, "is '5x', expected a number": the caller puts the option before it.
"""

from __future__ import annotations

import base64
import datetime as dt
import difflib
import json
import re
from typing import TYPE_CHECKING, Any

from pylog import EARLIEST, LATEST, IsolationLevel, RecordFilter, Timestamp, TopicPartition
from pyspark_pylog.stream_offset import OURS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_SIZE = re.compile(r"([0-9]{1,18})\s*(|b|k|kb|m|mb|g|gb|t|tb)", re.IGNORECASE)
_SIZE_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_DURATION = re.compile(
    r"([0-9]{1,15})\s*(ms|milliseconds?|s|seconds?|m|min|minutes?|h|hours?|d|days?)", re.IGNORECASE
)
_DURATION_UNITS = {"m": 60_000, "s": 1_000, "h": 3_600_000, "d": 86_400_000}
_COUNT = re.compile(r"[0-9]{1,18}")
_SIGNED = re.compile(r"[+-]?[0-9]{1,9}")
_DIGITS = re.compile(r"[0-9]{1,19}")
_OFFSET_WORDS = {EARLIEST: -2, LATEST: -1}
_END_OF_INT64 = 1 << 63


def nearest_name_hint(name: str, known: Iterable[str]) -> str:
    """Return the end of the sentence about an unknown name: the nearest known one, or a stop."""
    by_lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    return f"; did you mean {by_lower[near[0]]!r}?" if near else "."


def _expected(text: object, what: str) -> ValueError:
    return ValueError(f"is {text!r}, expected {what}")


def boolean(text: str) -> bool:
    """Read ``true`` or ``false``, in any case."""
    return one_of("true", "false")(text) == "true"


def one_of(*known: str) -> Callable[[str], str]:
    """Return a reader of one of some words, in any case."""

    def word(text: str) -> str:
        for each in known:
            if text.strip().lower() == each.lower():
                return each
        raise _expected(text, " or ".join(filter(None, (", ".join(known[:-1]), known[-1]))))

    return word


def isolation_level(text: str) -> IsolationLevel:
    """Read ``read_uncommitted`` or ``read_committed``."""
    return IsolationLevel.parse(one_of("read_uncommitted", "read_committed")(text))


def count(text: str) -> int:
    """Read a count: 1 or more."""
    if _COUNT.fullmatch(text.strip()) and int(text) > 0:
        return int(text)
    raise _expected(text, "a number of 1 or more")


def version(text: str) -> int | str:
    """Read a version of a subject: a number, ``latest`` or ``union``."""
    word = text.strip().lower()
    if word in ("latest", "union"):
        return word
    if _COUNT.fullmatch(word) and int(word) > 0:
        return int(word)
    raise _expected(text, "a number of 1 or more, latest or union")


def number(text: str) -> int:
    """Read a number with or without a sign."""
    if _SIGNED.fullmatch(text.strip()):
        return int(text)
    raise _expected(text, "a number")


def size(text: str) -> int:
    """Read a number of bytes, as Spark writes it: ``128m``."""
    match = _SIZE.fullmatch(text.strip())
    found = int(match[1]) * _SIZE_UNITS[match[2].lower()[:1]] if match else 0
    if found:
        return found
    raise _expected(text, "a size like 128m or 1g")


def duration(text: str) -> int:
    """Read ``500ms`` or ``90 seconds`` as milliseconds."""
    match = _DURATION.fullmatch(text.strip())
    if not match:
        raise _expected(text, "a duration like 500ms, 90 seconds or 2h")
    unit = match[2].lower()
    return int(match[1]) * (1 if unit.startswith(("ms", "mil")) else _DURATION_UNITS[unit[0]])


def some_text(text: str) -> str:
    """Read text that is not blank."""
    if text.strip():
        return text.strip()
    raise ValueError("is empty")


def names(text: str) -> tuple[str, ...]:
    """Read names separated by commas."""
    listed = tuple(name.strip() for name in text.split(",") if name.strip())
    if listed:
        return listed
    raise _expected(text, "names separated by commas")


def pattern(text: str) -> str:
    """Read a regular expression of Python."""
    if not text.strip():
        raise ValueError("is empty, expected a regular expression")
    try:
        re.compile(text.strip())
    except re.error as error:
        msg = f"is {text.strip()!r}, which is not a regular expression in Python: {error}"
        raise ValueError(msg) from error
    return text.strip()


def parse_json(text: str, example: str, *, is_secret: bool = False) -> Any:  # noqa: ANN401 - JSON
    """Read JSON; refuse a key that is named twice, where Python keeps the last."""
    try:
        return json.loads(text, object_pairs_hook=_object_without_repetition)
    except (ValueError, RecursionError) as error:
        given = "not JSON" if is_secret else repr(text)
        raise ValueError(f"is {given}, expected JSON like {example}: {error}") from error


def _object_without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for place, (name, _) in enumerate(pairs):
        if name in dict(pairs[:place]):
            raise ValueError(f"{name!r} is named twice")
    return dict(pairs)


def locations(text: str) -> list[str]:
    """Read a JSON list of paths; errors do not repeat it, since it may hold passwords."""
    listed = parse_json(text, '["/a","/b"]', is_secret=True)
    if isinstance(listed, list) and all(isinstance(each, str) for each in listed):
        return listed
    raise ValueError("is expected to be a JSON list of strings")


def assignment(text: str) -> dict[str, tuple[int, ...]]:
    """Read partitions by topic, ``{"topicA":[0,1]}``."""
    example = '{"topicA":[0,1],"topicB":[2]}'
    parsed = parse_json(text, example)
    if (
        parsed
        and isinstance(parsed, dict)
        and all(isinstance(each, list) for each in parsed.values())
        and all(type(each) is int for numbers in parsed.values() for each in numbers)
    ):
        return {topic: tuple(numbers) for topic, numbers in parsed.items()}
    raise _expected(text, f"JSON like {example}")


def offsets(text: str) -> Any:  # noqa: ANN401 - a word or by partition
    """Read ``earliest``, ``latest``, or offsets by partition or by topic."""
    word = text.strip().lower()
    if word in _OFFSET_WORDS:
        return word
    return _by_partition(text, '{"topicA":{"0":23,"1":42}}', _offset)


def _offset(value: object) -> int:
    if isinstance(value, str):
        value = _OFFSET_WORDS.get(value.strip().lower(), value)
    if type(value) is int and -2 <= value < _END_OF_INT64:
        return value
    raise ValueError(f"holds {value!r}, expected an offset, -2 (earliest) or -1 (latest)")


def ensure_without(refused: str, given: Any) -> None:  # noqa: ANN401 - what `offsets` returns
    """Raise `ValueError` if offsets hold the end where nothing would be read."""
    value = _OFFSET_WORDS[refused]
    if given == refused or (isinstance(given, dict) and value in given.values()):
        allowed = EARLIEST if refused == LATEST else LATEST
        msg = f"holds {refused} ({value}), and nothing would be read; give {allowed}, offsets, or"
        raise ValueError(msg)


def timestamps(text: str) -> Mapping[Any, int]:
    """Read milliseconds since 1970 by partition or by topic."""
    return _by_partition(text, '{"topicA":{"0":1700000000000},"topicB":1700000000000}', timestamp)


def timestamp(value: object) -> int:
    """Read milliseconds since 1970; the error about a date says how many those are."""
    text = value.strip() if isinstance(value, str) else str(value) if type(value) is int else ""
    if _DIGITS.fullmatch(text) and int(text) < _END_OF_INT64:
        return int(text)
    msg = f"holds {value!r}, expected milliseconds since 1970 (0 or more){_in_milliseconds(text)}"
    raise ValueError(msg)


def _in_milliseconds(text: str) -> str:
    try:
        instant = dt.datetime.fromisoformat(text)
        is_utc = instant.tzinfo is None
        found = Timestamp.of(instant.replace(tzinfo=dt.UTC) if is_utc else instant)
    except (ValueError, OverflowError):
        return ""
    return f"; {text}{' in UTC' if is_utc else ''} is {found.milliseconds}"


def _by_partition(text: str, example: str, convert: Callable[[object], int]) -> dict[Any, int]:
    parsed = parse_json(text, example)
    if not isinstance(parsed, dict):
        raise _expected(text, f"JSON like {example}")
    found: dict[Any, int] = {}
    parsed.pop(OURS, None)  # of the offsets in a query's progress, which may be given as they are
    for topic, of_topic in parsed.items():
        if not isinstance(of_topic, dict):
            found[topic] = convert(of_topic)
            continue
        for partition, value in of_topic.items():
            if not _DIGITS.fullmatch(partition):
                raise ValueError(f"names partition {partition!r} of topic {topic!r}: not a number")
            each = TopicPartition(topic, int(partition))
            if each in found:
                raise ValueError(f"names partition {int(partition)} of topic {topic!r} twice")
            found[each] = convert(value)
    return found


_FILTER_SETS = {"topics": str, "partitions": int, "keys": str}
_FILTER_NUMBERS = ("min_offset", "max_offset", "min_timestamp", "max_timestamp")


def record_filter(text: str) -> RecordFilter:
    """Read what `format_record_filter` makes."""
    try:
        stored = json.loads(text)
        kinds = {**dict.fromkeys(_FILTER_NUMBERS, int), **_FILTER_SETS}
        for name in stored.keys() & kinds:
            is_set = name in _FILTER_SETS
            _check_types([stored[name]], list if is_set else int)
            if is_set:
                _check_types(stored[name], kinds[name])
                decode = _key if name == "keys" else kinds[name]
                stored[name] = frozenset(map(decode, stored[name]))
    except (ValueError, AttributeError, TypeError) as error:
        raise _expected(text, "what pyspark_pylog.table makes") from error
    if unknown := stored.keys() - kinds:
        raise ValueError(f"has unknown fields {', '.join(sorted(unknown))}")
    return RecordFilter(**stored)


def _key(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _check_types(given: Iterable[object], kind: type) -> None:
    for each in given:
        if type(each) is not kind:  # True is not a number
            raise ValueError(f"{each!r} is not of type {kind.__name__}")


def format_record_filter(where: RecordFilter) -> str:
    """Return a filter as an option of the read that `pyspark_pylog.table` makes: JSON."""
    fields: dict[str, object] = {name: getattr(where, name) for name in _FILTER_NUMBERS}
    for name in _FILTER_SETS:
        values = getattr(where, name)
        if name == "keys" and values is not None:
            values = [base64.b64encode(key).decode() for key in values]
        fields[name] = None if values is None else sorted(values)
    return json.dumps({name: value for name, value in fields.items() if value is not None})
