from __future__ import annotations

import numpy as np
import pytest

from pylog.kernels import decode_headers as fields
from pylog.record import batch_scan
from pylog.record.batch_header import parse_batch_header
from pylog.record.batch_scan import BadChecksum, BatchScan, find_bad_checksum, find_batches
from tests.support.batches import (
    COMMIT,
    Built,
    Stored,
    batch_v2,
    empty_batch_v2,
    joined,
    marker,
    message,
    plain_records,
    with_bad_crc,
    wrapper,
)
from tests.support.reading import as_buffer

MIXED = [
    message(Stored(0, -1, b"k", None), magic=0),
    message(Stored(1, 50, None, b"v"), magic=1, append_time=60),
    wrapper(plain_records(2, 3), magic=0, codec="lz4"),
    wrapper(plain_records(5, 3), magic=1, codec="snappy"),
    batch_v2(plain_records(8, 4), codec="zstd", leader_epoch=3, producer_id=9, producer_epoch=2),
    batch_v2(plain_records(12, 4), is_transactional=True, producer_id=4, base_sequence=7),
    marker(16, COMMIT, producer_id=4),
    empty_batch_v2(17, 20),
]


def scan(batches: list[Built], tail: bytes = b"") -> BatchScan:
    return find_batches(as_buffer(joined(batches) + tail))


def test_every_column_is_what_the_plain_parser_says() -> None:
    found = scan(MIXED)
    assert found.valid_bytes == len(joined(MIXED))
    assert found.defect is None
    data, headers = joined(MIXED), found.headers
    for index in range(len(headers)):
        at = int(headers.positions[index])
        header = parse_batch_header(data, at)
        assert at == sum(len(built.data) for built in MIXED[:index])
        assert headers.sizes_bytes[index] == header.size_bytes == len(MIXED[index].data)
        assert headers.offsets[index] == header.offset
        assert headers.last_offsets[index] == header.last_offset == MIXED[index].last_offset
        assert headers.magics[index] == header.magic
        assert headers.crcs[index] == header.crc
        assert headers.attributes[index] == header.attributes
        assert headers.partition_leader_epochs[index] == header.partition_leader_epoch
        assert headers.base_timestamps[index] == header.base_timestamp
        assert headers.max_timestamps[index] == header.max_timestamp
        assert headers.producer_ids[index] == header.producer_id
        assert headers.producer_epochs[index] == header.producer_epoch
        assert headers.base_sequences[index] == header.base_sequence
        assert headers.record_counts[index] == header.record_count
        assert headers.codec_ids[index] == header.codec_id
        assert headers.is_append_time[index] == (header.timestamp_type == 1)
        assert headers.is_control[index] == header.is_control_batch
        assert headers.is_transactional[index] == header.is_transactional


def test_select_keeps_the_batches_that_a_mask_picks() -> None:
    headers = scan(MIXED).headers
    assert headers.select(headers.is_v2).offsets.tolist() == [8, 12, 16, 17]
    assert headers.select(slice(1, 3)).magics.tolist() == [1, 0]
    assert headers.columns.shape == (fields.FIELD_COUNT, len(MIXED))


def test_an_empty_buffer_holds_no_batch() -> None:
    found = scan([])
    assert (len(found.headers), found.valid_bytes, found.defect) == (0, 0, None)


def test_every_cut_keeps_exactly_the_whole_batches_before_it() -> None:
    data = joined(MIXED)
    ends = np.cumsum([len(built.data) for built in MIXED])
    for length in range(len(data) + 1):
        found = find_batches(as_buffer(data[:length]))
        whole = int((ends <= length).sum())
        assert len(found.headers) == whole
        assert found.valid_bytes == (int(ends[whole - 1]) if whole else 0)
        assert found.defect is None


def test_many_small_messages_do_not_overflow_the_first_guess() -> None:
    batches = [message(Stored(offset, 0, None, b""), magic=0) for offset in range(1_000)]
    found = scan(batches)
    assert found.headers.offsets.tolist() == list(range(1_000))
    assert found.headers.positions.tolist() == [26 * offset for offset in range(1_000)]


@pytest.mark.parametrize(
    ("tail", "defect"),
    [
        (bytes(100), "batch size is 0, expected at least 14 in format v0"),
        (bytes(16) + b"\x03" + bytes(80), "record format (magic) is 3, expected 0, 1 or 2"),
        (bytes(16) + b"\xff" + bytes(80), "record format (magic) is 255, expected 0, 1 or 2"),
        (
            bytes(8) + b"\xff\xff\xff\xff" + bytes(4) + b"\x02" + bytes(80),
            "batch size is -1, expected at least 49 in format v2",
        ),
        (
            bytes(8) + b"\x00\x00\x00\x15" + bytes(4) + b"\x01" + bytes(80),
            "batch size is 21, expected at least 22 in format v1",
        ),
    ],
)
def test_an_impossible_header_is_reported_and_the_batches_before_it_are_kept(
    tail: bytes, defect: str
) -> None:
    found = scan(MIXED, tail)
    assert len(found.headers) == len(MIXED)
    assert found.valid_bytes == len(joined(MIXED))
    assert found.defect == defect


def test_fewer_than_17_bytes_of_anything_are_a_cut_header() -> None:
    assert scan(MIXED, b"\xff" * 16).defect is None
    assert scan(MIXED, b"\xff" * 17).defect is not None


@pytest.fixture(params=["instruction", "library"])
def summed_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have checksums computed by the kernel, as those of many bytes are, and by the library."""
    if request.param == "instruction":
        monkeypatch.setattr(batch_scan, "LEAST_KERNEL_BYTES", 1)
    else:
        monkeypatch.setattr(batch_scan, "has_crc32c_instructions", lambda: False)


@pytest.mark.usefixtures("summed_by")
def test_sound_checksums_are_found_sound() -> None:
    assert find_bad_checksum(scan(MIXED)) is None
    assert find_bad_checksum(scan([])) is None


@pytest.mark.usefixtures("summed_by")
@pytest.mark.parametrize("bad", range(len(MIXED)))
def test_the_first_wrong_checksum_is_found_whatever_its_format(bad: int) -> None:
    batches = [with_bad_crc(b) if i >= bad else b for i, b in enumerate(MIXED)]
    found = find_bad_checksum(scan(batches))
    right = parse_batch_header(MIXED[bad].data).crc
    assert found == BadChecksum(bad, stored=right ^ 0x01000000, computed=right)


@pytest.mark.usefixtures("summed_by")
def test_only_the_batches_asked_for_are_checked() -> None:
    batches = [with_bad_crc(built) for built in MIXED]
    only = np.zeros(len(MIXED), dtype=np.bool_)
    assert find_bad_checksum(scan(batches), only) is None
    only[[3, 6]] = True
    found = find_bad_checksum(scan(batches), only)
    assert found is not None
    assert found.index == 3
