"""The codec library alone on the same batches: the floor under every reader of compressed logs.

Batches and blocks are found before the clock starts, no CRC is checked, nothing is decoded.
Several libraries can serve one codec; the fastest here and now is the peer.
"""

from collections.abc import Callable, Iterator

import cramjam
import lz4.block
import lz4.frame
import zstandard
from isal import isal_zlib

from benchmarks.batches import spans
from benchmarks.data_sets import Bench, DataSet
from benchmarks.framing import LZ4_BLOCK_BYTES, SNAPPY_BLOCK_BYTES, lz4_blocks, snappy_blocks
from benchmarks.measuring import Run, ensure_equal, timed

_GZIP_WBITS = 31
_TRIALS = 2

Work = Callable[[], int]  # decompresses everything, returns the bytes that came out


def _sections(data: bytes) -> list[memoryview]:
    view = memoryview(data)
    return [view[span.records_start : span.end] for span in spans(data)]


def _room(sections: list[memoryview]) -> bytearray:
    """Return a buffer that the largest section fits in, decompressed."""
    return bytearray(max(map(len, sections)) * 16)


def _each(decompress: Callable[[memoryview], int], parts: list[memoryview]) -> Work:
    return lambda: sum(map(decompress, parts))


def _gzip(sections: list[memoryview]) -> Iterator[tuple[str, Work]]:
    yield "isal", _each(lambda s: len(isal_zlib.decompress(s, _GZIP_WBITS)), sections)
    room = _room(sections)
    yield "cramjam", _each(lambda s: cramjam.gzip.decompress_into(s, room), sections)


def _snappy(sections: list[memoryview]) -> Iterator[tuple[str, Work]]:
    blocks = [block for section in sections for block in snappy_blocks(section)]
    room = bytearray(SNAPPY_BLOCK_BYTES)
    yield "cramjam", _each(lambda b: len(cramjam.snappy.decompress_raw(b)), blocks)
    yield "cramjam, into", _each(lambda b: cramjam.snappy.decompress_raw_into(b, room), blocks)


def _lz4(sections: list[memoryview]) -> Iterator[tuple[str, Work]]:
    blocks = [block for section in sections for block in lz4_blocks(section)]

    def by_block() -> int:
        size, decompress = LZ4_BLOCK_BYTES, lz4.block.decompress
        return sum(len(b if stored else decompress(b, size)) for b, stored in blocks)

    yield "lz4.block", by_block
    yield "lz4.frame", _each(lambda s: len(lz4.frame.decompress(s)), sections)
    room = _room(sections)
    yield "cramjam", _each(lambda s: cramjam.lz4.decompress_into(s, room), sections)


def _zstd(sections: list[memoryview]) -> Iterator[tuple[str, Work]]:
    context = zstandard.ZstdDecompressor()
    yield (
        "zstandard",
        _each(lambda s: len(context.decompressobj().decompress(s)), sections),
    )
    room = _room(sections)
    view = memoryview(room)
    yield "zstandard, into", _each(lambda s: context.stream_reader(s).readinto(view), sections)
    yield "cramjam", _each(lambda s: cramjam.zstd.decompress_into(s, room), sections)


_CANDIDATES = {"gzip": _gzip, "snappy": _snappy, "lz4": _lz4, "zstd": _zstd}


class CodecReader:
    """The fastest library for the data set's codec, found by trying each."""

    def __init__(self, bench: Bench, data_set: DataSet) -> None:
        self._data_set = data_set
        data = bench.logs(data_set.name)[0].read_bytes()
        self.records = data_set.records
        self.log_bytes = data_set.log_bytes
        trials: list[tuple[float, str, Work]] = []
        for library, work in _CANDIDATES[data_set.codec](_sections(data)):
            ensure_equal(library, work(), data_set.records_bytes)
            best = min(timed(work).seconds for _ in range(_TRIALS))
            trials.append((best, library, work))
        _, library, self._work = min(trials, key=lambda trial: trial[0])
        self.name = f"codec alone ({library})"

    def check(self) -> None:
        """Compare the bytes that come out with the bytes that went in."""
        ensure_equal(self.name, self._work(), self._data_set.records_bytes)

    def repeat(self) -> Run:
        """Decompress everything, counted."""
        return timed(self._work)
