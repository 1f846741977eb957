"""Kernel: Protobuf messages to the buffers of columns; a message that is not plain is left.

A *program* says what is read: `COLUMNS` words for each node of a type, as for JSON (see
`pylog.kernels.json_values`). A message is a struct, a repeated field a list, and a map a list of
entries. Values are words in ``words``, of strings, bytes and lists their lengths, and the bytes of
a node lie one after the other in ``out``. A field that may not be null has its value where it was
set, and 0 elsewhere.

What this kernel takes is what `pylog.typed.protobuf_reader` makes of the same bytes; all else is
*left*: what is wrong, and what is rare, such as two members of a oneof, or a key that comes twice.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pylog.kernels import helper, intrinsic, kernel
from pylog.kernels.helpers import character, copy_bytes, load_word

DONE = 0
FULL = 1
"""No room: an element more than there are slots, or more bytes; no slot of that message counts."""
BAD_ARGUMENTS = 2

# Columns of the program.
KIND = 0
WIRE = 1
"""The wire type of its values, of a list those of its elements."""
WORDS = 2
VALID = 3
DOMAIN = 4
FIRST_CHILD = 5
CHILDREN = 6
CHILD_DOMAIN = 7
NUMBER = 8
"""Of the field."""
TABLE = 9
"""Of a struct: where its table of fields begins, and a mask of its size."""
TABLE_MASK = 10
OUT_END = 11
"""Where the room for its bytes ends."""
ONEOF = 12
"""Where the words are that say which member of its oneof is set; -1 if it is in none."""
LEAST = 13
MOST = 14
"""Of an enum: what its numbers lie between."""
FLAGS = 15
COLUMNS = 16
LOG_COLUMNS = 4

IS_REQUIRED = 1
HAS_REQUIRED = 2
IS_SINGLE = 4
"""May not come twice: a message that is kept as its bytes."""
IS_MAP = 8

# Kinds of nodes.
STRUCT = 0
LIST = 1
STRING = 2
BYTES = 3
INT64 = 4
"""Of either sign."""
INT32 = 5
ENUM = 6
UINT32 = 7
SINT32 = 8
SINT64 = 9
BOOL = 10
FIXED64 = 11
FIXED32 = 12
SFIXED32 = 13

MOST_DEPTH = 64
MARGIN = 64
"""So many bytes lie behind each message, and are left behind strings."""
MOST_KEYS = 64
"""Of a map."""
FRAME = 4
_LEFT = -1
_HIGH = -0x7F7F7F7F7F7F7F80
_VARINT = 0
_EIGHT = 1
_DELIMITED = 2
_FOUR = 5


@intrinsic("item_at")
def _item(values: npt.NDArray[np.int64], at: int) -> int:
    """Return an item at an index that is not negative."""
    return np.int64(values[at])


@intrinsic("put_item")
def _put(values: npt.NDArray[np.int64], at: int, item: int) -> None:
    values[at] = item


@helper
def _varint(buf: npt.NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """Return a number of 64 bits and where it ends; -1 if it does not fit."""
    if at >= end:
        return np.int64(0), np.int64(_LEFT)
    byte = _item(buf, at)
    if byte < 0x80:
        return np.int64(byte), np.int64(at + 1)
    value = byte & 0x7F
    for i in range(1, 10):
        if at + i >= end:
            break
        byte = _item(buf, at + i)
        if i == 9 and byte > 1:
            break
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return np.int64(value), np.int64(at + i + 1)
    return np.int64(0), np.int64(_LEFT)


@helper
def _length(buf: npt.NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """Return a length that fits and where it ends; -1 if it does not."""
    length, at = _varint(buf, at, end)
    if at < 0 or length < 0 or length > end - at:
        return np.int64(0), np.int64(_LEFT)
    return np.int64(length), np.int64(at)


@helper
def _number(buf: npt.NDArray[np.uint8], at: int, end: int, kind: int) -> tuple[int, int]:
    """Return a value as a word, and where it ends; -1 if it does not fit."""
    if kind >= FIXED64:
        width = 8 if kind == FIXED64 else 4
        if end - at < width:
            return np.int64(0), np.int64(_LEFT)
        word = load_word(buf, at)
        if kind != FIXED64:
            word &= 0xFFFFFFFF
            if kind == SFIXED32:
                word = (word ^ 0x80000000) - 0x80000000
        return np.int64(word), np.int64(at + width)
    value, at = _varint(buf, at, end)
    if INT32 <= kind <= ENUM:
        value = ((value & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000
    elif kind == UINT32:
        value &= 0xFFFFFFFF
    elif kind == SINT32:
        value &= 0xFFFFFFFF
        value = (value >> 1) ^ -(value & 1)
    elif kind == SINT64:
        value = ((value >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1)
    elif kind == BOOL:
        value = np.int64(value != 0)
    return np.int64(value), np.int64(at)


@helper
def _after_field(buf: npt.NDArray[np.uint8], at: int, end: int, wire: int) -> int:
    """Return where a field ends that is passed over; -1 if it does not fit, or is a group."""
    if wire == _VARINT:
        _, at = _varint(buf, at, end)
        return np.int64(at)
    if wire == _DELIMITED:
        length, at = _length(buf, at, end)
        return np.int64(at + length if at >= 0 else _LEFT)
    width = np.int64(8 if wire == _EIGHT else 4)
    if (wire != _EIGHT and wire != _FOUR) or end - at < width:  # noqa: PLR1714
        return np.int64(_LEFT)
    return np.int64(at + width)


@helper
def _is_utf8(buf: npt.NDArray[np.uint8], at: int, end: int) -> bool:
    while at + 8 <= end and (load_word(buf, at) & _HIGH) == 0:
        at += 8
    while at < end:
        if _item(buf, at) < 0x80:
            at += 1
            continue
        length, is_sound = character(buf, at, end)
        if not is_sound:
            return False
        at += length
    return True


@helper
def _field(
    number: int, program: npt.NDArray[np.int64], struct: int, tables: npt.NDArray[np.int64]
) -> int:
    """Return the field of a struct that has a number; -1 if there is none."""
    mask = program[struct + TABLE_MASK]
    place = number & mask
    while True:
        field = tables[program[struct + TABLE] + place]
        if field < 0 or program[(field << LOG_COLUMNS) + NUMBER] == number:
            return np.int64(field)
        place = (place + 1) & mask


@helper
def _has_required(
    program: npt.NDArray[np.int64], struct: int, slot: int, valid: npt.NDArray[np.uint8]
) -> bool:
    """Whether all fields of a struct that are required have a value."""
    first = program[struct + FIRST_CHILD]
    for field in range(first, first + program[struct + CHILDREN]):
        row = field << LOG_COLUMNS
        if program[row + FLAGS] & IS_REQUIRED and valid[program[row + VALID] + slot] == 0:
            return False
    return True


@helper
def _is_known(program: npt.NDArray[np.int64], row: int, value: int) -> bool:
    """Whether a number is one of an enum's, as far as the kernel knows them."""
    return bool(_item(program, row + LEAST) <= value <= _item(program, row + MOST))


@helper
def _has_key(
    program: npt.NDArray[np.int64],
    list_row: int,
    slot: int,
    last: int,
    words: npt.NDArray[np.int64],
    out: npt.NDArray[np.uint8],
    out_ends: npt.NDArray[np.int64],
) -> bool:
    """Whether the key of a map's last entry is one of those before it, or they are too many."""
    entry = program[list_row + FIRST_CHILD] << LOG_COLUMNS
    key = program[entry + FIRST_CHILD]
    row = key << LOG_COLUMNS
    count = words[program[list_row + WORDS] + slot]
    base = program[row + WORDS]
    first = last - count + 1
    if count > MOST_KEYS:
        return True
    value = words[base + last]
    end = out_ends[key]
    place = np.int64(end - value)
    for i in range(last - 1, first - 1, -1):
        is_same = words[base + i] == value
        if program[row + KIND] == STRING:
            place -= words[base + i]
            if is_same:
                for k in range(value):
                    if out[place + k] != out[end - value + k]:
                        is_same = False
                        break
        if is_same:
            return True
    return False


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
            if kind != STRUCT:
                if valid[place] != 0 and STRING <= kind <= BYTES:
                    out_ends[node] -= words[program[row + WORDS] + slot]
                words[program[row + WORDS] + slot] = 0
            if program[row + ONEOF] >= 0:
                words[program[row + ONEOF] + slot] = 0
            valid[place] = 0


@kernel(
    writes=(
        *("next_fields", "words", "valid", "counts", "slots", "out", "out_ends"),
        *("left", "stack"),
    ),
)
def read_protobuf_values(
    buf: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    first: int,
    last: int,
    program: npt.NDArray[np.int64],
    tables: npt.NDArray[np.int64],
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
) -> tuple[int, int]:
    """Read messages from ``first`` to ``last`` into slots; return a status and where it came up.

    ``valid`` and ``words`` are 0 everywhere before. ``counts`` are the slots in use of each domain,
    ``slots`` is room for as many; ``out_ends`` is where the bytes of each node end. ``left`` is set
    to 1 for a message that is not taken, whose slot is null.
    """
    for message in range(first, last):
        if counts[0] >= capacities[0]:
            return FULL, message
        start = starts[message]
        stop = ends[message]
        if start < 0 or stop < start or stop + MARGIN > buf.size:
            return BAD_ARGUMENTS, message
        for domain in range(counts.size):
            slots[domain] = counts[domain]
        slot = np.int64(counts[0])
        slots[0] += 1
        is_full = False
        is_taken = False
        depth = np.int64(0)
        struct = np.int64(0)
        before = np.int64(0)
        at = np.int64(start)
        valid[program[VALID] + slot] = 1
        while True:
            if at >= stop:
                flags = _item(program, struct + FLAGS)
                if at > stop or (
                    flags & HAS_REQUIRED and not _has_required(program, struct, slot, valid)
                ):
                    break
                if depth == 0:
                    is_taken = True
                    break
                depth -= 1
                top = depth * FRAME
                entry = np.int64(slot)
                struct = _item(stack, top)
                slot = _item(stack, top + 1)
                stop = _item(stack, top + 2)
                before = _item(stack, top + 3)
                row = (before >> 1) << LOG_COLUMNS
                if _item(program, row + FLAGS) & IS_MAP and _has_key(
                    program, row, slot, entry, words, out, out_ends
                ):
                    break
                continue
            tag = _item(buf, at)
            at += 1
            if tag >= 0x80:
                tag, at = _varint(buf, at - 1, stop)
                if at < 0 or tag >> 32:
                    break
            wire = tag & 7
            number = tag >> 3
            field = _item(next_fields, before)
            if field < 0 or _item(program, (field << LOG_COLUMNS) + NUMBER) != number:
                if number == 0:
                    break
                field = np.int64(_field(number, program, struct, tables))
                if field < 0:
                    at = np.int64(_after_field(buf, at, stop, wire))
                    if at < 0:
                        break
                    continue
                _put(next_fields, before, field)
            before = np.int64(2 * field + 1)
            row = field << LOG_COLUMNS
            kind = _item(program, row + KIND)
            node = np.int64(field)
            place = np.int64(slot)
            if wire != _item(program, row + WIRE):
                if kind != LIST or wire != _DELIMITED:
                    break
                # Packed: values without tags.
                element = _item(program, row + FIRST_CHILD) << LOG_COLUMNS
                domain = _item(program, row + CHILD_DOMAIN)
                kind = _item(program, element + KIND)
                length, at = _length(buf, at, stop)
                if at < 0:
                    break
                end = at + length
                place = _item(slots, domain)
                many = np.int64(0)
                while at < end:
                    if place >= _item(capacities, domain):
                        is_full = True
                        break
                    value, at = _number(buf, at, end, kind)
                    if kind == ENUM and not _is_known(program, element, value):
                        at = np.int64(_LEFT)
                    if at < 0:
                        break
                    _put(words, _item(program, element + WORDS) + place, value)
                    _put(valid, _item(program, element + VALID) + place, 1)
                    place += 1
                    many += 1
                _put(slots, domain, place)
                at_words = _item(program, row + WORDS) + slot
                _put(words, at_words, _item(words, at_words) + many)
                if at != end:
                    break
                continue
            if kind == LIST:
                domain = _item(program, row + CHILD_DOMAIN)
                place = _item(slots, domain)
                if place >= _item(capacities, domain):
                    is_full = True
                    break
                _put(slots, domain, place + 1)
                at_words = _item(program, row + WORDS) + slot
                _put(words, at_words, _item(words, at_words) + 1)
                node = _item(program, row + FIRST_CHILD)
                row = node << LOG_COLUMNS
                kind = _item(program, row + KIND)
            oneof = _item(program, row + ONEOF)
            if oneof >= 0:
                member = _item(words, oneof + slot)
                if member != 0 and member != field + 1:
                    break
                _put(words, oneof + slot, field + 1)
            validity = _item(program, row + VALID) + place
            if kind == STRUCT:
                length, at = _length(buf, at, stop)
                if at < 0 or depth == MOST_DEPTH:
                    break
                top = depth * FRAME
                _put(stack, top, struct)
                _put(stack, top + 1, slot)
                _put(stack, top + 2, stop)
                _put(stack, top + 3, before)
                depth += 1
                struct = np.int64(row)
                slot = np.int64(place)
                stop = np.int64(at + length)
                before = np.int64(2 * node)
                _put(valid, validity, 1)
                continue
            at_words = _item(program, row + WORDS) + place
            if kind <= BYTES:
                length, at = _length(buf, at, stop)
                if at < 0:
                    break
                to = _item(out_ends, node)
                if _item(valid, validity):
                    if _item(program, row + FLAGS) & IS_SINGLE:
                        break
                    to -= _item(words, at_words)
                if to + length + MARGIN > _item(program, row + OUT_END):
                    is_full = True
                    break
                if kind == STRING and not _is_utf8(buf, at, at + length):
                    break
                copy_bytes(out, to, buf, at, length)
                _put(out_ends, node, to + length)
                _put(words, at_words, length)
                at += length
            else:
                value, at = _number(buf, at, stop, kind)
                if at < 0 or (kind == ENUM and not _is_known(program, row, value)):
                    break
                _put(words, at_words, value)
            _put(valid, validity, 1)
        if is_taken:
            for domain in range(counts.size):
                counts[domain] = slots[domain]
            continue
        _take_back(program, counts, slots, words, valid, out_ends)
        if is_full:
            return FULL, message
        left[message] = 1
        counts[0] += 1
    return DONE, last
