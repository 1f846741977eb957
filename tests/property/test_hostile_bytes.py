"""Whatever the bytes are: no crash, and kernels and reference agree, error or records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.columnar.arrow_schema import record_schema
from pylog.errors import LogStorageError
from pylog.record.batch_scan import find_bad_checksum, find_batches
from tests.conftest import NUMBA_IS_OFF
from tests.support import strategies
from tests.support.batches import (
    Built,
    Stored,
    batch_v2_of,
    joined,
    message_bytes,
    record_v2,
    wrapper_of,
)
from tests.support.codecs import CODEC_IDS, LEGACY_CODECS, compress
from tests.support.corruption import with_sound_checksums
from tests.support.decoding import kernel_batches, kernel_records, reference_records
from tests.support.reading import as_buffer

if TYPE_CHECKING:
    from collections.abc import Callable

BYTES = st.binary(max_size=120)


def outcome(read: Callable[[bytes], list[Stored]], data: bytes) -> list[Stored] | str:
    try:
        return read(data)
    except LogStorageError:
        return "refused"


def check_agreement(data: bytes) -> None:
    """Compare the two ways, first with all columns, then with what skips the most."""
    assert find_bad_checksum(find_batches(as_buffer(data))) is None
    expected = outcome(reference_records, data)
    assert outcome(kernel_records, data) == expected
    # Offsets are walked over in the same way when no other column is wanted.
    try:
        batches = kernel_batches(data, record_schema(["offset"]))
    except LogStorageError:
        assert expected == "refused"
    else:
        offsets = [offset for batch in batches for offset in batch.column("offset").to_pylist()]
        assert expected != "refused"
        assert offsets == [record.offset for record in expected if isinstance(record, Stored)]


def test_a_message_below_the_end_of_the_batch_before_it_is_refused() -> None:
    # Whatever the formats: in a log offsets go up, so that one of the two is wrong.
    message = message_bytes(1, None, b"v", magic=0)
    far = batch_v2_of(record_v2(0, 0, None, b"v"), base_offset=2**56, record_count=1)
    for before in (far, message_bytes(1, None, b"v", magic=0)):
        check_agreement(before + message)
        assert outcome(kernel_records, before + message) == "refused"


@given(strategies.segments(min_size=1, max_size=4), st.data())
def test_mutated_batches_with_sound_checksums(batches: list[Built], data: st.DataObject) -> None:
    check_agreement(with_sound_checksums(data.draw(strategies.mutated(joined(batches)))))


@st.composite
def v2_payloads(draw: st.DrawFn) -> tuple[bytes, int, int]:
    """Draw the records of a batch, slightly wrong, how many are claimed, and the last delta."""
    count = draw(st.integers(0, 5))
    gaps = st.sampled_from((1, 1, 2, 70, 9_000, 2**30, 0, -1))
    steps = draw(st.lists(gaps, min_size=count, max_size=count))
    deltas = [(sum(steps[: place + 1]) - 1) % 2**31 for place in range(count)]
    records = [
        record_v2(
            draw(st.integers(-(2**63), 2**63 - 1)),
            delta - draw(st.sampled_from((0, 0, 0, 0, 2**31))),
            draw(strategies.CONTENTS),
            draw(strategies.CONTENTS),
            draw(st.lists(st.tuples(st.binary(max_size=5), strategies.NULLABLE_BYTES), max_size=3)),
        )
        for delta in deltas
    ]
    payload = draw(st.one_of(BYTES, strategies.mutated(b"".join(records))))
    claimed = draw(st.sampled_from((count, count, count + 1, -1, 0, 2**31 - 1)))
    last_delta = max(deltas, default=0)
    return payload, claimed, draw(st.sampled_from((last_delta, 2**31 - 1, last_delta - 1)))


@given(v2_payloads(), st.sampled_from(tuple(CODEC_IDS)), BYTES)
def test_v2_payloads_of_any_bytes(
    payload: tuple[bytes, int, int], codec: str, next_to: bytes
) -> None:
    records, count, last_delta = payload
    data = batch_v2_of(
        compress(codec, records),
        last_offset_delta=last_delta,
        record_count=count,
        attributes=CODEC_IDS[codec],
    )
    check_agreement(data)
    # Bytes of another batch right after it must not be taken for this one's.
    following = batch_v2_of(record_v2(0, 0, next_to, None))
    check_agreement(data + following)


@given(st.sampled_from(tuple(CODEC_IDS)), BYTES, st.integers(0, 3))
def test_v2_streams_of_any_bytes(codec: str, stream: bytes, count: int) -> None:
    check_agreement(batch_v2_of(stream, record_count=count, attributes=CODEC_IDS[codec]))


@given(
    strategies.legacy(),
    st.sampled_from(LEGACY_CODECS),
    st.integers(0, 1),
    st.integers(0, 100),
    st.data(),
)
def test_legacy_sets_of_any_bytes(
    build: Callable[[int], Built], codec: str, magic: int, offset: int, data: st.DataObject
) -> None:
    inner = data.draw(BYTES | strategies.mutated(build(0).data))
    if data.draw(st.booleans()):
        inner = with_sound_checksums(inner)
    stream = data.draw(st.just(compress(codec, inner, magic)) | BYTES)
    check_agreement(wrapper_of(stream, offset=offset, magic=magic, codec=codec))


@given(st.binary(max_size=400))
def test_scanning_any_bytes_ends_and_stays_inside(data: bytes) -> None:
    scan = find_batches(as_buffer(data))
    assert scan.valid_bytes <= len(data)
    sizes = scan.headers.sizes_bytes
    assert scan.valid_bytes == int(sizes.sum())
    assert scan.headers.positions.tolist() == [int(sizes[:i].sum()) for i in range(len(sizes))]


RECORDS = {
    "common": record_v2(5, 1, b"key", b"value"),
    "nulls": record_v2(-1, 0, None, None),
    "two-byte numbers": record_v2(100, 100, b"k", bytes(100)),
    "three-byte delta": record_v2(10_000, 2, b"", b"v"),
    "headers": record_v2(0, 0, b"k", b"v", [("h", b"1"), ("i", None)]),
}
TELLING_VALUES = (*range(8), 0x3F, 0x40, 0x41, 0x7D, 0x7E, 0x7F, 0x80, 0x81, 0xFE, 0xFF)
VALUES = sorted({*TELLING_VALUES, *range(0, 256, 50 if NUMBA_IS_OFF else 5)})


@pytest.mark.parametrize("followed", [True, False])
@pytest.mark.parametrize("form", RECORDS)
def test_any_byte_of_a_record_may_be_wrong(form: str, *, followed: bool) -> None:
    # What follows decides whether the kernel's fast form may read a word ahead.
    record, following = RECORDS[form], record_v2(7, 3, b"another", bytes(30)) if followed else b""
    count = 2 if followed else 1
    for at in range(min(20, len(record))):
        for value in VALUES:
            changed = record[:at] + bytes([value]) + record[at + 1 :]
            data = batch_v2_of(
                changed + following, last_offset_delta=2**31 - 1, record_count=count, crc=0
            )
            assert outcome(kernel_records, data) == outcome(reference_records, data), (at, value)
