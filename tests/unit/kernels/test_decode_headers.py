from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pylog.kernels import decode_headers as kernel
from pylog.record.batch_header import BatchHeader, parse_batch_header
from tests.support.batches import batch_v2_of, message_bytes
from tests.support.reading import as_buffer

INT16, INT32 = st.integers(-(2**15), 2**15 - 1), st.integers(-(2**31), 2**31 - 1)
INT64, UINT32 = st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**32 - 1)

v2_headers = st.builds(
    batch_v2_of,
    st.just(b""),
    base_offset=INT64,
    last_offset_delta=INT32,
    record_count=INT32,
    attributes=INT16,
    leader_epoch=INT32,
    base_timestamp=INT64,
    max_timestamp=INT64,
    producer_id=INT64,
    producer_epoch=INT16,
    base_sequence=INT32,
    crc=UINT32,
)
legacy_headers = st.builds(
    message_bytes,
    INT64,
    st.none(),
    st.none(),
    magic=st.integers(0, 1),
    timestamp=INT64,
    attributes=st.integers(0, 255),
    crc=UINT32,
)


def fields_of(header: BatchHeader, position: int) -> dict[int, int]:
    return {
        kernel.POSITION: position,
        kernel.SIZE_BYTES: header.size_bytes,
        kernel.OFFSET: header.offset,
        # The kernel adds in 64 bits; an offset that overflows is hostile, and must not crash.
        kernel.LAST_OFFSET: (header.last_offset + 2**63) % 2**64 - 2**63,
        kernel.MAGIC: header.magic,
        kernel.CRC: header.crc,
        kernel.ATTRIBUTES: header.attributes,
        kernel.PARTITION_LEADER_EPOCH: header.partition_leader_epoch,
        kernel.BASE_TIMESTAMP: header.base_timestamp,
        kernel.MAX_TIMESTAMP: header.max_timestamp,
        kernel.PRODUCER_ID: header.producer_id,
        kernel.PRODUCER_EPOCH: header.producer_epoch,
        kernel.BASE_SEQUENCE: header.base_sequence,
        kernel.RECORD_COUNT: header.record_count,
    }


@given(st.lists(v2_headers | legacy_headers, max_size=5))
def test_every_field_is_what_the_reference_says(entries: list[bytes]) -> None:
    positions = np.cumsum([0, *map(len, entries)])[:-1].astype(np.int64)
    headers = np.full((kernel.FIELD_COUNT, len(entries)), -99, dtype=np.int64)
    kernel.decode_headers(as_buffer(b"".join(entries)), positions, len(entries), headers)
    for index, entry in enumerate(entries):
        expected = fields_of(parse_batch_header(entry), int(positions[index]))
        assert dict(enumerate(headers[:, index].tolist())) == expected
