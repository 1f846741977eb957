from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.kernels import decode_headers as kernel
from pylog.kernels.decode_headers import NEEDS_REFERENCE, UNKNOWN, decode_control_types
from pylog.model import ControlRecordType
from pylog.record.batch_header import BatchHeader, parse_batch_header
from pylog.record.record_batch import RecordBatch
from tests.support.batches import Built, Stored, batch_v2, batch_v2_of, marker, message_bytes
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


def kernel_types(*batches: bytes) -> list[int]:
    sizes = np.array([len(batch) for batch in batches], dtype=np.int64)
    positions = np.cumsum(sizes) - sizes
    types = np.full(len(batches), -9, dtype=np.int64)
    decode_control_types(as_buffer(b"".join(batches)), positions, sizes, types)
    return types.tolist()


def control(kind: int, version: int = 0, key_tail: bytes = b"", offset: int = 0) -> Built:
    key = struct.pack(">hh", version, kind) + key_tail
    return batch_v2([Stored(offset, 2**40, key, b"value")], control_type=kind)


def test_every_type_is_reported() -> None:
    kinds = [kind for kind in ControlRecordType if kind >= 0]
    assert kernel_types(*(control(kind).data for kind in kinds)) == kinds
    assert kernel_types(marker(5, 0).data, marker(10**12, 1).data) == [0, 1]


@pytest.mark.parametrize("kind", [7, 256, 0x7FFF, -1, -0x8000])
def test_other_types_are_unknown(kind: int) -> None:
    built = control(kind)
    assert kernel_types(built.data) == [UNKNOWN]
    assert RecordBatch(built.data).control_type() is ControlRecordType.UNKNOWN


def test_what_is_not_of_the_usual_form_is_left_to_the_reference() -> None:
    odd = [
        batch_v2_of(b"", record_count=0, attributes=0x30),
        batch_v2_of(b"\x80" * 30, attributes=0x30),
        control(1, version=-1).data,
        control(1, key_tail=b"longer key").data,
        batch_v2([Stored(0, 0, None, None)], control_type=0).data,
        batch_v2([Stored(0, 0, b"abc", None)], control_type=0).data,
    ]
    assert kernel_types(*odd) == [NEEDS_REFERENCE] * len(odd)


def test_a_newer_version_is_read_as_version_0() -> None:
    assert kernel_types(control(1, version=5).data) == [1]
