"""Groups of v0/v1 messages and wrappers through the kernel `pylog.kernels.decode_legacy`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pylog.columnar.arrow_schema import HEADERS_TYPE
from pylog.columnar.group_decoder import Refusal
from pylog.columnar.record_columns import RecordColumns
from pylog.errors import CorruptRecordError, InvalidRecordError, MisplacedBatchError
from pylog.kernels import decode_legacy as kernel
from pylog.kernels.decode_records import WANT_HEADERS
from pylog.kernels.split_batch import PIECE_END, PIECE_LAST_RECORD, PIECE_START
from pylog.model import CompressionType
from pylog.record.batch_header import MIN_ENTRY_SIZE_V0
from pylog.record.legacy_batch import wrapped_stream
from pylog.record.record import wrap_int64

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.columnar.group_decoder import DecodeLimits, GroupRequest
    from pylog.errors import LogStorageError
    from pylog.record.batch_scan import BatchHeaders

_CORRUPT = {
    kernel.STATUS_BAD_SIZE: "a message's size is below the minimum of its format",
    kernel.STATUS_BAD_CRC: "an inner message's CRC is wrong",
    kernel.STATUS_BAD_KEY_LENGTH: "the key's length does not fit into the message",
    kernel.STATUS_BAD_VALUE_LENGTH: "the value's length does not fit into the message",
}
_INVALID = {
    kernel.STATUS_BAD_MAGIC: "an inner message is not of format v0 or v1",
    kernel.STATUS_NESTED_COMPRESSION: "an inner message is itself compressed",
    kernel.STATUS_EMPTY_SET: "a compressed message holds no inner message",
    kernel.STATUS_OFFSET_BELOW_INNER: "the wrapper's offset is below its last inner offset",
    kernel.STATUS_BAD_OFFSET: "a message has offset {}, expected {} to {}",
}


class LegacyGroupDecoder:
    """See `pylog.columnar.group_decoder.GroupDecoder`; a batch is a set of messages here."""

    __slots__ = ()

    def describe_batches(self, run: BatchHeaders) -> npt.NDArray[np.int64]:
        """Return the kernel's input table."""
        table = np.empty((len(run), kernel.SET_FIELDS), dtype=np.int64)
        table[:, kernel.SET_START] = run.positions
        table[:, kernel.SET_END] = run.positions + run.sizes_bytes
        table[:, kernel.SET_IS_WRAPPED] = run.codec_ids != 0
        table[:, kernel.SET_WRAPPER_OFFSET] = run.offsets
        table[:, kernel.SET_WRAPPER_MAGIC] = run.magics
        table[:, kernel.SET_APPEND_TIME] = run.is_append_time
        table[:, kernel.SET_WRAPPER_TIMESTAMP] = run.max_timestamps
        return table

    def stream_of(self, records: memoryview, codec: CompressionType, magic: int) -> memoryview:
        """Return the bytes to decompress of an entry; a plain one as it is."""
        return records if codec is CompressionType.NONE else wrapped_stream(records, magic)

    def most_rows(self, run: BatchHeaders, table: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return how many messages each set can hold; a wrapper's header does not count them."""
        sizes = table[:, kernel.SET_END] - table[:, kernel.SET_START]
        return np.where(run.codec_ids == 0, 1, sizes // MIN_ENTRY_SIZE_V0)

    def decode(
        self, request: GroupRequest, run: BatchHeaders, table: npt.NDArray[np.int64]
    ) -> RecordColumns:
        """Return the columns of the group's messages; see `GroupDecoder.decode` for the errors."""
        sizes = table[:, kernel.SET_END] - table[:, kernel.SET_START]
        most = 0 if request.is_empty else int((sizes // MIN_ENTRY_SIZE_V0).sum())
        data_bytes = int(sizes.sum())
        base_offsets = np.zeros(len(run), dtype=np.int64)
        columns = RecordColumns(most, (data_bytes, data_bytes), request.want, base_offsets)
        totals = np.zeros(kernel.TOTALS, dtype=np.int64)
        rows, status, at = kernel.decode_legacy(
            request.buffer,
            table,
            request.start_offset,
            request.end_offset,
            request.want,
            request.timestamp_scale,
            *columns.outputs,
            columns.batch_rows,
            base_offsets,
            columns.latest_timestamps,
            totals,
        )
        if status != kernel.STATUS_OK:
            index = int(totals[kernel.TOTAL_BAD_SET])
            raise _error(Refusal.at(request, run, table, index, int(at)), totals, status)
        _check_offsets(request, run, base_offsets)
        columns.finish(int(rows), totals, request.timestamp_type)
        if request.want & WANT_HEADERS:
            columns.arrays["headers"] = pa.nulls(int(rows), HEADERS_TYPE)
        return columns

    def cut_into_pieces(
        self,
        request: GroupRequest,
        run: BatchHeaders,
        table: npt.NDArray[np.int64],
        limits: DecodeLimits,
    ) -> npt.NDArray[np.int64]:
        """Return the table's one large set as several rows, each for a piece of its messages."""
        checked = self.decode(request.of_nothing(), run, table)
        start, end = table[0, : kernel.SET_END + 1].tolist()
        if not table[0, kernel.SET_IS_WRAPPED]:
            return table
        most = (end - start) // MIN_ENTRY_SIZE_V0
        cuts = limits.pieces(request.buffer, start, end, most, is_v2=False)
        inner_offsets = np.array(
            [_inner_offset(request, int(at)) for at in cuts[:, PIECE_LAST_RECORD]]
        )
        base = wrap_int64(int(checked.base_offsets[0]) - _inner_offset(request, start))
        pieces = np.repeat(table, len(cuts), axis=0)
        pieces[:, kernel.SET_START] = cuts[:, PIECE_START]
        pieces[:, kernel.SET_END] = cuts[:, PIECE_END]
        pieces[:, kernel.SET_WRAPPER_OFFSET] = base + inner_offsets
        return pieces


def _inner_offset(request: GroupRequest, at: int) -> int:
    return int.from_bytes(request.buffer[at : at + 8].tobytes(), "big", signed=True)


def _check_offsets(
    request: GroupRequest, run: BatchHeaders, first_offsets: npt.NDArray[np.int64]
) -> None:
    """Refuse a wrapper that begins before the entry in front of it ends."""
    before = np.append(request.last_offset_before, run.last_offsets[:-1])
    bad = np.flatnonzero(first_offsets <= before)
    if bad.size:
        index = int(bad[0])
        reason = (
            f"messages begin with offset {first_offsets[index]}, "
            f"expected at least {int(before[index]) + 1}"
        )
        raise request.error(MisplacedBatchError, reason, run, index)


def _error(refusal: Refusal, totals: npt.NDArray[np.int64], status: int) -> LogStorageError:
    if status == kernel.STATUS_TIMESTAMP_OVERFLOW:
        return refusal.timestamp_overflow()
    where = f" ({refusal.inside} bytes into the message set)" if refusal.inside else ""
    if status in _CORRUPT:
        return refusal.error(CorruptRecordError, _CORRUPT[status] + where)
    offset_before = int(totals[kernel.TOTAL_OFFSET_BEFORE])
    reason = _INVALID[status].format(
        totals[kernel.TOTAL_OFFSET],
        max(refusal.request.last_offset_before, offset_before) + 1,
        refusal.run.offsets[refusal.batch_index],
    )
    return refusal.error(InvalidRecordError, reason + where)
