"""What a topic would take with another codec, level or batch size: a sample, compressed again.

Two questions are asked of each run of batches. With its batches as they are, what does another
codec make of their records? And if the same records were put into batches of another size, what
would those take? Batches are written by the encoder that writes logs, headers included, and what
they take is compared with what the run takes as it is stored.

A producer's ``batch.size`` limits batches by what it expects them to take once compressed; the
batch sizes here are before compression, which is what a codec gets to see at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from pylog.columnar.encode import RecordEncoder
from pylog.inspect.statistics.sample_bounds import Bounds, ratio_bounds
from pylog.model import CompressionType
from pylog.record.batch_layout import MAGIC_VALUE_V2, RECORDS_OFFSET
from pylog.record.compressor import ZSTD_DEFAULT_LEVEL, Compressor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pylog.cleaner.keyed_records import KeyedRecords

_KIB = 1 << 10


class Variant(NamedTuple):
    """A codec, its level (None for Kafka's default), and a batch size.

    ``batch_size`` is in bytes before compression; None for batches as they are.
    """

    codec: CompressionType
    level: int | None
    batch_size: int | None = None


class Saving(NamedTuple):
    """What a variant comes to.

    Attributes
    ----------
    stored_bytes, recompressed_bytes
        Of the sample: as it is, and with the variant.
    ratio
        The second by the first, for the whole topic.
    """

    variant: Variant
    stored_bytes: int
    recompressed_bytes: int
    ratio: Bounds


_CODECS = (
    Variant(CompressionType.NONE, None),
    Variant(CompressionType.GZIP, None),
    Variant(CompressionType.SNAPPY, None),
    Variant(CompressionType.LZ4, None),
    Variant(CompressionType.ZSTD, 1),
    Variant(CompressionType.ZSTD, ZSTD_DEFAULT_LEVEL),
    Variant(CompressionType.ZSTD, 9),
)
_BATCH_SIZES = (16 * _KIB, 64 * _KIB, 256 * _KIB, 1024 * _KIB)
_REBATCHED = {
    CompressionType.LZ4: None,
    CompressionType.ZSTD: ZSTD_DEFAULT_LEVEL,
}
"""The codecs, with their levels, that batch sizes are tried with, beside the topic's own."""


def variants_for(codec_ids: Sequence[int]) -> list[Variant]:
    """Return what to try for a topic with batches of these codecs, the most common one first."""
    codecs = dict(_REBATCHED)
    if codec_ids and CompressionType.is_known(codec_ids[0]):
        codecs.setdefault(CompressionType(codec_ids[0]), None)
    rebatched = [
        Variant(codec, level, batch_size)
        for batch_size in _BATCH_SIZES
        for codec, level in sorted(codecs.items())
    ]
    return [*_CODECS, *rebatched]


class Recompression:
    """Compresses runs of batches again and again. One thread.

    Parameters
    ----------
    variants
        What to try.
    """

    def __init__(self, variants: Sequence[Variant]) -> None:
        self._variants = variants
        self._compressor = Compressor()
        self._stored: list[int] = []
        self._sizes: dict[Variant, list[int]] = {variant: [] for variant in variants}

    def begin_run(self) -> None:
        """Let what comes belong to another run."""
        self._stored.append(0)
        for sizes in self._sizes.values():
            sizes.append(0)

    def drop_run(self) -> None:
        """Forget the run: it could not be read to its end."""
        self._stored.pop()
        for sizes in self._sizes.values():
            sizes.pop()

    def add_batches(self, records: KeyedRecords, stored_bytes: int) -> None:
        """Add batches of the run, as they are.

        Parameters
        ----------
        records
            Theirs.
        stored_bytes
            What the batches take in their file.
        """
        self._stored[-1] += stored_bytes
        starts = records.batch_starts
        has_records = records.batch_ends > starts
        empty = int((~has_records).sum()) * RECORDS_OFFSET
        bounds = list(
            zip(
                records.positions[starts[has_records]].tolist(),
                records.ends[has_records].tolist(),
                strict=True,
            )
        )
        data = records.buffer.data
        for variant in self._variants:
            if variant.batch_size is None:
                self._sizes[variant][-1] += empty + sum(
                    self._size_of(data[start:end], variant) for start, end in bounds
                )

    def add_records(self, records: Sequence[pa.RecordBatch]) -> None:
        """Add the records of the run, to be put into batches of other sizes.

        Parameters
        ----------
        records
            Columns key, value, timestamp and headers; all records of the batches.
        """
        if not records:
            return
        # In one piece: a batch ends where a chunk does.
        table = pa.Table.from_batches(records).combine_chunks()
        for variant in self._variants:
            if variant.batch_size is not None:
                encoder = RecordEncoder(
                    compression=variant.codec,
                    level=variant.level,
                    batch_size_bytes=variant.batch_size,
                )
                self._sizes[variant][-1] += sum(
                    int(chunk.ends[-1] - chunk.positions[0])
                    for chunk in encoder.encode_chunks(table)
                )

    def savings(self, sampled_share: float) -> Iterator[Saving]:
        """Yield what each variant comes to, in the order in which they were given.

        Parameters
        ----------
        sampled_share
            As of `ratio_bounds`.
        """
        stored = np.array(self._stored, dtype=np.int64)
        for variant, sizes in self._sizes.items():
            recompressed = np.array(sizes, dtype=np.int64)
            ratio = ratio_bounds(recompressed, stored, sampled_share)
            if ratio is not None:
                yield Saving(variant, int(stored.sum()), int(recompressed.sum()), ratio)

    @property
    def stored_bytes(self) -> int:
        """What the runs take as they are stored."""
        return sum(self._stored)

    def _size_of(self, records: memoryview, variant: Variant) -> int:
        compressed = self._compressor.compress(
            variant.codec, records, magic=MAGIC_VALUE_V2, level=variant.level
        )
        return RECORDS_OFFSET + len(compressed)
