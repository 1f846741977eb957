"""Facts about records, from a kernel: against what was written, and against the plain decoder."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.errors import InvalidRecordError
from pylog.kernels import summarize_records as kernel
from pylog.record.record_batch import RecordBatch
from tests.support.batches import Stored, batch_v2_of, record_v2


BASE_TIMESTAMP = 1_000_000
MAX_INT64 = 2**63 - 1


def summarize(payload: bytes, count: int, base_timestamp: int = BASE_TIMESTAMP) -> list[int] | None:
    """Return the facts, None where the kernel refuses the records."""
    facts = np.full(kernel.FACTS, -77, dtype=np.int64)
    # Guards on both sides: what is read beyond the records would change the result.
    buffer = np.frombuffer(b"\xff" * 9 + payload + b"\xff" * 9, dtype=np.uint8)
    status = kernel.summarize_records(buffer, 9, 9 + len(payload), count, base_timestamp, facts)
    if status != kernel.STATUS_OK:
        assert facts.tolist() == [-77] * kernel.FACTS
        return None
    return [int(fact) for fact in facts]


def payload_of(records: list[Stored]) -> bytes:
    return b"".join(
        record_v2(each.timestamp - BASE_TIMESTAMP, each.offset, each.key, each.value, each.headers)
        for each in records
    )


def test_facts_of_a_few_records_by_hand() -> None:
    records = [
        Stored(0, 1_000_000, b"k", b"v"),
        Stored(1, 999_990, None, None, (("h", b"1"), ("h", None))),
        Stored(2, -1, b"", b"x" * 300),
        Stored(3, 1_000_005, None, b""),
    ]
    assert summarize(payload_of(records), 4) == [2, 999_990, 1_000_005, 1, 1]


@pytest.mark.parametrize("offsets", [(0, 2), (1, 2), (0, 0), (1, 0)])
def test_offsets_that_do_not_count_up_from_0_are_told(offsets: tuple[int, int]) -> None:
    records = [Stored(offset, 1_000_000, b"k", b"v") for offset in offsets]
    found = summarize(payload_of(records), 2)
    assert found is not None
    assert found[kernel.IS_CONSECUTIVE] == 0


def test_records_without_any_timestamp() -> None:
    records = [Stored(0, -1, b"k", b"v"), Stored(1, -1, b"k", b"v")]
    assert summarize(payload_of(records), 2) == [0, MAX_INT64, -1, 2, 1]


stamps = st.one_of(st.just(-1), st.integers(0, 2**40))
optional = st.one_of(st.none(), st.binary(max_size=200))
headers = st.lists(st.tuples(st.text(max_size=5), optional), max_size=3).map(tuple)


@given(st.lists(st.tuples(stamps, optional, optional, headers), min_size=1, max_size=30))
def test_facts_are_those_of_what_was_written(
    rows: list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]],
) -> None:
    records = [Stored(index, *row) for index, row in enumerate(rows)]
    times = [row[0] for row in rows]
    assert summarize(payload_of(records), len(rows)) == [
        sum(row[1] is None for row in rows),
        min((each for each in times if each >= 0), default=MAX_INT64),
        max(times),
        times.count(-1),
        1,
    ]


def plain(payload: bytes, count: int) -> bool:
    """Whether the plain decoder takes the records."""
    batch = batch_v2_of(
        payload, base_offset=0, last_offset_delta=0, record_count=count, base_timestamp=0
    )
    try:
        list(RecordBatch(batch).records())
    except InvalidRecordError:
        return False
    return True


VICTIM = payload_of(
    [
        Stored(0, 1_000_000, b"key", b"value", (("h", b"1"), ("g", None))),
        Stored(1, 1_000_001, None, b"v" * 70),
        Stored(2, 1_000_002, b"", None),
    ]
)
few_in_slow_modes = 7 if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0" else 1


def test_every_changed_byte_is_refused_exactly_where_the_plain_decoder_refuses_it() -> None:
    seen = set()
    for at in range(0, len(VICTIM), few_in_slow_modes):
        for value in (0x00, 0x01, 0x7F, 0x80, 0xFF, VICTIM[at] ^ 1, VICTIM[at] ^ 2):
            changed = VICTIM[:at] + bytes([value]) + VICTIM[at + 1 :]
            is_sound = plain(changed, 3)
            assert (summarize(changed, 3) is not None) == is_sound, (at, value)
            seen.add(is_sound)
    assert seen == {True, False}


@pytest.mark.parametrize("count", [0, 1, 2, 4, 2**31 - 1])
def test_a_wrong_count_is_refused(count: int) -> None:
    assert summarize(VICTIM, count) is None


def test_every_cut_is_refused() -> None:
    for length in range(len(VICTIM)):
        assert summarize(VICTIM[:length], 3) is None, length


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="nothing is compiled")
def test_one_signature_is_compiled() -> None:
    summarize(VICTIM, 3)
    assert len(kernel.summarize_records.signatures) == 1
