"""The program that part ``substitutes`` measures: one pass over a log, whenever it is asked.

It imports nothing that needs a codec library, since it is started where they cannot be imported.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pylog
from benchmarks.measuring import timed
from pylog.columnar.encode import RecordEncoder
from pylog.model import CompressionType
from pylog.record import arrow_codecs, codec_libraries

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

READ, WRITE, STAND_INS = "read", "write", "stand-ins"
BATCH_BYTES = 65_536
_COLUMNS = ["key", "value", "timestamp"]


def main() -> None:
    """Answer each line: seconds, processor seconds and records of a pass; or the stand-ins."""
    directory, codec = sys.argv[1:]
    columns = pylog.scan(directory, columns=_COLUMNS).to_table().combine_chunks().to_batches()
    works: dict[str, Callable[[], int]] = {
        READ: lambda: _read(directory),
        WRITE: lambda: sum(_written(each, CompressionType[codec.upper()]) for each in columns),
    }
    for line in sys.stdin:
        asked = line.strip()
        answer = " ".join(_stand_ins()) if asked == STAND_INS else _timed(works[asked])
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


def _timed(work: Callable[[], int]) -> str:
    counts: list[int] = []
    run = timed(lambda: counts.append(work()))
    return f"{run.seconds} {run.cpu_seconds} {counts[0]}"


def _read(directory: str) -> int:
    return sum(batch.num_rows for batch in pylog.scan(directory).to_reader())


def _written(columns: pa.RecordBatch, compression: CompressionType) -> int:
    encoder = RecordEncoder(compression=compression, batch_size_bytes=BATCH_BYTES)
    return sum(batch.record_count for batch in encoder.encode(columns))


def _stand_ins() -> list[str]:
    """Return the codecs that Arrow compresses here."""
    compressors = {
        "snappy": (codec_libraries.compress_snappy, arrow_codecs.compress_snappy),
        "lz4": (codec_libraries.compress_lz4, arrow_codecs.compress_lz4),
        "zstd": (codec_libraries.open_zstd_compressor, arrow_codecs.ZstdCompressor),
    }
    return [codec for codec, (used, of_arrow) in compressors.items() if used is of_arrow]
