"""The batches in a window of a ``.log`` file: boundaries, headers, checksums. No record is touched.

Same boundary rule as Kafka's FileLogInputStream, plus the check of the magic that Kafka leaves to
the checksum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from pylog.errors import CorruptRecordError
from pylog.kernels import decode_headers as fields
from pylog.kernels import has_crc32c_instructions
from pylog.kernels import scan_batches as kernel
from pylog.kernels.crc32c import find_bad_crc32c
from pylog.kernels.decode_headers import decode_headers
from pylog.kernels.decode_legacy import find_bad_crc
from pylog.native.checksum import crc32c, wrong_checksum
from pylog.record.batch_header import (
    ATTRIBUTES_OFFSET,
    COMPRESSION_CODEC_MASK,
    CONTROL_FLAG_MASK,
    HEADER_SIZE_UP_TO_MAGIC,
    MAGIC_VALUE_V2,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_FLAG_MASK,
    peek_entry_size,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Int64Array = npt.NDArray[np.int64]
    BoolArray = npt.NDArray[np.bool_]
    Chosen = npt.NDArray[np.bool_] | npt.NDArray[np.int64] | slice


_GUESSED_BATCH_BYTES = 512

LEAST_KERNEL_BYTES = 1 << 20
"""From so many bytes on, checksums are computed by the kernel, twice as fast as by the library.
Below, it gains some microseconds, and loading it takes a millisecond, compiling it half a second.
"""


class BatchTraits(NamedTuple):
    """What the headers of some batches have in common, to recognise the usual case at once."""

    lowest_magic: int
    attributes: int

    @property
    def all_v2(self) -> bool:
        """Whether every batch has format v2."""
        return self.lowest_magic == MAGIC_VALUE_V2

    def any_has(self, mask: int) -> bool:
        """Whether any batch has one of the attribute bits in ``mask``."""
        return self.attributes & mask != 0


class _Column:
    """An attribute of `BatchHeaders`: the column of one field."""

    def __init__(self, field: int) -> None:
        self._field = field

    def __get__(self, headers: BatchHeaders, _owner: type) -> Int64Array:
        column: Int64Array = headers.columns[self._field]
        return column


class BatchHeaders:
    """Header fields of consecutive batches, a column a field; see `BatchHeader` for meanings."""

    __slots__ = ("_traits", "columns")

    positions = _Column(fields.POSITION)
    """Where each batch begins in the scanned buffer."""
    sizes_bytes = _Column(fields.SIZE_BYTES)
    """Size of each batch, the 12 bytes of offset and size included."""
    offsets = _Column(fields.OFFSET)
    """The raw offset field: base offset in v2, last offset in v0 and v1."""
    last_offsets = _Column(fields.LAST_OFFSET)
    """Last offset of each batch."""
    magics = _Column(fields.MAGIC)
    """Record format of each batch."""
    crcs = _Column(fields.CRC)
    """Stored checksum of each batch, unsigned."""
    attributes = _Column(fields.ATTRIBUTES)
    """Low attribute byte of each batch."""
    partition_leader_epochs = _Column(fields.PARTITION_LEADER_EPOCH)
    """Leader epoch of each batch."""
    base_timestamps = _Column(fields.BASE_TIMESTAMP)
    """Base timestamp (or delete horizon) of each batch, ms."""
    max_timestamps = _Column(fields.MAX_TIMESTAMP)
    """Largest timestamp of each batch, ms."""
    producer_ids = _Column(fields.PRODUCER_ID)
    """Producer id of each batch."""
    producer_epochs = _Column(fields.PRODUCER_EPOCH)
    """Producer epoch of each batch."""
    base_sequences = _Column(fields.BASE_SEQUENCE)
    """First sequence number of each batch."""
    record_counts = _Column(fields.RECORD_COUNT)
    """Records of each batch as its header counts them; -1 for compressed wrappers."""

    def __init__(self, columns: Int64Array) -> None:
        self.columns = columns
        self._traits: BatchTraits | None = None

    @property
    def traits(self) -> BatchTraits:
        """What the batches, at least one, have in common; computed once."""
        if self._traits is None:
            self._traits = BatchTraits(
                int(self.magics.min()), int(np.bitwise_or.reduce(self.attributes))
            )
        return self._traits

    def __len__(self) -> int:
        return int(self.columns.shape[1])

    def select(self, which: BoolArray | Int64Array | slice) -> BatchHeaders:
        """Return the headers that a mask, indexes or a slice pick, in their order."""
        if isinstance(which, slice) and which.indices(len(self)) == (0, len(self), 1):
            return self  # with its traits, which need not be worked out again
        return BatchHeaders(self.columns[:, which])

    @property
    def has_possible_count(self) -> BoolArray:
        """Whether each batch tells how many records it has, and has as many offsets for them."""
        counts = self.record_counts
        return (counts >= 0) & (counts <= self.last_offsets - self.offsets + 1)

    @property
    def codec_ids(self) -> Int64Array:
        """Codec id of each batch, 0 to 7 as stored."""
        ids: Int64Array = self.attributes & COMPRESSION_CODEC_MASK
        return ids

    @property
    def is_v2(self) -> BoolArray:
        """Whether each batch has format v2."""
        mask: BoolArray = self.magics == MAGIC_VALUE_V2
        return mask

    @property
    def is_append_time(self) -> BoolArray:
        """Whether the broker stamped each batch."""
        mask: BoolArray = (self.magics > 0) & (self.attributes & TIMESTAMP_TYPE_MASK != 0)
        return mask

    @property
    def is_control(self) -> BoolArray:
        """Whether each batch holds control records."""
        mask: BoolArray = self.is_v2 & (self.attributes & CONTROL_FLAG_MASK != 0)
        return mask

    @property
    def is_transactional(self) -> BoolArray:
        """Whether each batch belongs to a transaction."""
        mask: BoolArray = self.is_v2 & (self.attributes & TRANSACTIONAL_FLAG_MASK != 0)
        return mask


@dataclass(frozen=True, slots=True)
class BatchScan:
    """The whole batches at the head of a buffer."""

    buffer: npt.NDArray[np.uint8]
    headers: BatchHeaders
    valid_bytes: int
    defect: str | None


def find_batches(buffer: npt.NDArray[np.uint8]) -> BatchScan:
    """Return every whole batch in ``buffer`` with its header."""
    capacity = max(16, buffer.size // _GUESSED_BATCH_BYTES)
    parts: list[Int64Array] = []
    at = 0
    while True:
        positions = np.empty(capacity, dtype=np.int64)
        count, at, status = kernel.scan_batches(buffer, at, buffer.size, positions)
        columns = np.empty((fields.FIELD_COUNT, count), dtype=np.int64)
        decode_headers(buffer, positions, count, columns)
        parts.append(columns)
        if status != kernel.STATUS_FULL:
            break
        capacity *= 4
    columns = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
    defect = None
    if status in (kernel.STATUS_BAD_SIZE, kernel.STATUS_BAD_MAGIC):
        defect = _describe(buffer, at)
    return BatchScan(buffer, BatchHeaders(columns), int(at), defect)


def _describe(buffer: npt.NDArray[np.uint8], at: int) -> str:
    from_header = bytes(buffer[at : at + HEADER_SIZE_UP_TO_MAGIC])
    try:
        peek_entry_size(from_header)
    except CorruptRecordError as error:
        return error.reason
    return "impossible batch header"


@dataclass(frozen=True, slots=True)
class BadChecksum:
    """The first batch of a scan whose checksum is wrong; ``index`` counts batches."""

    index: int
    stored: int
    computed: int

    @property
    def reason(self) -> str:
        """The reason for an error message: stored against computed."""
        return wrong_checksum("batch", self.stored, self.computed)


class _Batches(Protocol):
    """What was found in a buffer, or a window of a file."""

    @property
    def buffer(self) -> npt.NDArray[np.uint8]: ...
    @property
    def headers(self) -> BatchHeaders: ...


def find_bad_checksum(scan: _Batches, only: BoolArray | None = None) -> BadChecksum | None:
    """Return the first batch of ``scan`` whose stored checksum is not the computed one, or None.

    CRC-32C for v2, CRC-32 for v0 and v1. About 0.05 s a gigabyte where the processor has an
    instruction for CRC-32C, and without the interpreter's lock there.
    """
    headers = scan.headers
    if not len(headers):
        return None
    bad_legacy = None
    starts, sizes, crcs = headers.positions, headers.sizes_bytes, headers.crcs
    checked = None
    if only is not None or not headers.traits.all_v2:
        chosen = np.ones(len(headers), dtype=np.bool_) if only is None else only
        bad_legacy = _find_bad_legacy(scan, np.flatnonzero(chosen & ~headers.is_v2))
        limit = bad_legacy.index if bad_legacy else len(headers)
        checked = np.flatnonzero((chosen & headers.is_v2)[:limit])
        starts, sizes, crcs = starts[checked], sizes[checked], crcs[checked]
    place, computed = _find_bad_v2(scan.buffer, starts + ATTRIBUTES_OFFSET, starts + sizes, crcs)
    if place < 0:
        return bad_legacy
    index = place if checked is None else int(checked[place])
    return BadChecksum(index, int(crcs[place]), computed)


def _find_bad_v2(
    buffer: npt.NDArray[np.uint8], starts: Int64Array, ends: Int64Array, crcs: Int64Array
) -> tuple[int, int]:
    """Return the place of the first wrong checksum and the right one; place -1 if there is none."""
    span_bytes = int(ends[-1] - starts[0]) if starts.size else 0
    if span_bytes >= LEAST_KERNEL_BYTES and has_crc32c_instructions():
        place, computed = find_bad_crc32c(buffer, starts, ends, crcs)
        return int(place), int(computed)
    view = buffer.data
    rows = zip(starts.tolist(), ends.tolist(), crcs.tolist(), strict=True)
    for place, (start, end, stored) in enumerate(rows):
        computed = crc32c(view[start:end])
        if computed != stored:
            return place, computed
    return -1, 0


def _find_bad_legacy(scan: _Batches, which: Int64Array) -> BadChecksum | None:
    headers = scan.headers
    bad, computed = find_bad_crc(scan.buffer, headers.positions[which], headers.sizes_bytes[which])
    if bad < 0:
        return None
    index = int(which[bad])
    return BadChecksum(index, int(headers.crcs[index]), int(computed))


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive batches of a file; valid until the next window is read, unless it is kept."""

    buffer: npt.NDArray[np.uint8]
    headers: BatchHeaders
    path: str
    file_position: int
    size_bytes: int
    fetch: Callable[[Window, npt.NDArray[np.bool_]], None] | None = None

    @classmethod
    def of(cls, scan: BatchScan, path: str = "", file_position: int = 0) -> Window:
        """Return the batches that were found at the head of a buffer."""
        return cls(scan.buffer, scan.headers, path, file_position, scan.valid_bytes)

    @property
    def end_position(self) -> int:
        """The byte of the file after the last batch."""
        return self.file_position + self.size_bytes

    def select(self, which: Chosen | None) -> Window:
        """Return the window with some of its batches, in their order; all if None."""
        if which is None:
            return self
        return replace(self, headers=self.headers.select(which))

    def position_of(self, index: int) -> int:
        """Return the byte of the file where a batch begins."""
        return self.file_position + int(self.headers.positions[index])

    def bytes_of(self, index: int) -> memoryview:
        """Return a batch."""
        start = int(self.headers.positions[index])
        return self.buffer[start : start + int(self.headers.sizes_bytes[index])].data

    def read_batches(self, which: npt.NDArray[np.bool_] | None = None) -> None:
        """Have the whole batches that a mask picks in the buffer, all if None."""
        if self.fetch is not None:
            which = np.ones(len(self.headers), dtype=np.bool_) if which is None else which
            self.fetch(self, which)
