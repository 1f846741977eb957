"""Kernel: lines of text about batches, each followed by lines about its records.

What a line consists of is a table of *steps*, made by `pylog.record_lines.line_template`: a
literal, a number of the batch, the record's key as text, and so on. So one kernel writes what
``kafka-dump-log`` prints, its JSON form, the entries of an index, and records as JSON.

Text is decoded as Java decodes UTF-8; the rules are in `pylog.record.record`. Strings of JSON
have escapes for what a terminal would act upon, as `pylog.text.words` says.

Nothing is written unless the whole line fits into the output; the caller comes back with more
room, and the line is begun again.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pylog.kernels import helper, kernel
from pylog.kernels.helpers import character, copy_bytes, load_word, store_word

# A step is a row of four numbers: what to do, then up to three arguments a, b, c.
STEP_FIELDS = 4
LITERAL = 0
"""Literal a."""
NUMBER = 1
"""Column a of the batch."""
CHOICE = 2
"""Literal b + column a of the batch; nothing unless that column is in 0 .. c - 1."""
SKIP_UNLESS = 3
"""Pass over c steps unless column a of the batch is b."""
OFFSET = 4
TIMESTAMP = 5
KEY_SIZE = 6
VALUE_SIZE = 7
SEQUENCE = 8
"""Of the record; column a has the batch's base sequence, column b its base offset."""
CRC = 9
VALIDITY = 10
"""Literal a if the record's checksum is right, else literal a + 1."""
HEADER_NAMES = 11
"""In style a, with commas between them."""
KEY = 12
"""In style a."""
VALUE = 13
"""In style a."""
SKIP_BY_KEY = 14
"""Pass over c steps if the record's key is null and a is 1, or is not and a is 0."""
SKIP_BY_VALUE = 15
"""Pass over c steps if the record's value is null and a is 1, or is not and a is 0."""
DETAIL = 16
"""The record's own text."""
HEADERS = 17
"""Pairs of JSON, values in style a, with commas between them."""

STYLE_TEXT = 0
"""As Java decodes UTF-8."""
STYLE_JSON = 1
"""A JSON string or, of what is not UTF-8, an object with its base64."""
STYLE_BASE64 = 2
"""A JSON string of the base64."""
STYLE_VERBATIM = 3
"""The bytes themselves: text that was made before."""

# ``state``, which the caller keeps between calls; zeros at first.
STATE_BATCH = 0
"""The batch that is being written."""
STATE_ROW = 1
"""The next record."""
STATE_HAS_LINE = 2
"""1 if the batch's own line has been written, or is not wanted."""
STATE_NEEDED = 3
"""Bytes of output that the next line may take; 0 where all has been written."""
STATES = 4

LITERAL_PADDING = 8
NUMBER_BYTES = 20
"""The longest int64 in decimal."""
_MEASURED_BYTES = 1 << 16
"""Longer texts are measured exactly: a bound would ask for several times their memory."""
_SPARE_BYTES = 64

_HIGH_BITS = -0x7F7F7F7F7F7F7F80  # 0x80 in each byte of a word
_HIGH = np.uint64(0x8080808080808080)
_ONES = np.uint64(0x0101010101010101)
_UP_FROM_BLANK = np.uint64(0x60) * _ONES  # carries into the top bit from 0x20 on
_UP_FROM_ONE = np.uint64(0x7F) * _ONES  # carries into the top bit unless 0
_QUOTES = np.uint64(0x22) * _ONES
_BACKSLASHES = np.uint64(0x5C) * _ONES
_DELETES = np.uint64(0x7F) * _ONES

_LOWEST = -(2**63)
_EIGHT_DIGITS = 100_000_000
_DECIMAL_PAIRS = np.frombuffer("".join(f"{i:02d}" for i in range(100)).encode(), dtype="<u2")
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_SIXTY_FOUR = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_BASE64_PAIRS = np.frombuffer(
    bytes(letter for i in range(4096) for letter in (_SIXTY_FOUR[i >> 6], _SIXTY_FOUR[i & 63])),
    dtype="<u2",
)
_BASE64_START = np.frombuffer(b'{"base64":', dtype=np.uint8)
_NULL = np.frombuffer(b"null", dtype=np.uint8)
_PAIR_BYTES = 32
"""More than a header takes besides its name and its value."""


@helper
def _eight_digits(value: int) -> int:
    """Return a number below 10^8 as a word of 8 digits, the first one in the lowest byte."""
    high = value // 10_000
    low = value - high * 10_000
    high_pair = high // 100
    low_pair = low // 100
    return (
        np.int64(_DECIMAL_PAIRS[high_pair])
        | (np.int64(_DECIMAL_PAIRS[high - high_pair * 100]) << 16)
        | (np.int64(_DECIMAL_PAIRS[low_pair]) << 32)
        | (np.int64(_DECIMAL_PAIRS[low - low_pair * 100]) << 48)
    )


@helper
def _write_short(out: npt.NDArray[np.uint8], at: int, value: int) -> int:
    """Write a number from 0 to 10^8 - 1; return the position after it. 8 bytes are touched."""
    if value < 10:
        out[at] = 0x30 + value
        at += 1
        return at
    if value < 10_000:
        digits = 2 if value < 100 else (3 if value < 1_000 else 4)
    elif value < 1_000_000:
        digits = 5 if value < 100_000 else 6
    else:
        digits = 7 if value < 10_000_000 else 8
    store_word(out, at, _eight_digits(value) >> (64 - 8 * digits))
    at += digits
    return at


@helper
def _write_number(out: npt.NDArray[np.uint8], at: int, value: int) -> int:
    """Write a number in decimal; return the position after it."""
    if value < 0:
        out[at] = 0x2D
        at += 1
        if value == _LOWEST:  # its opposite is no int64
            store_word(out, at, _eight_digits(np.int64(92_233_720)))
            store_word(out, at + 8, _eight_digits(np.int64(36_854_775)))
            out[at + 16] = 0x38
            out[at + 17] = 0x30
            out[at + 18] = 0x38
            at += 19
            return at
        value = -value
    high = value // _EIGHT_DIGITS
    if high == 0:
        at = _write_short(out, at, value)
        return at  # noqa: RET504 - a helper returns Any
    if high < _EIGHT_DIGITS:
        at = _write_short(out, at, high)
    else:
        highest = high // _EIGHT_DIGITS
        at = _write_short(out, at, highest)
        store_word(out, at, _eight_digits(high - highest * _EIGHT_DIGITS))
        at += 8
    store_word(out, at, _eight_digits(value - high * _EIGHT_DIGITS))
    at += 8
    return at


@helper
def _ascii_end(buf: npt.NDArray[np.uint8], at: int, end: int) -> int:
    """Return the position of the first byte of ``[at, end)`` that is not ASCII; ``end`` if none."""
    while end - at >= 8 and (load_word(buf, at) & _HIGH_BITS) == 0:
        at += 8
    while at < end and np.int64(buf[at]) < 0x80:
        at += 1
    return at


@helper
def _plain_end(buf: npt.NDArray[np.uint8], at: int, end: int) -> int:
    """Return the position of the first byte that a JSON string has an escape for, or not ASCII."""
    while end - at >= 8:
        signed = load_word(buf, at)
        if (signed & _HIGH_BITS) != 0:
            break
        word = np.uint64(signed)
        plain = (
            (word + _UP_FROM_BLANK)
            & ((word ^ _QUOTES) + _UP_FROM_ONE)
            & ((word ^ _BACKSLASHES) + _UP_FROM_ONE)
            & ((word ^ _DELETES) + _UP_FROM_ONE)
        )
        if (plain & _HIGH) != _HIGH:
            break
        at += 8
    while at < end:
        byte = np.int64(buf[at])
        if byte < 0x20 or byte >= 0x7F or byte in (0x22, 0x5C):
            break
        at += 1
    return at


@helper
def _write_text(
    out: npt.NDArray[np.uint8], at: int, buf: npt.NDArray[np.uint8], start: int, end: int
) -> int:
    """Write ``buf[start:end]``, malformed parts replaced by U+FFFD; return the position after."""
    while start < end:
        ascii_end = _ascii_end(buf, start, end)
        copy_bytes(out, at, buf, start, ascii_end - start)
        at += ascii_end - start
        start = ascii_end
        while start < end and np.int64(buf[start]) >= 0x80:
            length, is_well_formed = character(buf, start, end)
            if is_well_formed:
                for i in range(length):
                    out[at + i] = buf[start + i]
                at += length
            else:
                out[at] = 0xEF
                out[at + 1] = 0xBF
                out[at + 2] = 0xBD
                at += 3
            start += length
    return at


@helper
def _is_well_formed(buf: npt.NDArray[np.uint8], start: int, end: int) -> bool:
    while start < end:
        start = _ascii_end(buf, start, end)
        while start < end and np.int64(buf[start]) >= 0x80:
            length, is_character = character(buf, start, end)
            if not is_character:
                return False
            start += length
    return True


@helper
def _code_point(buf: npt.NDArray[np.uint8], at: int, length: int) -> int:
    """Return the code point of the character at ``at``; 0 for one of four bytes, all harmless."""
    lead = np.int64(buf[at])
    if length == 1:
        return lead
    if length == 2:
        return ((lead & 0x1F) << 6) | (np.int64(buf[at + 1]) & 0x3F)
    if length == 3:
        middle = np.int64(buf[at + 1]) & 0x3F
        return ((lead & 0x0F) << 12) | (middle << 6) | (np.int64(buf[at + 2]) & 0x3F)
    return np.int64(0)


@helper
def _is_escaped(code: int) -> bool:
    """Whether a terminal would act upon a character from U+007F on."""
    return (
        (0x7F <= code <= 0x9F)
        or code == 0x061C
        or (0x200E <= code <= 0x200F)
        or (0x2028 <= code <= 0x202E)
        or (0x2066 <= code <= 0x2069)
    )


@helper
def _write_unicode_escape(out: npt.NDArray[np.uint8], at: int, code: int) -> int:
    out[at] = 0x5C
    out[at + 1] = 0x75
    for i in range(4):
        out[at + 2 + i] = _HEX[(code >> (12 - 4 * i)) & 0xF]
    return at + 6


@helper
def _short_escape(code: int) -> int:
    r"""Return the letter of a character's short escape, such as ``n`` of ``\n``; 0 if none."""
    if code in (0x22, 0x5C):
        return np.int64(code)
    if code == 0x08:
        return np.int64(0x62)
    if code == 0x09:
        return np.int64(0x74)
    if code == 0x0A:
        return np.int64(0x6E)
    if code == 0x0C:
        return np.int64(0x66)
    if code == 0x0D:
        return np.int64(0x72)
    return np.int64(0)


@helper
def _write_string(
    out: npt.NDArray[np.uint8], at: int, buf: npt.NDArray[np.uint8], start: int, end: int
) -> int:
    """Write well-formed UTF-8 as a JSON string; return the position after it."""
    out[at] = 0x22
    at += 1
    while start < end:
        plain_end = _plain_end(buf, start, end)
        copy_bytes(out, at, buf, start, plain_end - start)
        at += plain_end - start
        start = plain_end
        if start == end:
            break
        length, _ = character(buf, start, end)
        code = _code_point(buf, start, length)
        letter = _short_escape(code) if length == 1 else np.int64(0)
        if letter != 0:
            out[at] = 0x5C
            out[at + 1] = letter
            at += 2
        elif (length == 1 and code < 0x20) or _is_escaped(code):
            at = _write_unicode_escape(out, at, code)
        else:
            for i in range(length):
                out[at + i] = buf[start + i]
            at += length
        start += length
    out[at] = 0x22
    return at + 1


@helper
def _write_base64(
    out: npt.NDArray[np.uint8], at: int, buf: npt.NDArray[np.uint8], start: int, end: int
) -> int:
    """Write a JSON string of the base64 of ``buf[start:end]``; return the position after it."""
    out[at] = 0x22
    at += 1
    while end - start >= 8:  # 6 of which are used
        word = load_word(buf, start)
        first = word & 0xFF
        second = (word >> 8) & 0xFF
        fourth = (word >> 24) & 0xFF
        fifth = (word >> 32) & 0xFF
        store_word(
            out,
            at,
            np.int64(_BASE64_PAIRS[(first << 4) | (second >> 4)])
            | (np.int64(_BASE64_PAIRS[((second & 0xF) << 8) | ((word >> 16) & 0xFF)]) << 16)
            | (np.int64(_BASE64_PAIRS[(fourth << 4) | (fifth >> 4)]) << 32)
            | (np.int64(_BASE64_PAIRS[((fifth & 0xF) << 8) | ((word >> 40) & 0xFF)]) << 48),
        )
        start += 6
        at += 8
    while start < end:
        size = min(end - start, 3)
        first = np.int64(buf[start])
        second = np.int64(buf[start + 1]) if size > 1 else np.int64(0)
        third = np.int64(buf[start + 2]) if size > 2 else np.int64(0)
        high = np.int64(_BASE64_PAIRS[(first << 4) | (second >> 4)])
        low = np.int64(_BASE64_PAIRS[((second & 0xF) << 8) | third])
        out[at] = high & 0xFF
        out[at + 1] = high >> 8
        out[at + 2] = low & 0xFF if size > 1 else 0x3D
        out[at + 3] = low >> 8 if size > 2 else 0x3D
        start += size
        at += 4
    out[at] = 0x22
    return at + 1


@helper
def _write_bytes(
    out: npt.NDArray[np.uint8],
    at: int,
    buf: npt.NDArray[np.uint8],
    start: int,
    end: int,
    style: int,
) -> int:
    if style == STYLE_TEXT:
        at = _write_text(out, at, buf, start, end)
    elif style == STYLE_BASE64:
        at = _write_base64(out, at, buf, start, end)
    elif style == STYLE_VERBATIM:
        copy_bytes(out, at, buf, start, end - start)
        at += end - start
    elif _is_well_formed(buf, start, end):
        at = _write_string(out, at, buf, start, end)
    else:
        copy_bytes(out, at, _BASE64_START, 0, _BASE64_START.size)
        at = _write_base64(out, at + _BASE64_START.size, buf, start, end)
        out[at] = 0x7D
        at += 1
    return at


@helper
def _is_null(validity: npt.NDArray[np.uint8], row: int) -> bool:
    return not (np.int64(validity[row >> 3]) >> (row & 7)) & 1


@helper
def _write_header(
    out: npt.NDArray[np.uint8],
    at: int,
    name_ends: npt.NDArray[np.int32],
    name_data: npt.NDArray[np.uint8],
    value_ends: npt.NDArray[np.int32],
    value_data: npt.NDArray[np.uint8],
    value_validity: npt.NDArray[np.uint8],
    index: int,
    style: int,
) -> int:
    out[at] = 0x5B
    at = _write_bytes(
        out,
        at + 1,
        name_data,
        np.int64(name_ends[index]),
        np.int64(name_ends[index + 1]),
        STYLE_JSON,
    )
    out[at] = 0x2C
    at += 1
    if _is_null(value_validity, index):
        copy_bytes(out, at, _NULL, 0, _NULL.size)
        at += _NULL.size
    else:
        at = _write_bytes(
            out,
            at,
            value_data,
            np.int64(value_ends[index]),
            np.int64(value_ends[index + 1]),
            style,
        )
    out[at] = 0x5D
    return at + 1


@helper
def _most_bytes(buf: npt.NDArray[np.uint8], start: int, end: int, style: int) -> int:
    """Return how many bytes ``buf[start:end]`` takes at the most, in a style."""
    size = end - start
    if style == STYLE_VERBATIM:
        return size
    if style == STYLE_BASE64 or size <= _MEASURED_BYTES:
        return 6 * size if style == STYLE_JSON else 3 * size
    most = np.int64(0)
    while start < end:
        plain_end = _plain_end(buf, start, end)
        most += plain_end - start
        start = plain_end
        if start == end:
            break
        length, is_well_formed = character(buf, start, end)
        if not is_well_formed:
            most += 3
        elif style == STYLE_TEXT or length == 4:
            most += length
        else:
            most += 6
        start += length
    return max(most, 2 * size) if style == STYLE_JSON else most


@helper
def _write_literal(
    out: npt.NDArray[np.uint8],
    at: int,
    literals: npt.NDArray[np.uint8],
    literal_ends: npt.NDArray[np.int64],
    number: int,
) -> int:
    start = literal_ends[number]
    end = literal_ends[number + 1]
    # Word by word: they are short, and there is room for what follows the last one.
    for position in range(start, end, 8):
        store_word(out, at + position - start, load_word(literals, position))
    at += end - start
    return at


@kernel(
    writes=("out", "state"),
    tables=("steps", "batches"),
)
def write_lines(
    steps: npt.NDArray[np.int64],
    record_step: int,
    most_batch_bytes: int,
    most_record_bytes: int,
    literals: npt.NDArray[np.uint8],
    literal_ends: npt.NDArray[np.int64],
    batches: npt.NDArray[np.int64],
    batch_rows: npt.NDArray[np.int64],
    offsets: npt.NDArray[np.int64],
    timestamps: npt.NDArray[np.int64],
    checks: npt.NDArray[np.int64],
    key_ends: npt.NDArray[np.int32],
    key_data: npt.NDArray[np.uint8],
    key_validity: npt.NDArray[np.uint8],
    value_ends: npt.NDArray[np.int32],
    value_data: npt.NDArray[np.uint8],
    value_validity: npt.NDArray[np.uint8],
    name_list_ends: npt.NDArray[np.int32],
    name_ends: npt.NDArray[np.int32],
    name_data: npt.NDArray[np.uint8],
    header_ends: npt.NDArray[np.int32],
    header_data: npt.NDArray[np.uint8],
    header_validity: npt.NDArray[np.uint8],
    detail_ends: npt.NDArray[np.int64],
    detail_data: npt.NDArray[np.uint8],
    out: npt.NDArray[np.uint8],
    state: npt.NDArray[np.int64],
) -> int:
    """Write lines until all are written or ``out`` is full; return how many bytes."""
    batch = state[STATE_BATCH]
    row = state[STATE_ROW]
    has_line = state[STATE_HAS_LINE] != 0
    end_row = np.int64(0)
    for i in range(batch + 1):
        if i < batch_rows.size:
            end_row += batch_rows[i]
    key_style = np.int64(-1)
    value_style = np.int64(-1)
    header_style = np.int64(-1)
    has_names = False
    has_detail = False
    for i in range(record_step, steps.shape[0]):
        what = steps[i, 0]
        if what == KEY:
            key_style = steps[i, 1]
        elif what == VALUE:
            value_style = steps[i, 1]
        elif what == HEADER_NAMES:
            has_names = True
        elif what == HEADERS:
            has_names = True
            header_style = steps[i, 1]
        elif what == DETAIL:
            has_detail = True
    at = np.int64(0)
    needed = np.int64(0)
    while batch < batches.shape[0]:
        if has_line and row == end_row:
            batch += 1
            has_line = False
            if batch < batches.shape[0]:
                end_row += batch_rows[batch]
            continue
        step = np.int64(0)
        last_step = np.int64(record_step)
        needed = np.int64(most_batch_bytes)
        if has_line:
            step = last_step
            last_step = np.int64(steps.shape[0])
            needed = np.int64(most_record_bytes)
            if key_style >= 0:
                needed += _most_bytes(
                    key_data, np.int64(key_ends[row]), np.int64(key_ends[row + 1]), key_style
                )
            if value_style >= 0:
                needed += _most_bytes(
                    value_data,
                    np.int64(value_ends[row]),
                    np.int64(value_ends[row + 1]),
                    value_style,
                )
            if has_names:
                first = np.int64(name_list_ends[row])
                last = np.int64(name_list_ends[row + 1])
                if last > first:
                    needed += 6 * np.int64(name_ends[last] - name_ends[first])
                    needed += _PAIR_BYTES * (last - first)
                    if header_style >= 0:
                        for i in range(first, last):
                            needed += _most_bytes(
                                header_data,
                                np.int64(header_ends[i]),
                                np.int64(header_ends[i + 1]),
                                header_style,
                            )
            if has_detail:
                needed += detail_ends[row + 1] - detail_ends[row]
        needed += _SPARE_BYTES
        if out.size - at < needed:
            break
        needed = np.int64(0)
        while step < last_step:
            what = steps[step, 0]
            a = steps[step, 1]
            b = steps[step, 2]
            c = steps[step, 3]
            step += 1
            if what == LITERAL:
                at = _write_literal(out, at, literals, literal_ends, a)
            elif what == NUMBER:
                at = _write_number(out, at, batches[batch, a])
            elif what == CHOICE:
                chosen = batches[batch, a]
                if 0 <= chosen < c:
                    at = _write_literal(out, at, literals, literal_ends, b + chosen)
            elif what == SKIP_UNLESS:
                if batches[batch, a] != b:
                    step += c
            elif what == OFFSET:
                at = _write_number(out, at, offsets[row])
            elif what == TIMESTAMP:
                at = _write_number(out, at, timestamps[row])
            elif what == KEY_SIZE:
                size = np.int64(key_ends[row + 1]) - np.int64(key_ends[row])
                at = _write_number(out, at, -1 if _is_null(key_validity, row) else size)
            elif what == VALUE_SIZE:
                size = np.int64(value_ends[row + 1]) - np.int64(value_ends[row])
                at = _write_number(out, at, -1 if _is_null(value_validity, row) else size)
            elif what == SEQUENCE:
                sequence = batches[batch, a]
                if sequence >= 0:
                    sequence = (sequence + offsets[row] - batches[batch, b]) & 0x7FFFFFFF
                else:
                    sequence = np.int64(-1)
                at = _write_number(out, at, sequence)
            elif what == CRC:
                check = checks[row]
                at = _write_number(out, at, check if check >= 0 else -1 - check)
            elif what == VALIDITY:
                at = _write_literal(out, at, literals, literal_ends, a + (checks[row] < 0))
            elif what == HEADER_NAMES:
                first = np.int64(name_list_ends[row])
                for i in range(first, np.int64(name_list_ends[row + 1])):
                    if i > first:
                        out[at] = 0x2C
                        at += 1
                    at = _write_bytes(
                        out, at, name_data, np.int64(name_ends[i]), np.int64(name_ends[i + 1]), a
                    )
            elif what == KEY:
                at = _write_bytes(
                    out, at, key_data, np.int64(key_ends[row]), np.int64(key_ends[row + 1]), a
                )
            elif what == VALUE:
                at = _write_bytes(
                    out, at, value_data, np.int64(value_ends[row]), np.int64(value_ends[row + 1]), a
                )
            elif what == HEADERS:
                first = np.int64(name_list_ends[row])
                for i in range(first, np.int64(name_list_ends[row + 1])):
                    if i > first:
                        out[at] = 0x2C
                        at += 1
                    at = _write_header(
                        out,
                        at,
                        name_ends,
                        name_data,
                        header_ends,
                        header_data,
                        header_validity,
                        i,
                        a,
                    )
            elif what == SKIP_BY_KEY:
                if _is_null(key_validity, row) == (a != 0):
                    step += c
            elif what == SKIP_BY_VALUE:
                if _is_null(value_validity, row) == (a != 0):
                    step += c
            elif what == DETAIL:
                size = detail_ends[row + 1] - detail_ends[row]
                copy_bytes(out, at, detail_data, detail_ends[row], size)
                at += size
        if has_line:
            row += 1
        has_line = True
    state[STATE_BATCH] = batch
    state[STATE_ROW] = row
    state[STATE_HAS_LINE] = 1 if has_line else 0
    state[STATE_NEEDED] = needed
    return at
