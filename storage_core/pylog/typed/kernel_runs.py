"""What kernels of all formats need around them: margins, room, and what they leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from pylog.record_lines.arrow_functions import take
from pylog.typed.decoder import Decoded, DecodedTooLargeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from pylog.typed.decoder import Payloads

MOST_BYTES = 1 << 29
"""Of the payloads of one call: strings are found by int32."""
MOST_ROWS = 1 << 20
MARGIN = 64
"""So many bytes are behind each payload that a kernel gets."""
_GROWTH = 4
"""By how much there is more room if there was too little for a single payload."""
_MOST_ROOM = 1 << 28
"""For strings, without knowing better: pages that are not written to take no memory."""
_MOST_SLOTS = 1 << 26
"""Of all nodes of a domain, unless a single payload has more elements."""
MOST_DECODED = 1 << 29
"""Bytes of slots and payloads of one call."""
_SLOT_BYTES = 9
_FEW = 16
_ELEMENTS = 2.0
"""Of each list of a payload, at first."""
_SHARE = 0.25
"""Of a payload's bytes, those of a node's strings, where there is not room for all."""


class UnreadablePayloadError(ValueError):
    """A payload that is not of its format, or not of its type."""


@dataclass(frozen=True, slots=True)
class PayloadRun:
    """Payloads from ``first`` to ``last``, with a margin behind each."""

    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    first: int
    last: int


def parts_of(payloads: Payloads, first: int, last: int) -> list[PayloadRun]:
    """Return payloads as they are, and a copy of the last ones, which have no margin."""
    data, starts, ends = payloads
    within = ends[first:last] + MARGIN <= data.size
    middle = last if within.all() else first + int(np.argmin(within))
    parts = [PayloadRun(data, starts, ends, first, middle)]
    if middle < last:
        begin = int(starts[middle:last].min())
        copied = np.frombuffer(data[begin:].tobytes() + bytes(MARGIN), dtype=np.uint8)
        parts.append(PayloadRun(copied, starts - begin, ends - begin, middle, last))
    return parts


def ensure_within(payloads: Payloads) -> None:
    """Refuse payloads that lie outside their bytes."""
    wrong = (
        (payloads.starts < 0)
        | (payloads.ends < payloads.starts)
        | (payloads.ends > payloads.data.size)
    )
    if wrong.any():
        place = int(np.argmax(wrong))
        raise ValueError(
            f"payload {place} lies in bytes {payloads.starts[place]} to {payloads.ends[place]} of "
            f"{payloads.data.size}, expected a place within them"
        )


class Usage:
    """How many slots and bytes the payloads that were read needed, as a guess for the next."""

    def __init__(self, domains: Sequence[int], strings: Sequence[int]) -> None:
        self._domains = domains
        self._strings = strings
        nodes = np.bincount(domains, minlength=max(domains) + 1)
        self._nodes = nodes.astype(np.int64)
        self._elements = np.full(nodes.size, _ELEMENTS)
        self._elements[0] = 1.0

    def most_rows(self) -> int:
        """Return for how many payloads there may be room at once."""
        return max(1, min(MOST_ROWS, int(_MOST_SLOTS / (self._elements * self._nodes).max())))

    def room_for(
        self, totals: npt.NDArray[np.int64], longest: int, growth: int
    ) -> tuple[list[int], list[int]]:
        """Return the slots of each domain, and the bytes of each node's strings.

        Raises
        ------
        DecodedTooLargeError
            One payload needs more than a call may hold.
        """
        rows, size = totals.size, int(totals[-1])
        slots = [min(int(each * rows * growth), size) + _FEW for each in self._elements.tolist()]
        slots[0] = rows
        if rows == 1 and self.size_of(np.array(slots)) > _GROWTH * MOST_DECODED:
            raise DecodedTooLargeError
        room = [0] * len(self._domains)
        is_large = size * len(self._strings) > _MOST_ROOM
        for node in self._strings:
            share = min(_SHARE * growth, 1.0) if is_large else 1.0
            room[node] = int(share * size) + longest + 2 * MARGIN
        return slots, room

    def size_of(self, counts: npt.NDArray[np.int64]) -> int:
        """Return how many bytes so many slots of each domain are."""
        return int((counts * self._nodes).sum()) * _SLOT_BYTES

    def learn(self, counts: npt.NDArray[np.int64]) -> None:
        """Take account of how many slots were used, those of the payloads first."""
        self._elements = np.maximum(self._elements, 1.1 * counts / counts[0])
        self._elements[0] = 1.0


class KernelColumns(Protocol):
    """What a kernel writes to."""

    counts: npt.NDArray[np.int64]
    """The slots in use of each domain, those of payloads first."""

    def read(self, part: PayloadRun, left: npt.NDArray[np.uint8]) -> bool:
        """Read payloads; return whether there was room for all."""

    def finish(self, left: npt.NDArray[np.uint8]) -> pa.Array:
        """Return the values; what shows now that it cannot be taken is marked in ``left``."""


def decode_runs(
    payloads: Payloads,
    of: pa.DataType,
    usage: Usage,
    make: Callable[[list[int], list[int]], KernelColumns],
    read: Callable[[bytes], Any],
) -> Decoded:
    """Return the values of payloads: by a kernel, which writes to what is made for each run.

    ``read`` reads a payload that the kernel leaves, or raises `UnreadablePayloadError`.

    Raises
    ------
    DecodedTooLargeError
        Fewer payloads would have to be decoded at once.
    """
    ensure_within(payloads)
    sizes = payloads.ends - payloads.starts
    left = np.zeros(len(payloads), dtype=np.uint8)
    chunks = []
    decoded = 0
    start, growth = 0, 1
    while start < len(payloads):
        most = usage.most_rows() if growth == 1 else 1
        totals = np.cumsum(sizes[start : start + most])
        count = int(np.searchsorted(totals, MOST_BYTES, side="right"))
        if count == 0:
            left[start] = 1
            chunks.append(pa.nulls(1, of))
            start += 1
            continue
        longest = int(sizes[start : start + count].max())
        columns = make(*usage.room_for(totals[:count], longest, growth))
        for part in parts_of(payloads, start, start + count):
            if not columns.read(part, left):
                break
        rows = int(columns.counts[0])
        if not rows:  # a single payload needs more than there was for all
            growth *= _GROWTH
            continue
        if growth == 1:
            usage.learn(columns.counts)
        decoded += usage.size_of(columns.counts) + int(totals[rows - 1])
        if decoded > MOST_DECODED:
            raise DecodedTooLargeError
        chunks.append(columns.finish(left[start : start + rows]))
        start, growth = start + rows, 1
    if not chunks:
        return Decoded(pa.array([], type=of), {})
    values = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
    return with_rest(payloads, values, np.flatnonzero(left), read)


def with_rest(
    payloads: Payloads,
    values: pa.Array,
    left: npt.NDArray[np.int64],
    read: Callable[[bytes], Any],
) -> Decoded:
    """Put what ``read`` makes of payloads in the places where a kernel left nulls."""
    failures: dict[int, str] = {}
    rows, found = [], []
    for row in left.tolist():
        payload = payloads.data[payloads.starts[row] : payloads.ends[row]].tobytes()
        try:
            value = read(payload)
        except UnreadablePayloadError as error:
            failures[row] = str(error)
            continue
        if value is not None:
            rows.append(row)
            found.append(value)
    if rows:
        places = np.arange(len(values), dtype=np.int64)
        places[rows] = np.arange(len(values), len(values) + len(rows))
        rest = pa.array(found, type=values.type)
        values = take(pa.concat_arrays([values, rest]), pa.array(places))
    return Decoded(values, failures)
