"""Facts about the records of a batch, for every format and codec; values counted by hand."""

from __future__ import annotations

import pytest

from pylog.columnar import group_decoder as decode_limits
from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.record.batch_header import parse_batch_header
from pylog.record.byte_buffer import SEND_LESS
from pylog.record.compression import Decompressor
from pylog.validation import record_summary
from pylog.validation.record_summary import RecordSummary, summarize
from tests.support.batches import (
    Stored,
    batch_v2,
    batch_v2_of,
    marker,
    message_bytes,
    with_bad_crc,
    wrapper,
    wrapper_of,
)
from tests.support.codecs import CODEC_IDS, CODECS, LEGACY_CODECS, compress
from tests.unit.log.owned_log import of_magic

FEW = 3
MANY = 100  # enough for the kernel


def summary_of(data: bytes) -> RecordSummary:
    return summarize(memoryview(data), parse_batch_header(data), Decompressor())


def records(count: int, *, first_offset: int = 0) -> list[Stored]:
    """Return records of which the second has no key, and the first no timestamp."""
    return [
        Stored(
            first_offset + index,
            -1 if index == 0 else 1000 - index,
            None if index == 1 else b"k",
            b"v",
        )
        for index in range(count)
    ]


@pytest.mark.parametrize("first_offset", [0, 7])
@pytest.mark.parametrize("count", [FEW, MANY])
@pytest.mark.parametrize("codec", CODECS)
def test_facts_of_v2_records(codec: str, count: int, first_offset: int) -> None:
    data = batch_v2(records(count, first_offset=first_offset), codec=codec).data
    assert summary_of(data) == RecordSummary(
        record_count=count,
        is_consecutive=True,
        null_keys=1,
        lowest_timestamp=1000 - (count - 1),
        highest_timestamp=999,
        without_timestamp=1,
    )


@pytest.mark.parametrize("count", [FEW, MANY])
def test_offsets_that_compaction_has_thinned_are_not_consecutive(count: int) -> None:
    every_other = records(2 * count)[::2]
    summary = summary_of(batch_v2(every_other).data)
    assert (summary.record_count, summary.is_consecutive) == (count, False)


@pytest.mark.parametrize("count", [FEW, MANY])
def test_records_that_begin_above_the_base_offset_are_not_consecutive(count: int) -> None:
    data = batch_v2(records(count, first_offset=1), base_offset=0).data
    assert not summary_of(data).is_consecutive


@pytest.mark.parametrize("count", [FEW, MANY])
def test_a_batch_with_the_time_of_its_append_has_no_other(count: int) -> None:
    summary = summary_of(batch_v2(records(count), append_time=5000).data)
    assert (summary.lowest_timestamp, summary.highest_timestamp) == (5000, 5000)
    assert summary.without_timestamp == 0


@pytest.mark.parametrize("codec", LEGACY_CODECS)
@pytest.mark.parametrize(
    ("magic", "times"), [(0, (None, -1, FEW)), (1, (998, 999, 1))], ids=["v0", "v1"]
)
def test_facts_of_a_wrapper(magic: int, times: tuple[int | None, int, int], codec: str) -> None:
    summary = summary_of(wrapper(records(FEW), magic=magic, codec=codec).data)
    lowest, highest, without = times
    assert summary == RecordSummary(FEW, True, 1, lowest, highest, without)  # noqa: FBT003


def test_a_plain_message_is_one_record() -> None:
    data = of_magic(1, [Stored(41, 77, None, b"v")])
    assert summary_of(data) == RecordSummary(1, True, 1, 77, 77, 0)  # noqa: FBT003


def test_a_marker_is_a_record_with_a_key() -> None:
    summary = summary_of(marker(9, 1, timestamp=55).data)
    assert summary == RecordSummary(1, True, 0, 55, 55, 0)  # noqa: FBT003


def test_equal_offsets_in_a_wrapper_are_not_consecutive() -> None:
    inner = b"".join(message_bytes(0, None, b"v", magic=0) for _ in range(FEW))
    data = wrapper_of(compress("gzip", inner, 0), offset=0, magic=0, codec="gzip")
    assert not summary_of(data).is_consecutive


def test_checksums_of_messages_are_verified() -> None:
    built = with_bad_crc(wrapper(records(FEW), magic=1, codec="gzip"))
    with pytest.raises(CorruptRecordError, match="CRC"):
        summary_of(built.data)


@pytest.mark.parametrize("count", [FEW, MANY])
@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("change", [-1, 1])
def test_a_count_in_the_header_that_is_wrong_is_found(change: int, codec: str, count: int) -> None:
    data = bytearray(batch_v2(records(count), codec=codec).data)
    data[57:61] = (count + change).to_bytes(4, "big")
    with pytest.raises(InvalidRecordError):
        summary_of(bytes(data))


def test_a_decompressor_is_used_again_and_again() -> None:
    decompressor = Decompressor()
    for codec in ("gzip", "zstd", "none", "lz4"):
        data = batch_v2(records(MANY), codec=codec).data
        found = summarize(memoryview(data), parse_batch_header(data), decompressor)
        assert found.record_count == MANY


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("first_offset", [0, 7])
def test_facts_of_a_large_batch_are_those_of_a_small_one(
    codec: str, first_offset: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = batch_v2(records(MANY, first_offset=first_offset), codec=codec).data
    monkeypatch.setattr(record_summary, "LARGE_BYTES", 0)
    monkeypatch.setattr(decode_limits, "_LEAST_PIECE_ROWS", 7)
    monkeypatch.setattr(decode_limits, "_MOST_PIECE_ROWS", 7)
    expected = RecordSummary(MANY, True, 1, 1000 - (MANY - 1), 999, 1)  # noqa: FBT003 - a tuple
    assert summary_of(data) == expected
    gap = [each for each in records(MANY) if each.offset != MANY // 2]
    thinned = batch_v2(gap, last_offset=MANY - 1, codec=codec).data
    assert not summary_of(thinned).is_consecutive


@pytest.mark.parametrize("codec", [codec for codec in LEGACY_CODECS if codec != "none"])
@pytest.mark.parametrize("magic", [0, 1])
def test_facts_of_a_large_wrapper_are_those_of_a_small_one(
    codec: str, magic: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = wrapper(records(MANY), magic=magic, codec=codec).data
    small = summary_of(data)
    monkeypatch.setattr(record_summary, "LARGE_BYTES", 0)
    monkeypatch.setattr(decode_limits, "_LEAST_PIECE_ROWS", 7)
    monkeypatch.setattr(decode_limits, "_MOST_PIECE_ROWS", 7)
    assert summary_of(data) == small
    assert (small.record_count, small.null_keys) == (MANY, 1)


def test_a_batch_that_decompresses_to_too_much_is_refused_with_what_a_producer_can_do() -> None:
    bomb = compress("zstd", bytes(1 << 20))
    data = batch_v2_of(bomb, attributes=CODEC_IDS["zstd"])
    with pytest.raises(InvalidRecordError, match="limit of 1000000 bytes; send smaller batches"):
        summarize(
            memoryview(data), parse_batch_header(data), Decompressor(1_000_000, advice=SEND_LESS)
        )
