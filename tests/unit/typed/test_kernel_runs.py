"""Payloads reach kernels with a margin behind them, in runs that there is room for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pylog.typed import kernel_runs
from pylog.typed.decoder import DecodedTooLargeError, Payloads
from pylog.typed.json_values import JsonDecoder
from tests.support.payloads import payloads_of


def test_only_the_last_payloads_are_copied_for_a_margin() -> None:
    given = payloads_of([b"x" * 50] * 10)
    whole, copied = kernel_runs.parts_of(given, 2, 10)
    assert (whole.first, whole.last, copied.last) == (2, 8, 10)
    assert whole.data is given.data
    assert copied.data.size == 100 + kernel_runs.MARGIN
    (alone,) = kernel_runs.parts_of(given, 0, 3)
    assert (alone.first, alone.last) == (0, 3)


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (3, 2), (0, 11)])
def test_payloads_outside_their_bytes_are_refused(start: int, end: int) -> None:
    places = np.array([start], dtype=np.int64), np.array([end], dtype=np.int64)
    with pytest.raises(ValueError, match="expected a place within"):
        kernel_runs.ensure_within(Payloads(np.zeros(10, np.uint8), *places))


def test_runs_of_few_bytes_and_payloads_larger_than_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_runs, "MOST_BYTES", 100)
    texts = [b"[1]", b"[" + b"1," * 60 + b"1]", b"[2]", *[b"[3]"] * 100]
    result = JsonDecoder(pa.list_(pa.int8())).decode(payloads_of(texts))
    assert result.failures == {}
    assert result.values.to_pylist() == [[1], [1] * 61, [2], *[[3]] * 100]


def test_room_follows_what_was_needed() -> None:
    usage = kernel_runs.Usage(domains=[0, 1], strings=[1])
    totals = np.cumsum(np.full(100, 1000))
    assert usage.room_for(totals, 1000, 1)[0] == [100, 216]
    usage.learn(np.array([100, 5000]))
    assert usage.room_for(totals, 1000, 1)[0] == [100, 5516]
    assert usage.room_for(totals, 1000, 4)[0] == [100, 22016]
    usage.learn(np.array([1, 100_000_000]))
    assert usage.most_rows() == 1
    # An element has at least a byte.
    assert usage.room_for(totals[:1], 1000, 1)[0] == [1, 1016]


def test_a_payload_that_would_fill_the_memory_is_refused() -> None:
    kind = pa.list_(pa.struct([(f"f{number}", pa.int64()) for number in range(1_000)]))
    many = b"[" + b"{}," * 200_000 + b"{}]"
    decoder = JsonDecoder(kind)
    with pytest.raises(DecodedTooLargeError):
        decoder.decode(payloads_of([many]))
    few = b"[{}]"
    assert decoder.decode(payloads_of([few])).values.to_pylist()[0][0]["f999"] is None


def test_payloads_that_are_too_many_for_one_call_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernel_runs, "MOST_DECODED", 1_000)
    decoder = JsonDecoder(pa.list_(pa.int64()))
    with pytest.raises(DecodedTooLargeError):
        decoder.decode(payloads_of([b"[1,2,3]"] * 100))
    assert decoder.decode(payloads_of([b"[1,2,3]"] * 10)).values.to_pylist() == [[1, 2, 3]] * 10
