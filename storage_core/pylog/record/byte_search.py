"""Bytes looked for in many stretches of a buffer at once, before anything in them is decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.kernels import find_bytes as kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

_SAMPLE_BYTES = 4096


class ByteSearch:
    """Looks for stretches that hold at least one byte string of each of several groups.

    Parameters
    ----------
    required
        The groups; byte strings of one byte or more. Without a group, every stretch is found.
    """

    def __init__(self, required: Sequence[Sequence[bytes]]) -> None:
        groups = [[np.frombuffer(needle, dtype=np.uint8) for needle in group] for group in required]
        # What is long is rare, as a rule, and what comes first leaves less for the next.
        self._groups = sorted(groups, key=lambda group: -min(each.size for each in group))

    def mask(
        self,
        buffer: npt.NDArray[np.uint8],
        starts: npt.NDArray[np.int64],
        ends: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.bool_]:
        """Return which of the stretches ``buffer[start:end]`` are found.

        Parameters
        ----------
        buffer
            uint8, read-only.
        starts, ends
            int64, shape (stretches,); each within the buffer.
        """
        found = np.ones(starts.size, dtype=np.bool_)
        counts = _sampled_counts(buffer)
        for group in self._groups:
            rest = np.flatnonzero(found)
            if not rest.size:
                break
            found[rest] = self._any_of(group, buffer, starts[rest], ends[rest], counts)
        return found

    def _any_of(
        self,
        group: Sequence[npt.NDArray[np.uint8]],
        buffer: npt.NDArray[np.uint8],
        starts: npt.NDArray[np.int64],
        ends: npt.NDArray[np.int64],
        counts: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.bool_]:
        found = np.zeros(starts.size, dtype=np.bool_)
        for needle in group:
            rest = np.flatnonzero(~found)
            if not rest.size:
                break
            first, second = _two_rare_places(needle, counts)
            has_it = np.empty(rest.size, dtype=np.uint8)
            status, at = kernel.find_bytes(
                buffer,
                np.ascontiguousarray(starts[rest]),
                np.ascontiguousarray(ends[rest]),
                needle,
                first,
                second,
                has_it,
            )
            if status != kernel.STATUS_OK:
                msg = f"stretch {at} does not lie in the buffer"
                raise ValueError(msg)
            found[rest] = has_it
        return found


def _sampled_counts(buffer: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Return about how often each byte occurs."""
    step = max(1, buffer.size // _SAMPLE_BYTES)
    return np.bincount(buffer[::step][:_SAMPLE_BYTES], minlength=256)


def _two_rare_places(
    needle: npt.NDArray[np.uint8], counts: npt.NDArray[np.int64]
) -> tuple[int, int]:
    """Return where in ``needle`` the two rarest bytes stand; twice the same if it is one byte."""
    order = np.argsort(counts[needle], kind="stable")
    return int(order[0]), int(order[min(1, order.size - 1)])
