"""The batches of a window that may hold a record, by the bytes of their records.

Uncompressed batches are searched where they lie. Compressed ones are decompressed, a few at a time
into the same memory; nothing of them is decoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.columnar.decode import GROUP_BYTES, decompressed_batches, runs_of_a_format
from pylog.columnar.group_decoder import BATCH_END, BATCH_START
from pylog.record.batch_layout import COMPRESSION_CODEC_MASK
from pylog.record.byte_search import ByteSearch

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from pylog.columnar.group_decoder import GroupDecoder
    from pylog.record.batch_scan import BatchHeaders
    from pylog.record.compression import Decompressor
    from pylog.record.window import Window


class BatchSearch:
    """Looks for batches whose records hold some bytes. One thread."""

    def __init__(self, required: Sequence[Sequence[bytes]], decompressor: Decompressor) -> None:
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
