from __future__ import annotations

import struct

import numpy as np
import pytest

from pylog.kernels.decode_headers import NEEDS_REFERENCE, UNKNOWN, decode_control_types
from pylog.model import ControlRecordType
from pylog.record.record_batch import RecordBatch
from tests.support.batches import Built, Stored, batch_v2, batch_v2_of, marker
from tests.support.reading import as_buffer


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
