"""The largest records that come by."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Int64Array = npt.NDArray[np.int64]


class LargeRecord(NamedTuple):
    """A record by its place; orders by size.

    Attributes
    ----------
    size_bytes
        What it takes of its batch before compression, as a record of format v2.
    source
        Which of the logs it is in.
    """

    size_bytes: int
    source: int
    offset: int


class LargestRecords:
    """Keeps the largest of the records that it is given. One thread."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[LargeRecord] = []

    def add(self, sizes: Int64Array, offsets: Int64Array, source: int) -> None:
        """Look at some records."""
        rows = np.arange(sizes.size)
        if len(self._kept) >= self._most:
            rows = np.flatnonzero(sizes > self._kept[-1].size_bytes)
        # Stable: of records of one size the first ones are kept, whenever one looks.
        rows = rows[np.argsort(-sizes[rows], kind="stable")[: self._most]]
        pairs = zip(sizes[rows].tolist(), offsets[rows].tolist(), strict=True)
        self._keep([LargeRecord(size, source, offset) for size, offset in pairs])

    def merge(self, other: LargestRecords) -> None:
        """Look at those of another one."""
        self._keep(other._kept)

    def __iter__(self) -> Iterator[LargeRecord]:
        """Yield them, the largest first."""
        return iter(self._kept)

    def _keep(self, found: list[LargeRecord]) -> None:
        if found:
            kept = sorted([*self._kept, *found], key=lambda each: (-each[0], each[1], each[2]))
            self._kept = kept[: self._most]
