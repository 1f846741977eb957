"""The hash of keys: Kafka's, and that of a client that nobody here wrote."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.kernels import murmur2 as kernel
from pylog.writing.partitioner import murmur2, partitions_of_keys
from tests.unit.kernels.murmur2_vectors import VECTORS

with warnings.catch_warnings():
    # kafka-python 3.0 reads its schemas by a function that Python 3.11 and 3.12 call old.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.partitioner.default import murmur2 as kafka_python_murmur2


@pytest.mark.parametrize(("key", "expected"), VECTORS)
def test_murmur2_is_kafkas(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected


@given(st.binary(max_size=40))
def test_murmur2_is_kafka_pythons(key: bytes) -> None:
    assert murmur2(key) & 0xFFFFFFFF == kafka_python_murmur2(key)


def test_offsets_outside_of_the_keys_bytes_are_refused() -> None:
    ends = pa.py_buffer(np.array([0, 1, 9, 3], dtype=np.int32))
    keys = pa.Array.from_buffers(pa.binary(), 3, [None, ends, pa.py_buffer(b"abc")])
    with pytest.raises(ValueError, match="row 1: the offsets of the key column do not lie within"):
        partitions_of_keys(keys, 3)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary(1), pa.null()])
def test_keys_of_every_type_are_what_the_kernel_takes(kind: pa.DataType) -> None:
    keys = [None, None] if kind == pa.null() else [None, b"a"]
    assert partitions_of_keys(pa.array(keys, kind), 3)[0] == kernel.NULL_KEY
