"""Which batch has a wrong offset, where offsets do not go up.

A base offset lies outside its batch's checksum. What bounds it are its neighbours, the file's name
and the name of the next file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Int64Array = npt.NDArray[np.int64]

_HIGHEST_OFFSET = 2**63 - 1
"""No batch's: the offset after it does not exist."""


class Misplaced(NamedTuple):
    """Batches ``[first, last]`` whose offsets cannot be believed, by index; and why."""

    first: int
    last: int
    reason: str


def find_misplaced(
    offsets: Int64Array,
    last_offsets: Int64Array,
    lowest_offset: int,
    limit_offset: int | None,
) -> Misplaced | None:
    """Return the first batch whose offsets go back or leave the segment, None if all go up.

    Parameters
    ----------
    offsets, last_offsets
        Of consecutive batches, at least one.
    lowest_offset
        The first one's offset is not below.
    limit_offset
        All are below; None if no segment follows.

    Notes
    -----
    Differs from Kafka: it takes a batch that ends at offset 2^63-1, and the offset after it is
    negative then.
    """
    bad = last_offsets < offsets
    bad[1:] |= offsets[1:] <= last_offsets[:-1]
    bad[0] |= offsets[0] < lowest_offset
    limit = _HIGHEST_OFFSET if limit_offset is None else limit_offset
    if last_offsets[-1] < limit and not bad.any():
        return None
    bad |= last_offsets >= limit  # any of them, where they do not go up
    index = int(np.argmax(bad))
    if last_offsets[index] >= limit:
        first = index
    else:
        first = _first_misplaced(offsets, last_offsets, index, lowest_offset)
    lowest = lowest_offset if index == 0 else int(last_offsets[index - 1]) + 1
    is_too_high = limit_offset is not None or last_offsets[index] >= limit
    below = f" and below {limit}" if is_too_high else ""
    reason = (
        f"batch has offsets {offsets[index]} to {last_offsets[index]}, "
        f"expected from {lowest} on{below}"
    )
    is_certain = first == index or _is_borne_out(offsets, last_offsets, index, lowest_offset)
    return Misplaced(first, first if is_certain else index, reason)


def _before(last_offsets: Int64Array, index: int, lowest_offset: int) -> int:
    """Return the offset after the batch before the one before ``index``."""
    return lowest_offset if index < 2 else int(last_offsets[index - 2]) + 1


def _first_misplaced(
    offsets: Int64Array, last_offsets: Int64Array, index: int, lowest_offset: int
) -> int:
    """Return ``index``, or the one before it if that has gone too far up."""
    offset = int(offsets[index])
    if index == 0 or last_offsets[index] < offset:
        return index
    before = _before(last_offsets, index, lowest_offset)
    # Without the one before, this one would have to fit; if it follows without a gap, it is right.
    if offset < before or offsets[index - 1] == before:
        return index
    return index - 1


def _is_borne_out(
    offsets: Int64Array, last_offsets: Int64Array, index: int, lowest_offset: int
) -> bool:
    """Whether batch ``index`` joins on to its neighbours once the one before it is left out."""
    span = int(last_offsets[index - 1]) - int(offsets[index - 1]) + 1
    if int(offsets[index]) - _before(last_offsets, index, lowest_offset) == span:
        return True
    return index + 1 < len(offsets) and bool(offsets[index + 1] == last_offsets[index] + 1)
