"""Kernels: which stretches of a buffer hold some bytes, or a member of a JSON object.

Two bytes of what is looked for, rare ones if the caller chooses well, are compared at their places,
32 positions at a time; only where both are found, the rest is looked at.

A member is a name in quotes, a colon, and a value, with JSON's space between them. Every spelling
of the value is found, and some others: what is found has to be parsed. A number with an exponent is
taken for any number, an escape in a string for any rest.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pylog.kernels import helper, intrinsic, kernel

STATUS_OK = 0
STATUS_BAD_STRETCH = 1

PLACES = 32


@intrinsic("match_bytes")
def _matches(buf: npt.NDArray[np.uint8], at: int, byte: int, other_at: int, other: int) -> int:
    """Return a bit for each of the 32 places where both bytes are."""
    mask = np.int64(0)
    for i in range(PLACES):
        mask |= np.int64(buf[at + i] == byte and buf[other_at + i] == other) << i
    return mask


@intrinsic("lowest_bit")
def _lowest(mask: int) -> int:
    """Return the number of the lowest bit that is set; there is one."""
    number = np.int64(0)
    while (mask >> number) & 1 == 0:
        number += 1
    return number


@helper
def _is_at(buf: npt.NDArray[np.uint8], at: int, needle: npt.NDArray[np.uint8]) -> bool:
    for i in range(needle.size):  # noqa: SIM110 - a loop is what Numba compiles
        if buf[at + i] != needle[i]:
            return False
    return True


@helper
def _next(
    buf: npt.NDArray[np.uint8],
    at: int,
    end: int,
    needle: npt.NDArray[np.uint8],
    first: int,
    second: int,
) -> int:
    """Return where in ``buf[at:end]`` the needle begins, or -1; all of it lies in the buffer."""
    last = end - needle.size  # where it may begin at the latest
    one = needle[first]
    other = needle[second]
    while at + PLACES - 1 <= last:
        mask = _matches(buf, at + first, one, at + second, other)
        while mask != 0:
            place: int = at + _lowest(mask)
            if _is_at(buf, place, needle):
                return place
            mask &= mask - 1
        at += PLACES
    while at <= last:
        if buf[at + first] == one and buf[at + second] == other and _is_at(buf, at, needle):
            return at
        at += 1
    return np.int64(-1)


@helper
def _are_places(needle: npt.NDArray[np.uint8], first: int, second: int) -> bool:
    return first >= 0 and second >= 0 and first < needle.size and second < needle.size


@kernel(writes=("found",))
def find_bytes(
    buf: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    needle: npt.NDArray[np.uint8],
    first: int,
    second: int,
    found: npt.NDArray[np.uint8],
) -> tuple[int, int]:
    """Set ``found`` to 1 for each stretch ``buf[start:end]`` that holds ``needle``, else to 0."""
    if not _are_places(needle, first, second):
        return STATUS_BAD_STRETCH, 0
    for i in range(found.size):
        start = starts[i]
        end = ends[i]
        if start < 0 or end < start or end > buf.size:
            return STATUS_BAD_STRETCH, i
        found[i] = 1 if _next(buf, start, end, needle, first, second) >= 0 else 0
    return STATUS_OK, found.size


@helper
def _after_space(buf: npt.NDArray[np.uint8], at: int, end: int) -> int:
    while at < end and (buf[at] == 0x20 or buf[at] == 0x0A or buf[at] == 0x0D or buf[at] == 0x09):
        at += 1
    return at


@helper
def _is_spelled(
    buf: npt.NDArray[np.uint8], at: int, end: int, value: npt.NDArray[np.uint8]
) -> bool:
    """Whether ``buf[at:end]`` begins like the value, or with an escape instead of its rest."""
    for i in range(value.size):
        if at + i >= end:
            return False
        if buf[at + i] == 0x5C:  # a backslash
            return True
        if buf[at + i] != value[i]:
            return False
    return True


@helper
def _is_number(buf: npt.NDArray[np.uint8], at: int, end: int, value: npt.NDArray[np.uint8]) -> bool:
    """Whether ``buf[at:end]`` begins with the number, or with one that has an exponent."""
    if value.size == 1 and value[0] == 0x30 and at < end and buf[at] == 0x2D:
        at += 1  # minus zero
    is_same = True
    has_point = False
    size = 0
    while at + size < end:
        byte = np.int64(buf[at + size])
        if byte | 0x20 == 0x65:  # E, e
            return True
        is_point = byte == 0x2E
        if not is_point and byte != 0x2D and (byte < 0x30 or byte > 0x39):
            break
        if size < value.size:
            is_same = is_same and byte == value[size]
        else:  # only a fraction of zeros
            is_same = is_same and (is_point or (has_point and byte == 0x30))
        has_point = has_point or is_point
        size += 1
    return is_same and size >= value.size


@helper
def _may_be(buf: npt.NDArray[np.uint8], at: int, end: int, value: npt.NDArray[np.uint8]) -> bool:
    """Whether a colon follows, and what may be the value; any if that is empty."""
    at = _after_space(buf, at, end)
    if at >= end or buf[at] != 0x3A:
        return False
    if value.size == 0:
        return True
    at = _after_space(buf, at + 1, end)
    if value[0] == 0x2D or (value[0] >= 0x30 and value[0] <= 0x39):
        is_number: bool = _is_number(buf, at, end, value)
        return is_number
    is_spelled: bool = _is_spelled(buf, at, end, value)
    return is_spelled


@kernel(writes=("found",))
def find_members(
    buf: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    name: npt.NDArray[np.uint8],
    first: int,
    second: int,
    value: npt.NDArray[np.uint8],
    found: npt.NDArray[np.uint8],
) -> tuple[int, int]:
    """Set ``found`` to 1 for each stretch with a member that may have this value, else to 0.

    ``name`` has its quotes, and so has ``value`` if it is a string. A number has neither exponent
    nor zeros at the end of a fraction. Of anything else it is the first byte; an empty one stands
    for any value.
    """
    if not _are_places(name, first, second):
        return STATUS_BAD_STRETCH, 0
    for i in range(found.size):
        at = starts[i]
        end = ends[i]
        if at < 0 or end < at or end > buf.size:
            return STATUS_BAD_STRETCH, i
        found[i] = 0
        at = _next(buf, at, end, name, first, second)
        while at >= 0:
            if _may_be(buf, at + name.size, end, value):
                found[i] = 1
                break
            at = _next(buf, at + 1, end, name, first, second)
    return STATUS_OK, found.size
