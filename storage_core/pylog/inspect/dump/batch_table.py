"""Batches as the table of numbers that a `LineTemplate` takes its columns from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.model import NO_SEQUENCE
from pylog.record.batch_layout import DELETE_HORIZON_FLAG_MASK

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.record.batch_scan import BatchHeaders

OFFSET = 0
"""The base offset in v2, the last offset in v0 and v1."""
LAST_OFFSET = 1
RECORD_COUNT = 2
BASE_SEQUENCE = 3
LAST_SEQUENCE = 4
PRODUCER_ID = 5
PRODUCER_EPOCH = 6
PARTITION_LEADER_EPOCH = 7
IS_TRANSACTIONAL = 8
IS_CONTROL = 9
HAS_DELETE_HORIZON = 10
BASE_TIMESTAMP = 11
"""The delete horizon of a batch that has one."""
POSITION = 12
TIMESTAMP_TYPE = 13
"""As `pylog.model.TimestampType`, one more: 0 for none."""
MAX_TIMESTAMP = 14
SIZE_BYTES = 15
MAGIC = 16
CODEC_ID = 17
CRC = 18
IS_VALID = 19
IS_V2 = 20
COLUMNS = 21

_MOST_SEQUENCE = 0x7FFFFFFF


def batch_table(
    headers: BatchHeaders, is_valid: npt.NDArray[np.bool_], file_position: int
) -> npt.NDArray[np.int64]:
    """Return a row for each batch, int64, shape (batches, COLUMNS).

    Parameters
    ----------
    headers
        The batches.
    is_valid
        Whether the checksum of each is right.
    file_position
        Byte of the file that position 0 of ``headers`` is.
    """
    table = np.empty((len(headers), COLUMNS), dtype=np.int64)
    is_v2 = headers.is_v2
    base_sequences = headers.base_sequences
    deltas = headers.last_offsets - headers.offsets
    table[:, OFFSET] = headers.offsets
    table[:, LAST_OFFSET] = headers.last_offsets
    table[:, RECORD_COUNT] = headers.record_counts
    table[:, BASE_SEQUENCE] = base_sequences
    table[:, LAST_SEQUENCE] = np.where(
        base_sequences == NO_SEQUENCE, NO_SEQUENCE, (base_sequences + deltas) & _MOST_SEQUENCE
    )
    table[:, PRODUCER_ID] = headers.producer_ids
    table[:, PRODUCER_EPOCH] = headers.producer_epochs
    table[:, PARTITION_LEADER_EPOCH] = headers.partition_leader_epochs
    table[:, IS_TRANSACTIONAL] = headers.is_transactional
    table[:, IS_CONTROL] = headers.is_control
    table[:, HAS_DELETE_HORIZON] = is_v2 & (headers.attributes & DELETE_HORIZON_FLAG_MASK != 0)
    table[:, BASE_TIMESTAMP] = headers.base_timestamps
    table[:, POSITION] = headers.positions + file_position
    table[:, TIMESTAMP_TYPE] = np.where(headers.magics == 0, 0, 1 + headers.is_append_time)
    table[:, MAX_TIMESTAMP] = headers.max_timestamps
    table[:, SIZE_BYTES] = headers.sizes_bytes
    table[:, MAGIC] = headers.magics
    table[:, CODEC_ID] = headers.codec_ids
    table[:, CRC] = headers.crcs
    table[:, IS_VALID] = is_valid
    table[:, IS_V2] = is_v2
    return table
