"""Header keys through the kernels, against what Java said of the same bytes."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pylog.kernels import header_keys
from tests.support.batches import varint
from tests.support.java_utf8 import ANSWERS, SHORT_INPUTS_SHA256, all_short_inputs
from tests.support.reading import as_buffer

if TYPE_CHECKING:
    from collections.abc import Sequence


def replaced(keys: Sequence[bytes]) -> list[bytes]:
    ends = np.cumsum([0, *map(len, keys)], dtype=np.int32)
    data = as_buffer(b"".join(keys) or b"\0")
    out = np.zeros(header_keys.measure_keys(data, ends), dtype=np.uint8)
    out_ends = np.zeros(ends.size, dtype=np.int32)
    header_keys.replace_malformed(data, ends, out, out_ends)
    assert out_ends[-1] == out.size
    return [out[out_ends[i] : out_ends[i + 1]].tobytes() for i in range(len(keys))]


def test_malformed_keys_are_replaced_as_java_replaces_them() -> None:
    keys = [bytes.fromhex(data) for data, _ in ANSWERS]
    assert [key.decode() for key in replaced(keys)] == [text for _, text in ANSWERS]


def test_a_key_is_not_completed_by_the_bytes_of_the_next_one() -> None:
    assert replaced([b"\xe2\x82", b"\xac", b"", b"\xf0"]) == [b"\xef\xbf\xbd"] * 2 + [
        b"",
        b"\xef\xbf\xbd",
    ]


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="takes too long uncompiled")
def test_all_short_keys_are_replaced_as_java_replaces_them() -> None:
    digest = hashlib.sha256()
    for key in replaced(list(all_short_inputs())):
        digest.update(key + b"\xff")
    assert digest.hexdigest() == SHORT_INPUTS_SHA256


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([], (0, 0, 0)),
        ([(b"ab", b"123"), (b"", None), ("ключ".encode(), b"")], (10, 0, 3)),
        ([(b"a\xff", b"1"), (b"\xed\xa0\x80", None), (b"x" * 200, b"y" * 300)], (205, 207, 301)),
    ],
)
def test_headers_are_measured_before_memory_is_made_for_them(
    headers: list[tuple[bytes, bytes | None]], expected: tuple[int, int, int]
) -> None:
    data = b"before"
    for key, value in headers:
        data += varint(len(key)) + key
        data += varint(-1) if value is None else varint(len(value)) + value
    measures = np.zeros(header_keys.MEASURES, dtype=np.int64)
    header_keys.measure_headers(as_buffer(data), len(b"before"), len(headers), measures)
    assert tuple(measures.tolist()) == expected
