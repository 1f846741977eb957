"""Kernels: JSON texts to the buffers of columns; a text that is not plain is left to the reader.

A *program* says what is read: `COLUMNS` words for each node of a type, parents before children, the
fields of a struct side by side. A node has a slot for each value of its *domain*: that of the
texts, or of the elements of one list or map. Values are words in ``words``, of strings, lists and
maps their lengths; the bytes of a node's strings lie one after the other in ``out``.

What this kernel takes is what `pylog.typed.json_reader` makes of the same text; all else is *left*:
what is wrong, and what is rare, such as numbers of 20 digits, escapes in names, and a string, a
struct or a list whose name comes twice. So it has no errors to describe.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pylog.kernels import helper, intrinsic, kernel
from pylog.kernels.helpers import add_words, character, copy_bytes, load_word

DONE = 0
FULL = 1
"""No room: an element more than there are slots, or more bytes; no slot of that text counts."""
BAD_ARGUMENTS = 2

# Columns of the program.
KIND = 0
LEAST = 1
MOST = 2
"""Of an integer: what it lies between. Of a float: the bits of the largest. Of a decimal: its
scale, and the digits that it may have. Of a time: digits of a second's fraction, and whether there
is a zone."""
WORDS = 3
"""Where its words begin."""
VALID = 4
DOMAIN = 5
FIRST_CHILD = 6
CHILDREN = 7
CHILD_DOMAIN = 8
NAME = 9
"""Where its name, in quotes and with a colon, begins among the names' words."""
NAME_BYTES = 10
"""Of all that; 0 if no text has the name without escapes."""
NAME_HASH = 11
TABLE = 12
"""Of a struct: where its table of names begins, and a mask of its size."""
TABLE_MASK = 13
IS_REQUIRED = 14
"""Of a field, a key or an element: 1, may not be null. Of a struct, 2: has such fields."""
OUT_END = 15
"""Where the room for its strings ends."""
COLUMNS = 16
LOG_COLUMNS = 4

# Kinds of nodes.
STRUCT = 0
LIST = 1
MAP = 2
STRING = 3
TEXT = 4
"""Any value, kept as the text it is."""
INTEGER = 5
FLOAT = 6
DECIMAL = 7
BOOLEAN = 8
TIMESTAMP = 9
DATE = 10
OTHER = 11
"""What only the reader knows; here, null alone."""

MOST_DEPTH = 64
"""Of structs, lists and maps of the type."""
MOST_NESTED = 512
"""Of what is passed over."""
MARGIN = 64
"""So many bytes lie behind each text, and are left behind strings."""
AHEAD = 1024
"""So many bytes further on, memory is fetched."""
MOST_KEYS = 64
"""Of a map."""
FRAME = 3

LEAST_POWER = -342
MOST_POWER = 308
"""Of ten: those in the table."""

_QUOTE = 0x22
_PLUS = 0x2B
_COMMA = 0x2C
_MINUS = 0x2D
_POINT = 0x2E
_ZERO = 0x30
_NINE = 0x39
_COLON = 0x3A
_OPEN_LIST = 0x5B
_BACKSLASH = 0x5C
_CLOSE_LIST = 0x5D
_OPEN = 0x7B
_CLOSE = 0x7D
_SPACE = 0x20
_SPACES = 1 << 0x20 | 1 << 0x0A | 1 << 0x0D | 1 << 0x09
_LEFT = -1
_SIGN = -(1 << 63)
_MOST = (1 << 63) - 1


def _escaped_values() -> npt.NDArray[np.uint8]:
    """Return what each character stands for after a backslash; 0: nothing of one character."""
    values = np.zeros(256, dtype=np.uint8)
    for each, value in zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True):
        values[each] = value
    return values


def _hexadecimal_values() -> npt.NDArray[np.uint8]:
    values = np.full(256, 16, dtype=np.uint8)
    for digits in (b"0123456789abcdef", b"0123456789ABCDEF"):
        for value, digit in enumerate(digits):
            values[digit] = value
    return values


_ESCAPED = _escaped_values()
_HEXADECIMAL = _hexadecimal_values()
_ENDS = np.array([each in b'"\\' for each in range(256)])
"""Which bytes end a stretch of plain characters."""
_DAYS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], dtype=np.int64)
_TENS = np.array([10**power for power in range(19)], dtype=np.int64)


@intrinsic("string_stops")
def _string_stops(buf: npt.NDArray[np.uint8], at: int) -> int:
    """Return which of 32 bytes are none of a string's plain characters of ASCII."""
    mask = np.int64(0)
    for i in range(32):
        byte = np.int64(buf[at + i])
        mask |= np.int64(not 0x20 <= byte <= 0x7F or _ENDS[byte]) << i
    return mask


@intrinsic("copy_plain")
def _copy_plain(
    dst: npt.NDArray[np.uint8], dst_at: int, src: npt.NDArray[np.uint8], src_at: int
) -> int:
    """Copy 32 bytes; return which are none of a string's plain characters of ASCII."""
    dst[dst_at : dst_at + 32] = src[src_at : src_at + 32]
    return np.int64(_string_stops(src, src_at))


@intrinsic("item_at")
def _item(values: npt.NDArray[np.int64], at: int) -> int:
    """Return an item at an index that is not negative."""
    return np.int64(values[at])


@intrinsic("put_item")
def _put(values: npt.NDArray[np.int64], at: int, item: int) -> None:
    values[at] = item


@intrinsic("prefetch")
def _prefetch(buf: npt.NDArray[np.uint8], at: int) -> None:
    """Have the processor fetch the cache line of ``buf[at]``, inside or not: nothing is read."""


@intrinsic("not_digits")
def _not_digits(buf: npt.NDArray[np.uint8], at: int) -> int:
    """Return which of 16 bytes are no digits."""
    mask = np.int64(0)
    for i in range(16):
        mask |= np.int64(not _ZERO <= np.int64(buf[at + i]) <= _NINE) << i
    return mask


@intrinsic("lowest_bit")
def _lowest(mask: int) -> int:
    """Return the number of the lowest bit that is set; there is one."""
    number = np.int64(0)
    while (mask >> number) & 1 == 0:
        number += 1
    return number


@intrinsic("leading_zeros", also_checked=True)
def _leading_zeros(word: int) -> int:
    """Return how many of a word's highest bits are not set; the word is not 0."""
    return np.int64(64 - (int(word) & 0xFFFFFFFFFFFFFFFF).bit_length())


@intrinsic("multiply_words", also_checked=True)
def _multiply(left: int, right: int) -> tuple[int, int]:
    """Return the upper and the lower half of the product of two unsigned numbers."""
    mask = 0xFFFFFFFFFFFFFFFF
    product = (int(left) & mask) * (int(right) & mask)
    halves = [product >> 64, product & mask]
    upper, lower = [np.int64(half - (1 << 64) if half >> 63 else half) for half in halves]
    return upper, lower


@helper
def _after_space(buf: npt.NDArray[np.uint8], at: int, end: int) -> int:
    while at < end:
        byte = _item(buf, at)
        if byte > 0x20 or ((1 << byte) & _SPACES) == 0:
            break
        at += 1
    return at


@helper
def _is_null(buf: npt.NDArray[np.uint8], at: int, end: int) -> bool:
    return at + 4 <= end and (load_word(buf, at) & 0xFFFFFFFF) == 0x6C6C756E


@helper
def _is_true(buf: npt.NDArray[np.uint8], at: int, end: int) -> bool:
    return at + 4 <= end and (load_word(buf, at) & 0xFFFFFFFF) == 0x65757274


@helper
def _is_false(buf: npt.NDArray[np.uint8], at: int, end: int) -> bool:
    return at + 5 <= end and (load_word(buf, at) & 0xFFFFFFFFFF) == 0x65736C6166


@helper
def _after_characters(buf: npt.NDArray[np.uint8], at: int, end: int) -> int:
    """Return where characters outside ASCII end that begin at ``at``; -1 if they are none."""
    while at < end and np.int64(buf[at]) >= 0x80:
        length, is_sound = character(buf, at, end)
        if not is_sound:
            return np.int64(_LEFT)
        at += length
    return at


@helper
def _string_stop(buf: npt.NDArray[np.uint8], at: int, end: int) -> int:
    """Return where a string's quote or next backslash is; -1 if there is none, or something bad."""
    while at < end:
        mask = _string_stops(buf, at)
        if mask == 0:
            at += 32
            continue
        at += _lowest(mask)
        if at >= end:
            break
        byte = np.int64(buf[at])
        if byte < 0x80:
            return at if byte >= 0x20 else np.int64(_LEFT)
        at = _after_characters(buf, at, end)
        if at < 0:
            break
    return np.int64(_LEFT)


@helper
def _sixteen_bits(buf: npt.NDArray[np.uint8], at: int, end: int) -> int:
    """Return what four digits stand for; -1 if there are none."""
    if at + 4 > end:
        return np.int64(_LEFT)
    value = np.int64(0)
    for i in range(4):
        digit = np.int64(_HEXADECIMAL[buf[at + i]])
        if digit > 15:
            return np.int64(_LEFT)
        value = value << 4 | digit
    return value


@helper
def _put_character(out: npt.NDArray[np.uint8], to: int, code: int) -> int:
    """Write a character as UTF-8; return where it ends."""
    if code < 0x80:
        out[to] = code
        return to + 1
    if code < 0x800:
        out[to] = 0xC0 | code >> 6
        out[to + 1] = 0x80 | (code & 0x3F)
        return to + 2
    if code < 0x10000:
        out[to] = 0xE0 | code >> 12
        out[to + 1] = 0x80 | (code >> 6 & 0x3F)
        out[to + 2] = 0x80 | (code & 0x3F)
        return to + 3
    out[to] = 0xF0 | code >> 18
    out[to + 1] = 0x80 | (code >> 12 & 0x3F)
    out[to + 2] = 0x80 | (code >> 6 & 0x3F)
    out[to + 3] = 0x80 | (code & 0x3F)
    return to + 4


@helper
def _copy_string(
    buf: npt.NDArray[np.uint8], at: int, end: int, out: npt.NDArray[np.uint8], to: int
) -> tuple[int, int]:
    """Copy the string at ``at``, without its escapes; there is room.

    Return where its quote is, -1 if it is not sound, and where what was written ends.
    """
    while at < end:
        mask = _copy_plain(out, to, buf, at)
        if mask == 0:
            at += 32
            to += 32
            continue
        count = _lowest(mask)
        at += count
        to += count
        if at >= end:
            break
        byte = _item(buf, at)
        if byte == _QUOTE:
            return np.int64(at), np.int64(to)
        if byte >= 0x80:
            stop = _after_characters(buf, at, end)
            if stop < 0:
                break
            copy_bytes(out, to, buf, at, stop - at)
            to += stop - at
            at = np.int64(stop)
            continue
        if byte != _BACKSLASH or at + 1 >= end:
            break
        value = np.int64(_ESCAPED[buf[at + 1]])
        if value != 0:
            out[to] = value
            to += 1
            at += 2
            continue
        if buf[at + 1] != 0x75:  # u
            break
        code = np.int64(_sixteen_bits(buf, at + 2, end))
        at += 6
        if code < 0 or code >> 10 == 0x37:  # the second of a pair
            break
        if code >> 10 == 0x36:
            if at + 6 > end or buf[at] != _BACKSLASH or buf[at + 1] != 0x75:
                break
            second = _sixteen_bits(buf, at + 2, end)
            if second >> 10 != 0x37:
                break
            code = 0x10000 + ((code & 0x3FF) << 10 | (second & 0x3FF))
            at += 6
        to = np.int64(_put_character(out, to, code))
    return np.int64(_LEFT), np.int64(to)


@helper
def _after_string(buf: npt.NDArray[np.uint8], at: int, end: int) -> int:
    """Return the place after the quote of a string that is passed over; -1 if it is not sound."""
    while True:
        at = _string_stop(buf, at, end)
        if at < 0:
            return np.int64(_LEFT)
        if buf[at] == _QUOTE:
            return at + 1
        if at + 1 >= end:
            return np.int64(_LEFT)
        if _ESCAPED[buf[at + 1]] != 0:
            at += 2
        elif buf[at + 1] == 0x75 and _sixteen_bits(buf, at + 2, end) >= 0:
            at += 6
        else:
            return np.int64(_LEFT)


@helper
def _after_digits(buf: npt.NDArray[np.uint8], at: int, end: int) -> int:
    while at < end and _ZERO <= np.int64(buf[at]) <= _NINE:
        at += 1
    return at


@helper
def _after_number(buf: npt.NDArray[np.uint8], at: int, end: int) -> int:
    """Return where a number that is passed over ends; -1 if it is none."""
    if buf[at] == _MINUS:
        at += 1
    start = at
    at = _after_digits(buf, at, end)
    if at == start or (buf[start] == _ZERO and at - start > 1):
        return np.int64(_LEFT)
    if at < end and buf[at] == _POINT:
        start = at + 1
        at = _after_digits(buf, start, end)
        if at == start:
            return np.int64(_LEFT)
    if at < end and (np.int64(buf[at]) | 0x20) == 0x65:
        at += 1
        if at < end and (buf[at] == _PLUS or buf[at] == _MINUS):
            at += 1
        start = at
        at = _after_digits(buf, start, end)
        if at == start:
            return np.int64(_LEFT)
    return at


@helper
def _after_scalar(buf: npt.NDArray[np.uint8], at: int, end: int) -> int:
    if at >= end:
        return np.int64(_LEFT)
    byte = np.int64(buf[at])
    if byte == _QUOTE:
        return np.int64(_after_string(buf, at + 1, end))
    if byte == _MINUS or _ZERO <= byte <= _NINE:
        return np.int64(_after_number(buf, at, end))
    if _is_null(buf, at, end) or _is_true(buf, at, end):
        return at + 4
    if _is_false(buf, at, end):
        return at + 5
    return np.int64(_LEFT)


@helper
def _after_name(buf: npt.NDArray[np.uint8], at: int, end: int) -> int:
    """Return the place after a name and its colon, -1 if there is none."""
    at = _after_space(buf, at, end)
    if at >= end or buf[at] != _QUOTE:
        return np.int64(_LEFT)
    at = _after_string(buf, at + 1, end)
    if at < 0:
        return at
    at = _after_space(buf, at, end)
    if at >= end or buf[at] != _COLON:
        return np.int64(_LEFT)
    return at + 1


@helper
def _after_value(
    buf: npt.NDArray[np.uint8], at: int, end: int, brackets: npt.NDArray[np.uint8]
) -> int:
    """Return where any value ends; -1 if it is none, or nested too deep."""
    depth = np.int64(0)
    while True:
        at = _after_space(buf, at, end)
        if at < end and (buf[at] == _OPEN or buf[at] == _OPEN_LIST):
            if depth == MOST_NESTED:
                return np.int64(_LEFT)
            opened = np.int64(buf[at])
            brackets[depth] = opened + 2  # what closes it
            depth += 1
            at = _after_space(buf, at + 1, end)
            if at >= end or buf[at] != opened + 2:
                if opened == _OPEN:
                    at = _after_name(buf, at, end)
                    if at < 0:
                        return at
                continue
        else:
            at = _after_scalar(buf, at, end)
            if at < 0:
                return at
            if depth == 0:
                return at
            at = _after_space(buf, at, end)
        # After a value, or before the end of an empty one.
        while at < end and buf[at] == brackets[depth - 1]:
            depth -= 1
            at += 1
            if depth == 0:
                return at
            at = _after_space(buf, at, end)
        if at >= end or buf[at] != _COMMA:
            return np.int64(_LEFT)
        at += 1
        if brackets[depth - 1] == _CLOSE:
            at = _after_name(buf, at, end)
            if at < 0:
                return at


@helper
def _digits(word: int, count: int) -> int:
    """Return what the first digits, at most eight, in a word stand for."""
    if count == 0:
        return np.int64(0)
    word = (word << (64 - 8 * count)) & 0x0F0F0F0F0F0F0F0F
    _, product = _multiply(word, 2561)
    _, product = _multiply((product >> 8) & 0x00FF00FF00FF00FF, 6553601)
    _, product = _multiply((product >> 16) & 0x0000FFFF0000FFFF, 42949672960001)
    return np.int64((product >> 32) & 0xFFFFFFFF)


@helper
def _append_digits(buf: npt.NDArray[np.uint8], at: int, end: int, value: int) -> tuple[int, int]:
    """Return a number with the digits at ``at`` behind it, and where they end; -1 if too large.

    They may reach over the text's end.
    """
    mask = _not_digits(buf, at)
    count = np.int64(_lowest(mask | 0x10000))
    if count <= 8 and value == 0:
        return np.int64(_digits(load_word(buf, at), count)), at + count
    if count < 16 and value < _TENS[18 - count]:
        if count > 8:
            value = value * 100000000 + _digits(load_word(buf, at), 8)
            at += 8
            count -= 8
        return value * _TENS[count] + _digits(load_word(buf, at), count), at + count
    if value == 0 and count == 16:
        value = _digits(load_word(buf, at), 8) * 100000000 + _digits(load_word(buf, at + 8), 8)
        at += 16
    while at < end and _ZERO <= _item(buf, at) <= _NINE:
        digit = _item(buf, at) - _ZERO
        if value > 922337203685477580 or (value == 922337203685477580 and digit > 7):
            return np.int64(0), np.int64(_LEFT)
        value = value * 10 + digit
        at += 1
    return np.int64(value), np.int64(at)


@helper
def _number(buf: npt.NDArray[np.uint8], at: int, end: int) -> tuple[int, int, int]:
    """Return digits and power of ten of a number without sign, and where it ends; -1 to leave it.

    ``12.50`` is 1250 and -2.
    """
    left = (np.int64(0), np.int64(0), np.int64(_LEFT))
    start = at
    value, at = _append_digits(buf, at, end, np.int64(0))
    if at <= start or (_item(buf, start) == _ZERO and at - start > 1):
        return left
    power = np.int64(0)
    if _item(buf, at) == _POINT:
        start = at + 1
        value, at = _append_digits(buf, start, end, value)
        if at <= start:
            return left
        power = np.int64(start - at)
    if at < end and (_item(buf, at) | 0x20) == 0x65:
        at += 1
        is_negative = at < end and buf[at] == _MINUS
        if at < end and (is_negative or buf[at] == _PLUS):
            at += 1
        start = at
        exponent = np.int64(0)
        while at < end and _ZERO <= np.int64(buf[at]) <= _NINE:
            if at - start > 5:
                return left
            exponent = exponent * 10 + (np.int64(buf[at]) - _ZERO)
            at += 1
        if at == start:
            return left
        power += -exponent if is_negative else exponent
    return np.int64(value), np.int64(power), np.int64(at)


@helper
def _float_bits(value: int, power: int, powers: npt.NDArray[np.int64]) -> int:
    """Return the float nearest to ``value * 10**power`` as its bits; -1 if that is not simple.

    Source: D. Lemire, "Number Parsing at a Gigabyte per Second" (2021). Subnormal numbers and
    numbers that are too large are not simple.
    """
    if value == 0:
        return np.int64(0)
    if power < LEAST_POWER or power > MOST_POWER:
        return np.int64(_LEFT)
    zeros = np.int64(_leading_zeros(value))
    scaled = np.int64(value << zeros)
    place = 2 * (power - LEAST_POWER)
    upper, lower = _multiply(scaled, _item(powers, place))
    if (upper & 0x1FF) == 0x1FF:
        carried, _ = _multiply(scaled, powers[place + 1])
        lower = add_words(lower, carried)
        if (lower ^ _SIGN) < (carried ^ _SIGN):  # as unsigned numbers: the sum has a carry
            upper += 1
    if lower == -1 and (power < -27 or power > 55):
        return np.int64(_LEFT)
    top = (upper >> 63) & 1
    shift = top + 9
    mantissa = (upper >> shift) & ((1 << (64 - shift)) - 1)
    exponent = ((217706 * power) >> 16) + 63 + top - zeros + 1023
    if exponent <= 0 or exponent >= 0x7FE:
        return np.int64(_LEFT)
    is_halfway = 0 <= lower <= 1 and -4 <= power <= 23 and (mantissa & 3) == 1
    if is_halfway and (mantissa << shift) == upper:
        mantissa -= 1
    mantissa += mantissa & 1
    mantissa >>= 1
    if mantissa >= 1 << 53:
        mantissa = np.int64(1 << 52)
        exponent += 1
    return np.int64((mantissa & ((1 << 52) - 1)) | (exponent << 52))


@helper
def _unscaled(value: int, power: int, scale: int, digits: int) -> int:
    """Return a decimal's number of last places; -1 if it has more digits than it may have."""
    places = power + scale
    if value == 0:
        return np.int64(0)
    if places > 18 or places < -18:
        return np.int64(_LEFT)
    if places >= 0:
        if value > _MOST // _TENS[places]:
            return np.int64(_LEFT)
        value *= _TENS[places]
    else:
        if value % _TENS[-places] != 0:
            return np.int64(_LEFT)
        value //= _TENS[-places]
    if digits <= 18 and value >= _TENS[digits]:
        return np.int64(_LEFT)
    return np.int64(value)


@helper
def _two_digits(buf: npt.NDArray[np.uint8], at: int) -> int:
    """Return a number of two digits, or one that is far too large."""
    first = np.int64(buf[at]) - _ZERO
    second = np.int64(buf[at + 1]) - _ZERO
    if first < 0 or first > 9 or second < 0 or second > 9:
        return np.int64(1000)
    return first * 10 + second


@helper
def _date(buf: npt.NDArray[np.uint8], at: int) -> tuple[int, bool]:
    """Return the days since 1970 that ``YYYY-MM-DD`` stands for, and whether it does."""
    century = _two_digits(buf, at)
    year = _two_digits(buf, at + 2)
    month = _two_digits(buf, at + 5)
    day = _two_digits(buf, at + 8)
    if buf[at + 4] != _MINUS or buf[at + 7] != _MINUS:
        return np.int64(0), False
    if century > 99 or year > 99 or month < 1 or month > 12 or day < 1 or day > 31:
        return np.int64(0), False
    year += century * 100
    if year == 0:
        return np.int64(0), False
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > _DAYS[month] + np.int64(month == 2 and is_leap):
        return np.int64(0), False
    # Years from March on, so that a leap day comes last.
    if month <= 2:
        year -= 1
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return year * 365 + year // 4 - year // 100 + year // 400 + day_of_year - 719468, True


@helper
def _time(
    buf: npt.NDArray[np.uint8], at: int, end: int, places: int, has_zone: int
) -> tuple[int, bool]:
    """Return a time since 1970 in units of ``10**-places`` s, and whether it is a common one."""
    none = (np.int64(0), False)
    if end - at < 19:
        return none
    days, is_sound = _date(buf, at)
    hour = _two_digits(buf, at + 11)
    minute = _two_digits(buf, at + 14)
    second = _two_digits(buf, at + 17)
    if not is_sound or (buf[at + 10] != 0x54 and buf[at + 10] != 0x20):
        return none
    if buf[at + 13] != _COLON or buf[at + 16] != _COLON or hour > 23 or minute > 59 or second > 59:
        return none
    seconds = days * 86400 + hour * 3600 + minute * 60 + second
    at += 19
    fraction = np.int64(0)
    count = np.int64(0)
    if at < end and buf[at] == _POINT:
        at += 1
        while at < end and _ZERO <= np.int64(buf[at]) <= _NINE:
            digit = np.int64(buf[at]) - _ZERO
            if count < places:
                fraction = fraction * 10 + digit
                count += 1
            elif digit != 0:
                return none
            at += 1
        if buf[at - 1] == _POINT:
            return none
    fraction *= _TENS[places - count]
    if has_zone == 0:
        if at != end:
            return none
    elif at + 1 == end and buf[at] == 0x5A:
        at = end
    else:
        if end - at != 6 or buf[at + 3] != _COLON or (buf[at] != _PLUS and buf[at] != _MINUS):
            return none
        hour = _two_digits(buf, at + 1)
        minute = _two_digits(buf, at + 4)
        if hour > 23 or minute > 59:
            return none
        away = hour * 3600 + minute * 60
        seconds += away if buf[at] == _MINUS else -away
    # Nanoseconds reach from 1677 to 2262.
    if places == 9 and (seconds < -9223372036 or seconds > 9223372035):
        return none
    return seconds * _TENS[places] + fraction, True


@helper
def _is_name(
    buf: npt.NDArray[np.uint8],
    at: int,
    names: npt.NDArray[np.int64],
    word: int,
    length: int,
) -> bool:
    """Whether the first bytes of a node's name, its quotes and colon stand at ``at``."""
    while length >= 8:
        if load_word(buf, at) != _item(names, word):
            return False
        at += 8
        word += 1
        length -= 8
    if length == 0:
        return True
    return bool(((load_word(buf, at) ^ _item(names, word)) << (64 - 8 * length)) == 0)


@helper
def _name_hash(buf: npt.NDArray[np.uint8], start: int, end: int) -> int:
    """Return a hash of a name."""
    value = np.int64(end - start)
    for at in range(start, end):
        value = (value * 31 + np.int64(buf[at])) & 0xFFFFFFFF
    return value


@helper
def _field(
    buf: npt.NDArray[np.uint8],
    start: int,
    end: int,
    program: npt.NDArray[np.int64],
    struct: int,
    names: npt.NDArray[np.int64],
    tables: npt.NDArray[np.int64],
) -> int:
    """Return the field of a struct whose name ends at the quote at ``end``; -1 if it has none."""
    mask = program[struct + TABLE_MASK]
    wanted = _name_hash(buf, start, end)
    place = wanted & mask
    while True:
        field = tables[program[struct + TABLE] + place]
        if field < 0:
            return np.int64(_LEFT)
        row = field << LOG_COLUMNS
        is_as_long = program[row + NAME_BYTES] == end - start + 3
        if (
            is_as_long
            and program[row + NAME_HASH] == wanted
            and _is_name(buf, start - 1, names, program[row + NAME], end - start + 2)
        ):
            return np.int64(field)
        place = (place + 1) & mask


@helper
def _has_key(
    out: npt.NDArray[np.uint8],
    start: int,
    end: int,
    words: npt.NDArray[np.int64],
    first: int,
    last: int,
) -> bool:
    """Whether a key is one of those before it, whose lengths are ``words[first:last]``."""
    length = end - start
    place = np.int64(start)
    for i in range(last - 1, first - 1, -1):
        place -= words[i]
        if words[i] == length:
            is_same = True
            for k in range(length):
                if out[place + k] != out[start + k]:
                    is_same = False
                    break
            if is_same:
                return True
    return False


@helper
def _has_required(
    program: npt.NDArray[np.int64], struct: int, slot: int, valid: npt.NDArray[np.uint8]
) -> bool:
    """Whether all fields of a struct that are required have a value."""
    if program[struct + IS_REQUIRED] < 2:
        return True
    first = program[struct + FIRST_CHILD]
    for field in range(first, first + program[struct + CHILDREN]):
        row = field << LOG_COLUMNS
        if program[row + IS_REQUIRED] & 1 and valid[program[row + VALID] + slot] == 0:
            return False
    return True


@helper
def _take_back(
    program: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    slots: npt.NDArray[np.int64],
    words: npt.NDArray[np.int64],
    valid: npt.NDArray[np.uint8],
    out_ends: npt.NDArray[np.int64],
) -> None:
    """Forget the slots from ``counts`` to ``slots``."""
    for node in range(program.size >> LOG_COLUMNS):
        row = node << LOG_COLUMNS
        kind = program[row + KIND]
        for slot in range(counts[program[row + DOMAIN]], slots[program[row + DOMAIN]]):
            place = program[row + VALID] + slot
            if valid[place] != 0 and (STRING <= kind <= TEXT):
                out_ends[node] -= words[program[row + WORDS] + slot]
            valid[place] = 0


@kernel(
    writes=(
        *("next_fields", "words", "valid", "counts", "slots", "out", "out_ends"),
        *("left", "stack", "brackets"),
    ),
)
def read_json_values(
    buf: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    first: int,
    last: int,
    program: npt.NDArray[np.int64],
    names: npt.NDArray[np.int64],
    tables: npt.NDArray[np.int64],
    powers: npt.NDArray[np.int64],
    capacities: npt.NDArray[np.int64],
    next_fields: npt.NDArray[np.int64],
    words: npt.NDArray[np.int64],
    valid: npt.NDArray[np.uint8],
    counts: npt.NDArray[np.int64],
    slots: npt.NDArray[np.int64],
    out: npt.NDArray[np.uint8],
    out_ends: npt.NDArray[np.int64],
    left: npt.NDArray[np.uint8],
    stack: npt.NDArray[np.int64],
    brackets: npt.NDArray[np.uint8],
) -> tuple[int, int]:
    """Read texts from ``first`` to ``last`` into slots; return a status and where it came up.

    ``valid`` is 0 everywhere before. ``counts`` are the slots in use of each domain, ``slots`` is
    room for as many; ``out_ends`` is where the strings of each node end. ``left`` is set to 1 for a
    text that is not taken, whose slot is null.
    """
    for text in range(first, last):
        if counts[0] >= capacities[0]:
            return FULL, text
        start = starts[text]
        end = ends[text]
        if start < 0 or end < start or end + MARGIN > buf.size:
            return BAD_ARGUMENTS, text
        for domain in range(counts.size):
            slots[domain] = counts[domain]
        slot = np.int64(counts[0])
        slots[0] += 1
        is_full = False
        is_taken = False
        depth = np.int64(0)
        # The struct, list or map that this value is in; in a struct, `before` is where the next
        # field is guessed, in others where its elements begin.
        parent = np.int64(0)
        parent_kind = np.int64(0)
        parent_slot = np.int64(0)
        before = np.int64(0)
        node = np.int64(0)
        at = np.int64(start)
        while True:
            # A value.
            row = node << LOG_COLUMNS
            kind = _item(program, row + KIND)
            validity = _item(program, row + VALID) + slot
            byte = _item(buf, at)
            if byte == _SPACE:
                at += 1
                byte = _item(buf, at)
            if byte <= _SPACE:
                at = np.int64(_after_space(buf, at, end))
                byte = _item(buf, at)
            if at >= end:
                break
            is_opened = False
            value = np.int64(0)
            if byte == 0x6E:  # n
                is_required = _item(program, row + IS_REQUIRED) & 1
                if not _is_null(buf, at, end) or is_required or _item(valid, validity):
                    break
                at += 4
            else:
                if kind == STRING:
                    to = _item(out_ends, node)
                    if to + (end - at) + MARGIN > _item(program, row + OUT_END):
                        is_full = True
                        break
                    if byte != _QUOTE or _item(valid, validity):
                        break
                    at, written = _copy_string(buf, at + 1, end, out, to)
                    if at < 0:
                        break
                    at += 1
                    value = written - to
                    _put(out_ends, node, written)
                elif INTEGER <= kind <= DECIMAL:
                    is_negative = byte == _MINUS
                    value, power, at = _number(buf, at + is_negative, end)
                    if at < 0:
                        break
                    if kind == FLOAT:
                        value = np.int64(_float_bits(value, power, powers))
                        if value < 0 or value > _item(program, row + MOST):
                            break
                        if is_negative:
                            value |= _SIGN
                    else:
                        if kind == DECIMAL:
                            value = np.int64(
                                _unscaled(value, power, program[row + LEAST], program[row + MOST])
                            )
                            if value < 0:
                                break
                        elif power != 0:
                            break
                        if is_negative:
                            value = -value
                        if kind == INTEGER and (
                            value < _item(program, row + LEAST)
                            or value > _item(program, row + MOST)
                        ):
                            break
                elif kind <= MAP:
                    if byte != (_OPEN_LIST if kind == LIST else _OPEN):
                        break
                    if _item(valid, validity) or depth == MOST_DEPTH:
                        break
                    top = depth * FRAME
                    _put(stack, top, parent)
                    _put(stack, top + 1, parent_slot)
                    _put(stack, top + 2, before)
                    depth += 1
                    parent = np.int64(row)
                    parent_kind = np.int64(kind)
                    parent_slot = np.int64(slot)
                    before = np.int64(2 * node)
                    if kind != STRUCT:
                        before = _item(slots, _item(program, row + CHILD_DOMAIN))
                    at += 1
                    is_opened = True
                elif kind == BOOLEAN:
                    if _is_true(buf, at, end):
                        value = np.int64(1)
                        at += 4
                    elif _is_false(buf, at, end):
                        at += 5
                    else:
                        break
                elif kind == TEXT:
                    stop = np.int64(_after_value(buf, at, end, brackets))
                    if stop < 0 or _item(valid, validity):
                        break
                    to = _item(out_ends, node)
                    value = stop - at
                    if to + value + MARGIN > _item(program, row + OUT_END):
                        is_full = True
                        break
                    copy_bytes(out, to, buf, at, value)
                    _put(out_ends, node, to + value)
                    at = stop
                elif TIMESTAMP <= kind <= DATE:
                    if byte != _QUOTE:
                        break
                    at += 1
                    stop = np.int64(_string_stop(buf, at, end))
                    if stop < 0 or buf[stop] != _QUOTE:
                        break
                    if kind == DATE:
                        value, is_sound = _date(buf, at)
                        is_sound = is_sound and stop - at == 10
                    else:
                        value, is_sound = _time(
                            buf, at, stop, program[row + LEAST], program[row + MOST]
                        )
                    if not is_sound:
                        break
                    at = stop + 1
                else:
                    break
                _put(valid, validity, 1)
                if kind != STRUCT:
                    _put(words, _item(program, row + WORDS) + slot, value)
            # What comes after it, up to the next value.
            is_over = False
            while True:
                if depth == 0:
                    is_over = True
                    is_taken = _after_space(buf, at, end) == end and at <= end
                    break
                byte = _item(buf, at)
                if byte <= 0x20:
                    at = np.int64(_after_space(buf, at, end))
                    byte = _item(buf, at)
                if at >= end:
                    is_over = True
                    break
                if byte == (_CLOSE_LIST if parent_kind == LIST else _CLOSE):
                    at += 1
                    is_opened = False
                    if parent_kind == STRUCT:
                        if not _has_required(program, parent, parent_slot, valid):
                            is_over = True
                            break
                    else:
                        length = _item(slots, _item(program, parent + CHILD_DOMAIN)) - before
                        _put(words, _item(program, parent + WORDS) + parent_slot, length)
                    depth -= 1
                    top = depth * FRAME
                    parent = _item(stack, top)
                    parent_kind = _item(program, parent + KIND)
                    parent_slot = _item(stack, top + 1)
                    before = _item(stack, top + 2)
                    continue
                if is_opened:
                    is_opened = False
                else:
                    if byte != _COMMA:
                        is_over = True
                        break
                    at += 1
                    if _item(buf, at) == _SPACE:
                        at += 1
                    if _item(buf, at) <= _SPACE:
                        at = np.int64(_after_space(buf, at, end))
                if parent_kind == STRUCT:
                    _prefetch(buf, at + AHEAD)
                    slot = np.int64(parent_slot)
                    field = _item(next_fields, before)
                    if field >= 0:
                        length = _item(program, (field << LOG_COLUMNS) + NAME_BYTES)
                        name = _item(program, (field << LOG_COLUMNS) + NAME)
                        if (
                            length > 0
                            and at + length < end
                            and _is_name(buf, at, names, name, length)
                        ):
                            at += length
                            before = np.int64(2 * field + 1)
                            node = np.int64(field)
                            break
                    if at >= end or _item(buf, at) != _QUOTE:
                        is_over = True
                        break
                    at += 1
                    stop = np.int64(_string_stop(buf, at, end))
                    if stop < 0 or buf[stop] != _QUOTE:
                        is_over = True
                        break
                    field = np.int64(_field(buf, at, stop, program, parent, names, tables))
                    at = np.int64(_after_space(buf, stop + 1, end))
                    if at >= end or buf[at] != _COLON:
                        is_over = True
                        break
                    at += 1
                    if field >= 0:
                        _put(next_fields, before, field)
                        before = np.int64(2 * field + 1)
                        node = np.int64(field)
                        break
                    at = np.int64(_after_value(buf, at, end, brackets))
                    if at < 0:
                        is_over = True
                        break
                    continue
                domain = _item(program, parent + CHILD_DOMAIN)
                node = _item(program, parent + FIRST_CHILD)
                slot = _item(slots, domain)
                if slot >= _item(capacities, domain):
                    is_full = True
                    is_over = True
                    break
                _put(slots, domain, slot + 1)
                if parent_kind == LIST:
                    break
                row = node << LOG_COLUMNS
                to = _item(out_ends, node)
                if to + (end - at) + MARGIN > _item(program, row + OUT_END):
                    is_full = True
                    is_over = True
                    break
                if at >= end or _item(buf, at) != _QUOTE or slot - before >= MOST_KEYS:
                    is_over = True
                    break
                at, written = _copy_string(buf, at + 1, end, out, to)
                if at < 0:
                    is_over = True
                    break
                lengths = _item(program, row + WORDS)
                if _has_key(out, to, written, words, lengths + before, lengths + slot):
                    is_over = True
                    break
                _put(out_ends, node, written)
                _put(words, lengths + slot, written - to)
                _put(valid, _item(program, row + VALID) + slot, 1)
                at = np.int64(_after_space(buf, at + 1, end))
                if at >= end or _item(buf, at) != _COLON:
                    is_over = True
                    break
                at += 1
                node += 1
                break
            if is_over:
                break
        if is_taken:
            for domain in range(counts.size):
                counts[domain] = slots[domain]
            continue
        _take_back(program, counts, slots, words, valid, out_ends)
        if is_full:
            return FULL, text
        left[text] = 1
        counts[0] += 1
    return DONE, last


@kernel(writes=("offsets",))
def add_lengths(
    lengths: npt.NDArray[np.int64],
    valid: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int32],
) -> int:
    """Have ``offsets``, one more, be where each of several lengths begins; return where all end."""
    total = np.int64(0)
    offsets[0] = 0
    for i in range(valid.size):
        if valid[i] != 0:
            total += lengths[i]
        offsets[i + 1] = total
    return total
