"""The batches of a window that may hold a record, by the bytes of their records.

Uncompressed batches are searched where they lie. Compressed ones are decompressed, a few at a time
into the same memory; nothing of them is decoded.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.columnar.decode import GROUP_BYTES, decompressed_batches, runs_of_a_format
from pylog.columnar.group_decoder import BATCH_END, BATCH_START
from pylog.columnar.json_path import Member
from pylog.kernels import find_bytes as kernel
from pylog.record.batch_header import COMPRESSION_CODEC_MASK

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from pylog.columnar.group_decoder import GroupDecoder
    from pylog.columnar.json_path import Needle
    from pylog.record.batch_scan import BatchHeaders, Window
    from pylog.record.compression import Decompressor


_SAMPLE_BYTES = 4096


class ByteSearch:
    """Looks for stretches that hold at least one needle of each of several groups."""

    def __init__(self, required: Sequence[Sequence[Needle]]) -> None:
        # What is long is rare, as a rule, and what comes first leaves less for the next. Members
        # come last: their names are in most documents.
        groups = sorted(required, key=lambda group: (_is_member(group), -min(map(_size, group))))
        self._groups = [_Alternatives(group) for group in groups]

    def mask(
        self,
        buffer: npt.NDArray[np.uint8],
        starts: npt.NDArray[np.int64],
        ends: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.bool_]:
        """Return which of the stretches ``buffer[start:end]`` are found."""
        found = np.ones(starts.size, dtype=np.bool_)
        stretches = _Stretches(buffer, starts, ends, _sampled_counts(buffer))
        for group in self._groups:
            rest = np.flatnonzero(found)
            if not rest.size:
                break
            found[rest] = group.mask(stretches.of(rest))
        return found


def _is_member(group: Sequence[Needle]) -> bool:
    return isinstance(group[0], Member)


def _size(needle: Needle) -> int:
    return len(needle.name if isinstance(needle, Member) else needle)


class _Alternatives:
    """Needles of which one is enough."""

    def __init__(self, group: Sequence[Needle]) -> None:
        first, *others = group
        texts = [each for each in others if isinstance(each, bytes)]
        beginning = os.path.commonprefix(texts)  # noqa: RUF071 - of bytes, not of paths
        self._first = _Needle(first)
        self._others = [_Needle(each) for each in others]
        # What does not have the bytes that the others begin with has none of them.
        self._beginning = _Needle(beginning) if beginning and len(others) > 1 else None

    def mask(self, stretches: _Stretches) -> npt.NDArray[np.bool_]:
        found = self._first.mask(stretches)
        rest = np.flatnonzero(~found)
        if self._beginning is not None and rest.size:
            rest = rest[self._beginning.mask(stretches.of(rest))]
        for each in self._others:
            if not rest.size:
                break
            has_it = each.mask(stretches.of(rest))
            found[rest] = has_it
            rest = rest[~has_it]
        return found


class _Stretches(NamedTuple):
    """Parts of a buffer, and about how often each byte is in it."""

    buffer: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    def of(self, rows: npt.NDArray[np.intp]) -> _Stretches:
        return self._replace(starts=self.starts[rows], ends=self.ends[rows])


class _Needle:
    """The bytes for which one call of a kernel looks."""

    def __init__(self, needle: Needle) -> None:
        name, value = needle if isinstance(needle, Member) else (needle, None)
        self._bytes = np.frombuffer(name, dtype=np.uint8)
        self._value = None if value is None else np.frombuffer(value, dtype=np.uint8)

    def mask(self, stretches: _Stretches) -> npt.NDArray[np.bool_]:
        has_it = np.empty(stretches.starts.size, dtype=np.uint8)
        where = stretches.buffer, stretches.starts, stretches.ends
        needle = self._bytes, *_two_rare_places(self._bytes, stretches.counts)
        if self._value is None:
            status, at = kernel.find_bytes(*where, *needle, has_it)
        else:
            status, at = kernel.find_members(*where, *needle, self._value, has_it)
        if status != kernel.STATUS_OK:
            msg = f"stretch {at} does not lie in the buffer"
            raise ValueError(msg)
        return has_it.view(np.bool_)


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


class BatchSearch:
    """Looks for batches whose records hold some bytes. One thread."""

    def __init__(self, required: Sequence[Sequence[Needle]], decompressor: Decompressor) -> None:
        self._search = ByteSearch(required) if required else None
        self._decompressor = decompressor

    def mask(self, window: Window) -> npt.NDArray[np.bool_]:
        """Return which of the window's batches may hold such a record: all others do not."""
        if self._search is None:
            return np.ones(len(window.headers), dtype=np.bool_)
        masks = []
        for decoder, run in runs_of_a_format(window.headers):
            table = decoder.describe_batches(run)
            if run.traits.any_has(COMPRESSION_CODEC_MASK):
                masks.append(self._in_decompressed(window, run, table, decoder, self._search))
            else:
                bounds = table[:, BATCH_START], table[:, BATCH_END]
                masks.append(self._search.mask(window.buffer, *bounds))
        return np.concatenate(masks) if masks else np.ones(0, dtype=np.bool_)

    def _in_decompressed(
        self,
        window: Window,
        run: BatchHeaders,
        table: npt.NDArray[np.int64],
        decoder: GroupDecoder,
        search: ByteSearch,
    ) -> npt.NDArray[np.bool_]:
        scratch = self._decompressor.buffer
        scratch.clear()
        masks: list[npt.NDArray[np.bool_]] = []
        placed: list[tuple[int, int]] = []
        batches = decompressed_batches(window, run, table, decoder, self._decompressor)
        for index, bounds in batches:
            placed.append(bounds)
            if scratch.length < GROUP_BYTES and index < len(run) - 1:
                continue
            starts, ends = np.array(placed, dtype=np.int64).T
            records = np.frombuffer(scratch.view(0, max(1, scratch.length)), dtype=np.uint8)
            masks.append(search.mask(records, starts, ends))
            del records  # or the memory that it views would outlive the buffer's growing
            placed.clear()
            scratch.clear()
        return np.concatenate(masks)
