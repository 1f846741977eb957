from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.kernels.decode_legacy import find_bad_crc
from pylog.native.checksum import crc32c as our_crc32c
from tests.support.batches import crc32c, message, message_bytes, plain_records
from tests.support.reading import as_buffer


def check(data: bytes, sizes: list[int]) -> tuple[int, int]:
    lengths = np.array(sizes, dtype=np.int64)
    bad, computed = find_bad_crc(as_buffer(data), np.cumsum(lengths) - lengths, lengths)
    return int(bad), int(computed)


@given(st.binary(min_size=0, max_size=300))
def test_the_kernels_crc_is_zlibs(content: bytes) -> None:
    # The CRC covers whatever follows its own four bytes.
    entry = bytes(12) + zlib.crc32(content).to_bytes(4, "big") + content
    assert check(entry, [len(entry)]) == (-1, 0)
    wrong = bytes(12) + (zlib.crc32(content) ^ 1).to_bytes(4, "big") + content
    assert check(wrong, [len(wrong)]) == (0, zlib.crc32(content))


@given(st.binary(max_size=300))
def test_our_crc32c_is_crcmods(content: bytes) -> None:
    assert our_crc32c(content) == crc32c(content)
    half = len(content) // 2
    assert our_crc32c(content[half:], our_crc32c(content[:half])) == crc32c(content)
    assert our_crc32c(memoryview(content)) == crc32c(content)


@pytest.mark.parametrize("bad", range(4))
def test_the_first_bad_entry_is_reported(bad: int) -> None:
    entries = [message(record, magic=1).data for record in plain_records(0, 4)]
    entries[bad:] = [message_bytes(9, None, b"v", magic=0, crc=5) for _ in entries[bad:]]
    index, computed = check(b"".join(entries), [len(entry) for entry in entries])
    assert index == bad
    assert computed == zlib.crc32(entries[bad][16:])


def test_every_length_is_summed_right() -> None:
    # One block, four chains of blocks, and every rest.
    content = bytes(range(256)) * 3
    for length in range(400):
        entry = bytes(12) + zlib.crc32(content[:length]).to_bytes(4, "big") + content[:length]
        assert check(entry, [len(entry)]) == (-1, 0), length
