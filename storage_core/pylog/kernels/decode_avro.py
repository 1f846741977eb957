"""Kernel: read Avro values by a program that was made from their schemas, into column buffers.

A program is a table of steps (`pylog.typed.avro_program` makes it). A step has an operation and up
to seven arguments; all buffers of columns lie in one memory, which is passed as bytes and as wider
numbers. Buffers of a level have as many slots; ``counts`` has how many are filled. A payload that
cannot be decoded leaves a slot of level 0 that the program's end fills, and a line in ``failures``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.kernels import helper, intrinsic, kernel
from pylog.kernels.helpers import character, copy_bytes, load_word, store_word

if TYPE_CHECKING:
    import numpy.typing as npt

STEP_WORDS = 8  # operation, then a to g
STEP_BYTES = 8 * STEP_WORDS

# Steps that begin with a number of the payload's; the first ones read it into buffer a.
LONG = 0
INT = 1
NUMBER = 2  # b: as what; c, d: its limits; e: a factor
ENUM = 3  # b: where constants have the symbols; c: how many
STRING = 4
BYTES = 5
DECIMAL = 6  # b: words; c: where constants have the limit
NULLABLE = 7  # a: the branch that is null; b: the step for it; c: a validity and one, or 0
BRANCH = 8  # a: where jumps has the steps of the branches; b: how many
BLOCK = 9  # a: buffer of ends, b: level of items, c: step after; d: an item's least bytes, e: depth
SKIP_BLOCK = 10  # c, d, e: as BLOCK
SKIP_BYTES = 11
SKIP_LONG = 12
_LAST_WITH_NUMBER = 12
# Other values.
FLOAT = 13
FLOAT_AS_DOUBLE = 14
DOUBLE = 15
BOOLEAN = 16
FIXED = 17  # b: size
FIXED_DECIMAL = 18  # as DECIMAL; d: size
FIXED_BYTES = 19  # of no bytes; into spans
REST = 20  # all that is left of the payload
SKIP_FIXED = 21  # a: size
# Structure.
PRESENT = 22  # a: validity
JUMP = 23  # a: step
NEXT_ITEM = 24  # as BLOCK; f: the step of its BLOCK
SKIP_ITEM = 25  # as SKIP_BLOCK; f: the step of its SKIP_BLOCK
DEFAULT = 26  # a, b: where literals have what the writer does not
END_DEFAULT = 27
FAIL = 28
END = 29
# Slots without a value.
ABSENT = 30  # a: validity
FILL = 31  # a: buffer; b: bytes; c: what its base counts, in bytes
FILL_SPAN = 32  # a: buffer
FILL_ENDS = 33  # a: buffer; b: level of items
END_FILL = 34

# How NUMBER stores.
AS_INT, AS_LONG, AS_FLOAT, AS_DOUBLE = 0, 1, 2, 3

# Why a payload cannot be decoded; what the detail is.
CUT = 1
LONG_TOO_LONG = 2
OUT_OF_RANGE = 3  # the number
NOT_BOOLEAN = 4  # the byte
NOT_UTF8 = 5
BAD_LENGTH = 6  # the length
BAD_BRANCH = 7  # the number
BAD_SYMBOL = 8  # the number
BAD_COUNT = 9  # the count
TOO_MANY_EMPTY = 10  # the count
TRAILING = 11  # how many bytes
TOO_MANY_DIGITS = 12
REFUSED = 13  # by the program
BAD_BLOCK_SIZE = 14  # the size

# What ends a call.
ALL_DONE, FAILURES_FULL, LEVEL_FULL = 0, 1, 2

FAILURE_WORDS = 8  # payload, step, why, detail, then where in the innermost arrays
_FAILURE_PLACES = 4
EMPTY_ITEMS = 1024
"""How many items that take no bytes a payload may have, beside one for each of its bytes."""

_INT_MIN, _INT_MAX = -(1 << 31), (1 << 31) - 1
_ALL_BUT_SIGN = 0x7FFFFFFFFFFFFFFF
_HIGH_BITS = -0x7F7F7F7F7F7F7F80  # the highest of each byte
_LOW_BITS = 0x7F7F7F7F7F7F7F7F  # the others


@intrinsic("lowest_bit")
def _lowest_bit(word: int) -> int:
    """Return the number of the lowest bit that is set in a word other than 0."""
    bit = np.int64(0)
    while not (int(word) >> int(bit)) & 1:
        bit += 1
    return bit


@helper
def _unpacked(word: int, size: int) -> int:
    """Return the number of up to 8 bytes whose lowest seven bits each are part of it."""
    raw = word & (_LOW_BITS >> (64 - 8 * size))
    raw = (raw & 0x007F007F007F007F) | ((raw >> 1) & 0x3F803F803F803F80)
    raw = (raw & 0x00003FFF00003FFF) | ((raw >> 2) & 0x0FFFC0000FFFC000)
    return (raw & 0x000000000FFFFFFF) | ((raw >> 4) & 0x00FFFFFFF0000000)


@helper
def _long(buf: npt.NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """Return the number at ``at`` and the position after it; -1 if it is cut, -2 if too long."""
    raw = np.int64(0)
    for i in range(10):
        if at + i >= end:
            return np.int64(0), np.int64(-1)
        byte = np.int64(buf[at + i])
        if i == 9 and byte > 1:
            return np.int64(0), np.int64(-2)
        raw |= (byte & 0x7F) << np.int64(7 * i)
        if byte < 0x80:
            return ((raw >> np.int64(1)) & _ALL_BUT_SIGN) ^ -(raw & 1), at + i + 1
    return np.int64(0), np.int64(-2)


@helper
def _block_size(
    buf: npt.NDArray[np.uint8], at: int, end: int, count: int
) -> tuple[int, int, int, int]:
    """Read the size of a block whose count is negative; return count, position, why not, detail."""
    size, after = _long(buf, at, end)
    if after < 0:
        return np.int64(0), at, np.int64(CUT if after == -1 else LONG_TOO_LONG), np.int64(0)
    if count < -_ALL_BUT_SIGN:
        return np.int64(0), at, np.int64(BAD_COUNT), count
    if size < 0 or size > end - after:
        return np.int64(0), at, np.int64(BAD_BLOCK_SIZE), size
    return -count, after, np.int64(0), np.int64(0)


@helper
def _is_text(buf: npt.NDArray[np.uint8], at: int, end: int) -> bool:
    """Return whether the bytes are UTF-8."""
    while True:
        while end - at >= 8 and load_word(buf, at) & _HIGH_BITS == 0:
            at += 8
        while at < end and np.int64(buf[at]) < 0x80:
            at += 1
        if at >= end:
            return True
        while at < end and np.int64(buf[at]) >= 0x80:
            length, is_well_formed = character(buf, at, end)
            if not is_well_formed:
                return False
            at += length


@helper
def _set_bit(out: npt.NDArray[np.uint8], base: int, slot: int, value: int) -> None:
    at = base + (slot >> 3)
    bit = slot & 7
    out[at] = (np.int64(out[at]) & ~(1 << bit) & 0xFF) | (value << bit)


@helper
def _word_below(left: int, right: int) -> bool:
    """Compare as unsigned numbers."""
    has_order = (left < 0) == (right < 0)
    return left < right if has_order else right < 0


@helper
def _read_decimal(
    buf: npt.NDArray[np.uint8],
    start: int,
    end: int,
    out: npt.NDArray[np.int64],
    at: int,
    words: int,
    constants: npt.NDArray[np.int64],
    limit: int,
) -> bool:
    """Write a big-endian number as ``words`` words; return whether its digits are within limits."""
    sign = np.int64(0)
    if end > start and np.int64(buf[start]) >= 0x80:
        sign = np.int64(-1)
    # Bytes that only repeat the sign say nothing.
    while end - start > 8 * words:
        if np.int64(buf[start]) != (sign & 0xFF):
            return False
        start += 1
    if end > start and end - start == 8 * words and (np.int64(buf[start]) >= 0x80) != (sign < 0):
        return False
    position = end
    for i in range(words):
        word = np.int64(0)
        for k in range(8):
            position -= 1
            byte = np.int64(buf[position]) if position >= start else sign & 0xFF
            word |= byte << np.int64(8 * k)
        out[at + i] = word
    # The magnitude, less one if it is negative, against the limit, from the highest word down.
    for i in range(words - 1, -1, -1):
        word = out[at + i] ^ sign
        most = constants[limit + i]
        if word != most:
            is_below: bool = _word_below(word, most)
            return is_below
    return sign >= 0


@kernel(
    writes=(
        *("out8", "out32", "out64", "floats", "doubles", "positions"),
        *("counts", "committed", "stack", "failures", "state"),
    ),
    tables=("failures", "stack"),
)
def decode_avro(
    buf: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    steps: npt.NDArray[np.uint8],
    fill_step: int,
    jumps: npt.NDArray[np.int64],
    constants: npt.NDArray[np.int64],
    literals: npt.NDArray[np.uint8],
    capacities: npt.NDArray[np.int64],
    out8: npt.NDArray[np.uint8],
    out32: npt.NDArray[np.int32],
    out64: npt.NDArray[np.int64],
    floats: npt.NDArray[np.float32],
    doubles: npt.NDArray[np.float64],
    positions: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    committed: npt.NDArray[np.int64],
    stack: npt.NDArray[np.int64],
    failures: npt.NDArray[np.int64],
    state: npt.NDArray[np.int64],
) -> tuple[int, int, int, int]:
    """Decode from payload ``state[0]`` on; return payloads done, why it ended, failures, needed.

    If a level is full, ``state[1]`` is which, and ``needed`` how many slots it has to have.
    """
    row = np.int64(state[0])
    failed = np.int64(0)
    levels = counts.size
    while row < starts.size:
        if failed == failures.shape[0]:
            return row, FAILURES_FULL, failed, 0
        source = buf
        at = np.int64(starts[row])
        end = np.int64(ends[row])
        budget = EMPTY_ITEMS + end - at
        kept_at = np.int64(0)
        kept_end = np.int64(0)
        in_literals = False
        for i in range(1, levels):
            committed[i] = counts[i]
        slot = row
        step = np.int64(0)
        status = np.int64(0)
        detail = np.int64(0)
        for i in range(stack.shape[0]):
            stack[i, 1] = 0
        while True:
            here = step
            operation = load_word(steps, step)
            a = load_word(steps, step + 8)
            value = np.int64(0)
            word = np.int64(0)
            if operation <= _LAST_WITH_NUMBER:
                if at < end and source[at] < 0x80:  # as a rule
                    byte = np.int64(source[at])
                    value = (byte >> 1) ^ -(byte & 1)
                    at += 1
                else:
                    # Here and not in `_long`, since a call takes longer than all of it.
                    size = np.int64(0)
                    if at + 8 <= source.size:
                        word = load_word(source, at)
                        last = ~word & _HIGH_BITS
                        if last != 0:
                            size = (_lowest_bit(last) + 1) >> 3
                    if 0 < size <= end - at:
                        value = _unpacked(word, size)
                        value = (value >> 1) ^ -(value & 1)
                        at += size
                    else:
                        value, at = _long(source, at, end)
                        if at < 0:
                            status = CUT if at == -1 else LONG_TOO_LONG
            step += STEP_BYTES
            if status != 0:
                pass
            elif operation == LONG:
                store_word(out8, a + 8 * slot, value)
            elif operation == INT:
                if _INT_MIN <= value <= _INT_MAX:
                    out32[a + slot] = value
                else:
                    status = OUT_OF_RANGE
                    detail = value
            elif operation == STRING:
                if value < 0 or value > end - at:
                    status = BAD_LENGTH
                    detail = value
                else:
                    start = at
                    at += value
                    # Nearly all is ASCII: what follows is read with it, and left out.
                    left = value
                    if at + 8 <= source.size:
                        place = start
                        while left > 8 and load_word(source, place) & _HIGH_BITS == 0:
                            place += 8
                            left -= 8
                        if left <= 8:
                            high = load_word(source, place) & _HIGH_BITS
                            if left == 0 or high << (64 - 8 * left) == 0:
                                left = np.int64(0)
                    if left != 0 and not _is_text(source, start, at):
                        status = NOT_UTF8
                    else:
                        place = load_word(steps, here + 56) + slot
                        positions[place] = ~start if in_literals else start
                        out32[a + slot + 1] = value
            elif operation == BYTES:
                if value < 0 or value > end - at:
                    status = BAD_LENGTH
                    detail = value
                else:
                    positions[load_word(steps, here + 56) + slot] = ~at if in_literals else at
                    out32[a + slot + 1] = value
                    at += value
            elif operation == NULLABLE:
                if value == 1 - a:
                    if load_word(steps, here + 24) > 0:
                        _set_bit(out8, load_word(steps, here + 24) - 1, slot, 1)
                elif value == a:
                    step = load_word(steps, here + 16)
                else:
                    status = BAD_BRANCH
                    detail = value
            elif operation == DOUBLE:
                if end - at < 8:
                    status = CUT
                else:
                    store_word(out8, a + 8 * slot, load_word(source, at))
                    at += 8
            elif operation == BOOLEAN:
                if at >= end:
                    status = CUT
                elif source[at] > 1:
                    status = NOT_BOOLEAN
                    detail = np.int64(source[at])
                else:
                    _set_bit(out8, a, slot, np.int64(source[at]))
                    at += 1
            elif operation == ENUM:
                place = np.int64(-1)
                if 0 <= value < load_word(steps, here + 24):
                    place = load_word(steps, here + 16) + 2 * value
                if place < 0 or constants[place] < 0:
                    status = BAD_SYMBOL
                    detail = value
                else:
                    positions[load_word(steps, here + 56) + slot] = ~constants[place]
                    out32[a + slot + 1] = constants[place + 1]
            elif operation == PRESENT:
                _set_bit(out8, a, slot, 1)
            elif operation == ABSENT:
                _set_bit(out8, a, slot, 0)
            elif operation == JUMP:
                step = a
            elif operation == NUMBER:
                if value < load_word(steps, here + 24) or value > load_word(steps, here + 32):
                    status = OUT_OF_RANGE
                    detail = value
                else:
                    kind = load_word(steps, here + 16)
                    place = a + slot
                    if kind == AS_INT:
                        out32[place] = value
                    elif kind == AS_LONG:
                        store_word(out8, a + 8 * slot, value * load_word(steps, here + 40))
                    elif kind == AS_FLOAT:
                        floats[place] = value
                    else:
                        doubles[(a >> 3) + slot] = value
            elif operation == BLOCK:
                count = value
                level = load_word(steps, here + 16)
                if count < 0:
                    count, at, status, detail = _block_size(source, at, end, count)
                if status == 0 and count == 0:
                    # The items are those of the slot that the list itself is in.
                    slot = (
                        row
                        if load_word(steps, here + 56) == 0
                        else counts[load_word(steps, here + 56)]
                    )
                    out32[a + slot + 1] = counts[level]
                    stack[load_word(steps, here + 40), 1] = 0
                    step = load_word(steps, here + 24)
                elif status == 0:
                    if load_word(steps, here + 32) == 0:
                        budget -= min(count, np.int64(1) << 40)
                        if budget < 0:
                            status = TOO_MANY_EMPTY
                            detail = count
                    elif count > end - at:
                        status = BAD_COUNT
                        detail = count
                    if status == 0:
                        needed = counts[level] + count
                        if needed > capacities[level]:
                            for i in range(1, levels):
                                counts[i] = committed[i]
                            state[1] = level
                            return row, LEVEL_FULL, failed, needed
                        stack[load_word(steps, here + 40), 0] = count
                        slot = counts[level]
            elif operation == NEXT_ITEM:
                place = load_word(steps, here + 40)
                stack[place, 0] -= 1
                stack[place, 1] += 1
                level = load_word(steps, here + 16)
                counts[level] += 1
                slot = counts[level]
                step = load_word(steps, here + 48)
                if stack[place, 0] > 0:
                    step += STEP_BYTES
            elif operation == BRANCH:
                if value < 0 or value >= load_word(steps, here + 16):
                    status = BAD_BRANCH
                    detail = value
                else:
                    step = jumps[a + value]
            elif operation == FLOAT:
                if end - at < 4:
                    status = CUT
                else:
                    # One memory is both: what is written as bytes is read as a number.
                    first = 4 * (a + slot)
                    for i in range(4):
                        out8[first + i] = source[at + i]
                    at += 4
            elif operation == FLOAT_AS_DOUBLE:
                if end - at < 4:
                    status = CUT
                else:
                    place = (a >> 3) + slot
                    for i in range(4):
                        out8[8 * place + i] = source[at + i]
                    doubles[place] = floats[2 * place]
                    at += 4
            elif operation == FIXED:
                size = load_word(steps, here + 16)
                if end - at < size:
                    status = CUT
                else:
                    copy_bytes(out8, a + slot * size, source, at, size)
                    at += size
            elif operation in (DECIMAL, FIXED_DECIMAL):
                size = value if operation == DECIMAL else load_word(steps, here + 32)
                words = load_word(steps, here + 16)
                if size < 0 or size > end - at:
                    status = BAD_LENGTH
                    detail = size
                elif _read_decimal(
                    source,
                    at,
                    at + size,
                    out64,
                    a + slot * words,
                    words,
                    constants,
                    load_word(steps, here + 24),
                ):
                    at += size
                else:
                    status = TOO_MANY_DIGITS
            elif operation == FIXED_BYTES:
                positions[load_word(steps, here + 56) + slot] = ~at if in_literals else at
                out32[a + slot + 1] = 0
            elif operation == REST:
                positions[load_word(steps, here + 56) + slot] = at
                out32[a + slot + 1] = end - at
                at = end
            elif operation == FILL:
                first = load_word(steps, here + 24) * a + slot * load_word(steps, here + 16)
                for i in range(load_word(steps, here + 16)):
                    out8[first + i] = 0
            elif operation == FILL_SPAN:
                positions[load_word(steps, here + 56) + slot] = 0
                out32[a + slot + 1] = 0
            elif operation == FILL_ENDS:
                out32[a + slot + 1] = counts[load_word(steps, here + 16)]
            elif operation == SKIP_BYTES:
                if value < 0 or value > end - at:
                    status = BAD_LENGTH
                    detail = value
                at += value
            elif operation == SKIP_FIXED:
                if end - at < a:
                    status = CUT
                at += a
            elif operation == SKIP_BLOCK:
                count = value
                if count < 0:
                    # Its size is known: none of its items need be looked at.
                    before = at
                    count, at, status, detail = _block_size(source, at, end, count)
                    if status == 0:
                        size, at = _long(source, before, end)
                        at += size
                        step = here
                elif count == 0:
                    step = load_word(steps, here + 24)
                else:
                    if load_word(steps, here + 32) == 0:
                        budget -= min(count, np.int64(1) << 40)
                    if budget < 0:
                        status = TOO_MANY_EMPTY
                        detail = count
                    elif load_word(steps, here + 32) > 0 and count > end - at:
                        status = BAD_COUNT
                        detail = count
                    stack[load_word(steps, here + 40), 0] = count
            elif operation == SKIP_ITEM:
                place = load_word(steps, here + 40)
                stack[place, 0] -= 1
                step = load_word(steps, here + 48)
                if stack[place, 0] > 0:
                    step += STEP_BYTES
            elif operation == DEFAULT:
                kept_at = at
                kept_end = end
                source = literals
                at = a
                end = load_word(steps, here + 16)
                in_literals = True
            elif operation == END_DEFAULT:
                source = buf
                at = kept_at
                end = kept_end
                in_literals = False
            elif operation == FAIL:
                status = REFUSED
            elif operation == END:
                if at == end:
                    break
                status = TRAILING
                detail = end - at
            elif operation == END_FILL:
                break
            if status != 0:
                failures[failed, 0] = row
                failures[failed, 1] = here
                failures[failed, 2] = status
                failures[failed, 3] = detail
                for i in range(_FAILURE_PLACES):
                    failures[failed, 4 + i] = stack[i, 1] if i < stack.shape[0] else 0
                failed += 1
                for i in range(1, levels):
                    counts[i] = committed[i]
                slot = row
                status = np.int64(0)
                step = np.int64(fill_step)
        row += 1
    return row, ALL_DONE, failed, 0


@kernel()
def measure_spans(ends: npt.NDArray[np.int32], count: int) -> int:
    """Return how many bytes the spans have whose lengths follow ``ends[0]``."""
    total = np.int64(0)
    for i in range(count):
        total += np.int64(ends[i + 1])
    return total


@kernel(writes=("ends", "out"))
def copy_spans(
    buf: npt.NDArray[np.uint8],
    literals: npt.NDArray[np.uint8],
    positions: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int32],
    count: int,
    out: npt.NDArray[np.uint8],
) -> None:
    """Copy spans one after the other; their lengths become ends. Sixteen bytes of room follow."""
    total = np.int64(0)
    ends[0] = 0
    last = buf.size - 16
    for i in range(count):
        length = np.int64(ends[i + 1])
        position = positions[i]
        if position < 0:
            copy_bytes(out, total, literals, ~position, length)
        elif length > 16 or position > last:
            copy_bytes(out, total, buf, position, length)
        else:
            store_word(out, total, load_word(buf, position))
            store_word(out, total + 8, load_word(buf, position + 8))
        total += length
        ends[i + 1] = total
