"""How a scan reads: what all of its readers have in common."""

from __future__ import annotations

from dataclasses import dataclass

from pylog.log_file.segment_windows import DEFAULT_WINDOW_BYTES, WindowMemory
from pylog.reading.damage import ReadMode
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES
from pylog.record.compression import Decompressor


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The arguments of `pylog.scan` that every reader of one scan takes."""

    mode: ReadMode = ReadMode.FAILFAST
    window_bytes: int = DEFAULT_WINDOW_BYTES
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
    threads: int = 1


class ReadMemory:
    """What readers use one after the other: fresh memory would cost more than small tasks do."""

    def __init__(self, options: ReadOptions) -> None:
        self.windows = WindowMemory()
        self.decompressor = Decompressor(options.max_decompressed_bytes)
