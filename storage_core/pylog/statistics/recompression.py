"""The size of a topic's batches with another codec, level or batch size, measured on a sample.

Records near each other are alike, so a run counts as one observation, however many records it has:
the variance is that of a ratio estimator over clusters (Cochran, "Sampling Techniques", 6.3). In 95
% of samples the truth lies within the bounds, as far as runs are many and not too uneven.

Shares are those of keys that were picked *because* they are frequent in the sample, which is where
chance has helped. So their bounds hold for all keys of the topic at once. Of keys with a share of
1/k there are at most k; how likely one of those is to be seen so often is bounded by Chernoff, for
as many independent records as are worth as much as the runs.

Two questions are asked of each run of batches. With its batches as they are, what does another
codec make of their records? And if the same records were put into batches of another size, what
would those take? Batches are written by the encoder that writes logs, headers included, and what
they take is compared with what the run takes as it is stored.

A producer's ``batch.size`` limits batches by what it expects them to take once compressed; the
batch sizes here are before compression, which is what a codec gets to see at once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from pylog.columnar.encode import RecordEncoder
from pylog.model import COMPRESSION_LEVELS, CompressionType
from pylog.record.batch_header import MAGIC_VALUE_V2, RECORDS_OFFSET
from pylog.record.compressor import Compressor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from pylog.cleaner.keyed_records import KeyedRecords

    Int64Array = npt.NDArray[np.int64]


_WRONG = 0.05  # of samples, both sides together
_TINY = 1e-6
_HALVINGS = 40
# Of Student's t distribution, the quantile for 95 % both-sided, by degrees of freedom from 1 on.
_STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)
_NORMAL = 1.96
_CORRECTION = 2.6  # of Student's t for more than ten degrees, divided by their number


class Bounds(NamedTuple):
    """An estimate, and between what the truth lies."""

    estimate: float
    low: float
    high: float


def ratio_bounds(parts: Int64Array, wholes: Int64Array, sampled_share: float) -> Bounds | None:
    """Return the ratio of all parts to all wholes; None where there is nothing to divide by."""
    if not wholes.sum():
        return None
    ratio = int(parts.sum()) / int(wholes.sum())
    if sampled_share >= 1:
        return Bounds(ratio, ratio, ratio)
    if parts.size < 2:
        return Bounds(ratio, 0.0, math.inf)
    variance = _variance(parts, wholes) * (1 - sampled_share)
    off = _student(parts.size - 1) * math.sqrt(variance)
    return Bounds(ratio, max(0.0, ratio - off), ratio + off)


def share_bounds(
    parts: Int64Array, wholes: Int64Array, sampled_share: float, *, records: int
) -> Bounds | None:
    """Return the share that all parts have in all wholes, and between what it lies."""
    if not wholes.sum():
        return None
    share = int(parts.sum()) / int(wholes.sum())
    if sampled_share >= 1:
        return Bounds(share, share, share)
    if parts.size < 2:
        return Bounds(share, 0.0, 1.0)
    variance = _variance(parts, wholes)
    observed = float(records)
    if variance > 0:
        observed = max(1.0, min(observed, share * (1 - share) / variance))
    low, high = (each / observed for each in _rates(share * observed, observed))
    scale = _student(parts.size - 1) / _NORMAL * math.sqrt(1 - sampled_share)
    return Bounds(
        share,
        max(0.0, share - scale * (share - low)),
        min(1.0, share + scale * (high - share)),
    )


def _rates(seen: float, observed: float) -> tuple[float, float]:
    """Return the lower and upper bound of a key's true count, from a sample."""

    def is_unlikely(rate: float) -> bool:
        exponent = rate - seen + (seen * math.log(seen / rate) if seen else 0.0)
        return exponent >= math.log(2 * observed / (_WRONG * rate))

    low, start = 0.0, seen
    if seen and is_unlikely(seen * _TINY):
        low = seen * _TINY
    for _ in range(_HALVINGS if low else 0):
        middle = (low + start) / 2
        low, start = (middle, start) if is_unlikely(middle) else (low, middle)
    high, end = max(seen, 1.0), observed
    for _ in range(_HALVINGS):
        middle = (high + end) / 2
        high, end = (high, middle) if is_unlikely(middle) else (middle, end)
    return low, end


def _variance(parts: Int64Array, wholes: Int64Array) -> float:
    """Return the variance of the ratio, for a sample of runs out of very many."""
    whole = int(wholes.sum())
    residuals = parts - int(parts.sum()) / whole * wholes
    return float((residuals**2).sum()) * parts.size / (parts.size - 1) / whole**2


def _student(degrees: int) -> float:
    if degrees <= len(_STUDENT):
        return _STUDENT[degrees - 1]
    return _NORMAL + _CORRECTION / degrees


_KIB = 1 << 10


class Variant(NamedTuple):
    """A codec, its level (None for Kafka's default), and a batch size."""

    codec: CompressionType
    level: int | None
    batch_size: int | None = None


class Saving(NamedTuple):
    """The bytes of a sample as it is stored, and with a variant."""

    variant: Variant
    # Of the sample: as it is, and with the variant
    stored_bytes: int
    recompressed_bytes: int
    ratio: Bounds  # the second by the first, for the whole topic


_ZSTD_LEVEL = COMPRESSION_LEVELS[CompressionType.ZSTD].default
_CODECS = (
    Variant(CompressionType.NONE, None),
    Variant(CompressionType.GZIP, None),
    Variant(CompressionType.SNAPPY, None),
    Variant(CompressionType.LZ4, None),
    Variant(CompressionType.ZSTD, 1),
    Variant(CompressionType.ZSTD, _ZSTD_LEVEL),
    Variant(CompressionType.ZSTD, 9),
)
_BATCH_SIZES = (16 * _KIB, 64 * _KIB, 256 * _KIB, 1024 * _KIB)
_REBATCHED = {
    CompressionType.LZ4: None,
    CompressionType.ZSTD: _ZSTD_LEVEL,
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
    """Compresses runs of batches again and again. One thread."""

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
        """Add batches of the run, as they are."""
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
        """Add the records of the run, to be put into batches of other sizes."""
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
        """Yield what each variant comes to, in the order in which they were given."""
        stored = np.array(self._stored, dtype=np.int64)
        for variant, sizes in self._sizes.items():
            recompressed = np.array(sizes, dtype=np.int64)
            ratio = ratio_bounds(recompressed, stored, sampled_share)
            if ratio is not None:
                yield Saving(variant, int(stored.sum()), int(recompressed.sum()), ratio)

    @property
    def stored_bytes(self) -> int:
        """Size of the runs as they are stored."""
        return sum(self._stored)

    def _size_of(self, records: memoryview, variant: Variant) -> int:
        compressed = self._compressor.compress(
            variant.codec, records, magic=MAGIC_VALUE_V2, level=variant.level
        )
        return RECORDS_OFFSET + len(compressed)
