"""Kernel: JSON lines to columns, where they have the common form; the first other line ends it.

The common form is what ``pylog cat --format jsonl`` prints of records without headers, with keys of
the object in any order and any of them left out but ``value``: no blanks, no key twice, numbers
without sign or exponent (but ``-1`` for no timestamp, or its type), strings of ASCII, without
escapes but for those of one character in text, as of JSON in JSON. Neighbouring lines name the same
topic and partition, or none. The rules of all lines, and what an error says, are in
`pylog.writing.record_line`; a line is taken here only if its record is the one that is read there.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pylog.kernels import helper, kernel

# What the object's keys are told apart by: bits of what has been seen.
SEEN_TOPIC = 1
SEEN_PARTITION = 2
SEEN_OFFSET = 4
SEEN_TIMESTAMP = 8
SEEN_TIMESTAMP_TYPE = 16
SEEN_LEADER_EPOCH = 32
SEEN_VALUES = 64
SEEN_KEY = 128
SEEN_VALUE = 256
SEEN_HEADERS = 512

# The output ``run``: what the lines have in common, and how much was written.
RUN_TOPIC_START = 0
RUN_TOPIC_END = 1
"""Where the topic's name lies in the first line; both -1 if it names none."""
RUN_PARTITION = 2
"""-1 if it names none."""
RUN_KEY_BYTES = 3
RUN_VALUE_BYTES = 4
RUN_FIELDS = 5

NONE = -1
NULL_TIMESTAMP = -2
"""In ``timestamps``, of a line without one; -1 is what a line may say."""

_QUOTE = 0x22
_COMMA = 0x2C
_MINUS = 0x2D
_ZERO = 0x30
_NINE = 0x39
_COLON = 0x3A
_BACKSLASH = 0x5C
_OPEN_LIST = 0x5B
_CLOSE_LIST = 0x5D
_OPEN = 0x7B
_CLOSE = 0x7D
_PAD = 0x3D
_MOST_DIGITS = 18
_MAX_INT32 = (1 << 31) - 1

_NOT_BASE64 = 64
_BAD = -1
_IS_NULL = -2


def _names() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the names of keys one after the other, and where each ends, in the order of bits."""
    names = (
        *("topic", "partition", "offset", "timestamp", "timestampType"),
        *("leaderEpoch", "values", "key", "value", "headers"),
    )
    ends = np.cumsum([0, *map(len, names)]).astype(np.int64)
    return np.frombuffer("".join(names).encode(), dtype=np.uint8).copy(), ends


def _base64_values() -> npt.NDArray[np.uint8]:
    alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    values = np.full(256, _NOT_BASE64, dtype=np.uint8)
    for value, character in enumerate(alphabet):
        values[character] = value
    return values


def _escaped_values() -> npt.NDArray[np.uint8]:
    """Return what each character stands for after a backslash; 0: nothing of one character."""
    values = np.zeros(256, dtype=np.uint8)
    for character, value in zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True):
        values[character] = value
    return values


_NAMES, _NAME_ENDS = _names()
_ESCAPED = _escaped_values()
_TEXT = np.frombuffer(b"text", dtype=np.uint8).copy()
_BASE64 = np.frombuffer(b"base64", dtype=np.uint8).copy()
_VALUES = _base64_values()


@helper
def _key_at(buf: npt.NDArray[np.uint8], start: int, end: int) -> int:
    """Return the bit of the key whose name lies between two places, 0 if there is none."""
    for number in range(_NAME_ENDS.size - 1):
        first = _NAME_ENDS[number]
        length = _NAME_ENDS[number + 1] - first
        if length == end - start:
            is_same = True
            for i in range(length):
                if buf[start + i] != _NAMES[first + i]:
                    is_same = False
                    break
            if is_same:
                return 1 << number
    return 0


@helper
def _string_end(buf: npt.NDArray[np.uint8], at: int, end: int) -> int:
    """Return where the string ends that begins at ``at``, after its quote; -1 if uncommon."""
    while at < end:
        byte = np.int64(buf[at])
        if byte == _QUOTE:
            return at
        if byte < 0x20 or byte > 0x7E or byte == _BACKSLASH:
            return _BAD
        at += 1
    return _BAD


@helper
def _unescape(
    buf: npt.NDArray[np.uint8], at: int, end: int, out: npt.NDArray[np.uint8], to: int
) -> tuple[int, int]:
    """Write the bytes of text; return where its quote is, -1 if uncommon, and their end."""
    while at < end:
        byte = np.int64(buf[at])
        if byte == _QUOTE:
            return np.int64(at), np.int64(to)
        if byte < 0x20 or byte > 0x7E:
            break
        if byte == _BACKSLASH:
            at += 1
            byte = np.int64(_ESCAPED[buf[at]]) if at < end else np.int64(0)
            if byte == 0:
                break
        out[to] = byte
        to += 1
        at += 1
    return np.int64(_BAD), np.int64(to)


@helper
def _is_null(buf: npt.NDArray[np.uint8], at: int, end: int) -> bool:
    return (
        at + 4 <= end
        and buf[at] == 0x6E
        and buf[at + 1] == 0x75
        and buf[at + 2] == 0x6C
        and buf[at + 3] == 0x6C
    )


@helper
def _number(buf: npt.NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """Return a number without sign, and where it ends; -2 for null; an end of -1: neither."""
    if _is_null(buf, at, end):
        return np.int64(_IS_NULL), at + 4
    start = at
    value = np.int64(0)
    while at < end and _ZERO <= np.int64(buf[at]) <= _NINE and at - start < _MOST_DIGITS:
        value = value * 10 + (np.int64(buf[at]) - _ZERO)
        at += 1
    if at == start or (buf[start] == _ZERO and at - start > 1):
        return np.int64(0), np.int64(_BAD)
    return value, np.int64(at)


@helper
def _decode_base64(
    buf: npt.NDArray[np.uint8], at: int, end: int, out: npt.NDArray[np.uint8], to: int
) -> tuple[int, int]:
    """Write the bytes of base64 text; return where its quote is, and where the bytes end."""
    while at + 4 <= end:
        a = np.int64(_VALUES[buf[at]])
        b = np.int64(_VALUES[buf[at + 1]])
        c = np.int64(_VALUES[buf[at + 2]])
        d = np.int64(_VALUES[buf[at + 3]])
        if (a | b | c | d) & _NOT_BASE64:
            break
        word = a << 18 | b << 12 | c << 6 | d
        out[to] = word >> 16
        out[to + 1] = word >> 8 & 0xFF
        out[to + 2] = word & 0xFF
        to += 3
        at += 4
    if at < end and buf[at] == _QUOTE:
        return np.int64(at), np.int64(to)
    if at + 5 > end or buf[at + 3] != _PAD or buf[at + 4] != _QUOTE:
        return np.int64(_BAD), np.int64(to)
    has_third = buf[at + 2] != _PAD
    a = np.int64(_VALUES[buf[at]])
    b = np.int64(_VALUES[buf[at + 1]])
    c = np.int64(_VALUES[buf[at + 2]]) if has_third else np.int64(0)
    if (a | b | c) & _NOT_BASE64:
        return np.int64(_BAD), np.int64(to)
    word = a << 18 | b << 12 | c << 6
    out[to] = word >> 16
    to += 1
    if has_third:
        out[to] = word >> 8 & 0xFF
        to += 1
    return np.int64(at + 4), np.int64(to)


@helper
def _bytes(
    buf: npt.NDArray[np.uint8],
    at: int,
    end: int,
    is_text: bool,  # noqa: FBT001 - kernels take no keywords
    out: npt.NDArray[np.uint8],
    to: int,
) -> tuple[int, int]:
    """Write a key or a value; return where its text ends, -1 if uncommon, and its bytes' end."""
    if _is_null(buf, at, end):
        return np.int64(at + 4), np.int64(_IS_NULL)
    if at >= end or buf[at] != _QUOTE:
        return np.int64(_BAD), np.int64(to)
    if is_text:
        closing, to = _unescape(buf, at + 1, end, out, to)
    else:
        closing, to = _decode_base64(buf, at + 1, end, out, to)
    return np.int64(closing + 1 if closing >= 0 else _BAD), np.int64(to)


@helper
def _is_word(buf: npt.NDArray[np.uint8], start: int, end: int, word: npt.NDArray[np.uint8]) -> bool:
    if end - start != word.size:
        return False
    for i in range(word.size):  # noqa: SIM110 - Numba compiles no generators
        if buf[start + i] != word[i]:
            return False
    return True


@helper
def _is_same(buf: npt.NDArray[np.uint8], first: int, last: int, start: int, end: int) -> bool:
    if last - first != end - start:
        return False
    for i in range(end - start):  # noqa: SIM110 - Numba compiles no generators
        if buf[first + i] != buf[start + i]:
            return False
    return True


@kernel(
    writes=(
        *("timestamps", "key_ends", "key_data", "has_key"),
        *("value_ends", "value_data", "has_value", "run"),
    )
)
def parse_lines(
    buf: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    is_text: bool,  # noqa: FBT001 - kernels take no keywords
    timestamps: npt.NDArray[np.int64],
    key_ends: npt.NDArray[np.int32],
    key_data: npt.NDArray[np.uint8],
    has_key: npt.NDArray[np.uint8],
    value_ends: npt.NDArray[np.int32],
    value_data: npt.NDArray[np.uint8],
    has_value: npt.NDArray[np.uint8],
    run: npt.NDArray[np.int64],
) -> int:
    """Parse lines as long as they are of the common form, and return how many."""
    key_ends[0] = 0
    value_ends[0] = 0
    run[RUN_TOPIC_START] = NONE
    run[RUN_TOPIC_END] = NONE
    run[RUN_PARTITION] = NONE
    key_to = np.int64(0)
    value_to = np.int64(0)
    row = 0
    while row < starts.size - 1:
        at = starts[row]
        end = starts[row + 1] - 1  # where the line feed is
        if end - at < 2 or buf[at] != _OPEN:
            break
        seen = 0
        line_is_text = is_text
        topic_start = np.int64(NONE)
        topic_end = np.int64(NONE)
        partition = np.int64(NONE)
        timestamp = np.int64(NULL_TIMESTAMP)
        key_end = key_to
        value_end = value_to
        row_has_key = 0
        row_has_value = 0
        place = np.int64(at + 1)
        is_common = False
        while place < end and buf[place] == _QUOTE:
            name_end = _string_end(buf, place + 1, end)
            if name_end < 0 or name_end + 1 >= end or buf[name_end + 1] != _COLON:
                break
            field = _key_at(buf, place + 1, name_end)
            if field == 0 or seen & field:
                break
            seen |= field
            place = np.int64(name_end + 2)
            if field == SEEN_KEY:
                place, written = _bytes(buf, place, end, line_is_text, key_data, key_to)
                if written != _IS_NULL:
                    key_end = written
                    row_has_key = 1
            elif field == SEEN_VALUE:
                place, written = _bytes(buf, place, end, line_is_text, value_data, value_to)
                if written != _IS_NULL:
                    value_end = written
                    row_has_value = 1
            elif field == SEEN_TOPIC:
                if buf[place] != _QUOTE:
                    break
                topic_start = np.int64(place + 1)
                topic_end = np.int64(_string_end(buf, topic_start, end))
                if topic_end <= topic_start:
                    break
                place = topic_end + 1
            elif field == SEEN_HEADERS:
                if place + 2 > end or buf[place] != _OPEN_LIST or buf[place + 1] != _CLOSE_LIST:
                    break
                place += 2
            elif field == SEEN_VALUES:
                if buf[place] != _QUOTE or seen & (SEEN_KEY | SEEN_VALUE):
                    break
                start = np.int64(place + 1)
                place = np.int64(_string_end(buf, start, end))
                line_is_text = _is_word(buf, start, place, _TEXT)
                if place < 0 or not (line_is_text or _is_word(buf, start, place, _BASE64)):
                    break
                place += 1
            elif buf[place] == _MINUS:
                if not field & (SEEN_TIMESTAMP | SEEN_TIMESTAMP_TYPE):
                    break
                if place + 2 > end or buf[place + 1] != _ZERO + 1:
                    break
                if field == SEEN_TIMESTAMP:
                    timestamp = np.int64(-1)
                place += 2
            else:
                number, place = _number(buf, place, end)
                if place >= 0 and number != _IS_NULL:
                    if field == SEEN_TIMESTAMP:
                        timestamp = number
                    elif field == SEEN_PARTITION:
                        if number > _MAX_INT32:
                            break
                        partition = number
            if place < 0 or place >= end:
                break
            if buf[place] == _CLOSE:
                is_common = place + 1 == end
                break
            if buf[place] != _COMMA:
                break
            place += 1
        if not is_common or not seen & SEEN_VALUE:
            break
        if row == 0:
            run[RUN_TOPIC_START] = topic_start
            run[RUN_TOPIC_END] = topic_end
            run[RUN_PARTITION] = partition
        elif partition != run[RUN_PARTITION] or not _is_same(
            buf, run[RUN_TOPIC_START], run[RUN_TOPIC_END], topic_start, topic_end
        ):
            break
        timestamps[row] = timestamp
        has_key[row] = row_has_key
        has_value[row] = row_has_value
        key_to = key_end
        value_to = value_end
        row += 1
        key_ends[row] = key_to
        value_ends[row] = value_to
    run[RUN_KEY_BYTES] = key_to
    run[RUN_VALUE_BYTES] = value_to
    return row
