"""Offsets of records that do not follow each other, as ``kafka-dump-log`` lists them.

Kafka lists them of every log: compaction and transaction markers leave gaps, too. Up to 4.2 the
first record sets the start, and the last pair is listed first. Since 4.3 the offset before a
segment's first record is -1, so that every segment that does not begin with offset 0 has a pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

MOST_PAIRS = 100_000
"""So many pairs of a file are kept; how many more there are is counted."""

_NONE = -1


class OffsetGaps:
    """The pairs of offsets of consecutive records that are not one apart.

    Parameters
    ----------
    has_start
        Whether offset -1 comes before the first record.
    """

    def __init__(self, *, has_start: bool) -> None:
        self.pairs: list[tuple[int, int]] = []
        self.more = 0
        self._has_last = has_start
        self._first: int | None = None
        self._last = _NONE

    def note(self, offsets: npt.NDArray[np.int64]) -> None:
        """Take in the offsets of the next records."""
        if not offsets.size:
            return
        first = int(offsets[0])
        if self._has_last and first != self._last + 1:
            self._add((self._last, first))
        if self._first is None:
            self._first = first
        places = np.flatnonzero(np.diff(offsets) != 1)
        kept = places[: max(0, MOST_PAIRS - len(self.pairs))]
        self.pairs += zip(offsets[kept].tolist(), offsets[kept + 1].tolist(), strict=True)
        self.more += places.size - kept.size
        self._has_last = True
        self._last = int(offsets[-1])

    def note_part(self, part: OffsetGaps) -> None:
        """Take in what was noted elsewhere of the next records; it was made without a start."""
        if part._first is None:
            return
        if self._has_last and part._first != self._last + 1:
            self._add((self._last, part._first))
        for pair in part.pairs:
            self._add(pair)
        self.more += part.more
        if self._first is None:
            self._first = part._first
        self._has_last = True
        self._last = part._last

    def _add(self, pair: tuple[int, int]) -> None:
        if len(self.pairs) < MOST_PAIRS:
            self.pairs.append(pair)
        else:
            self.more += 1
