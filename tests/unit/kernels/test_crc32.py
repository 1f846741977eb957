from __future__ import annotations

import os
import subprocess
import sys
import zlib
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.checksum import crc32c as our_crc32c
from pylog.kernels.decode_legacy import find_bad_crc
from tests.support.batches import crc32c, message, message_bytes, plain_records
from tests.support.reading import as_buffer

if TYPE_CHECKING:
    from pathlib import Path


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


_SUMS = """
import sys, zlib
import numpy as np
from pylog.kernels import decode_legacy
content = bytes(range(256)) * 3
for length in range(400):
    entry = bytes(12) + zlib.crc32(content[:length]).to_bytes(4, "big") + content[:length]
    buffer = np.frombuffer(entry, dtype=np.uint8)
    size = np.array([len(entry)], dtype=np.int64)
    assert decode_legacy.find_bad_crc(buffer, np.zeros(1, dtype=np.int64), size) == (-1, 0), length
print(decode_legacy._crc32_of_blocks.py_func.__name__)
"""


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_a_processor_without_the_instruction_computes_the_same(tmp_path: Path) -> None:
    # What Numba compiles for may be less than what this machine has.
    environment = {**os.environ, "NUMBA_CPU_FEATURES": "+sse2", "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", _SUMS]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "_crc32_by_tables"
