"""Findings about batches of the formats v0 and v1: what bugs of old brokers have left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.inspect.findings.finding import Finding
from pylog.inspect.findings.severity import Severity
from pylog.record.batch_header import codec_of
from pylog.record.batch_layout import MAGIC_OFFSET
from pylog.record.compression import Decompressor
from pylog.record.legacy_batch import wrapped_stream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.inspect.findings.log_walk import SegmentWalk
    from pylog.record.window import Window


class LegacyFindings:
    """Looks into compressed messages of format v1 for messages of format v0. One thread.

    The log cleaner of brokers before 0.10.2 wrote such (KAFKA-4298). All messages in one are of the
    same format then, so that the first one tells.

    Parameters
    ----------
    max_decompressed_bytes
        Messages that have more are not looked into.
    """

    def __init__(self, max_decompressed_bytes: int) -> None:
        self._decompressor = Decompressor(max_decompressed_bytes)
        self._count = 0
        self._first: Finding | None = None

    def add(self, walk: SegmentWalk, window: Window) -> None:
        """Look into the compressed messages of a window."""
        headers = window.headers
        if headers.traits.all_v2:
            return
        view = window.buffer.data
        for at in np.flatnonzero((headers.magics == 1) & (headers.codec_ids != 0)).tolist():
            start, size = int(headers.positions[at]), int(headers.sizes_bytes[at])
            if not self._holds_v0(view[start : start + size], int(headers.codec_ids[at])):
                continue
            self._count += 1
            if self._first is None:
                position = window.file_position + start
                offset = int(headers.last_offsets[at])
                self._first = Finding(
                    Severity.INFO,
                    "mixed_wrapper",
                    walk.segment.file_path(),
                    "",
                    position,
                    position + size,
                    offset,
                    offset + 1,
                )

    def _holds_v0(self, entry: memoryview, codec_id: int) -> bool:
        self._decompressor.buffer.clear()
        try:
            stream = wrapped_stream(entry, 1)
            start, end = self._decompressor.append(codec_of(codec_id, 1), stream, 1)
        except (CorruptRecordError, InvalidRecordError):
            return False  # a finding of whoever decodes it
        inner = self._decompressor.buffer.view(start, end)
        return len(inner) > MAGIC_OFFSET and inner[MAGIC_OFFSET] == 0

    def findings(self) -> Iterator[Finding]:
        """Yield one finding if there is such a message, once all windows have been added."""
        if self._first is not None:
            counted = "1 compressed message" if self._count == 1 else f"{self._count} of them"
            message = (
                "a compressed message of format v1 holds messages of format v0, as the cleaner of "
                f"brokers before 0.10.2 left them (KAFKA-4298); {counted} in the log"
            )
            yield self._first._replace(message=message)
