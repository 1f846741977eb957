"""What is looked at before an append is written: sizes, order and checksums of its batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.config import LogConfig
from pylog.errors import CorruptRecordError, OffsetsOutOfOrderError, RecordTooLargeError
from tests.support.batches import batch_v2_of
from tests.unit.log.idempotent_batches import ALL_FORMATS
from tests.unit.log.owned_log import OwnedLog, of_magic, one_batch, stored

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def owned(tmp_path: Path) -> OwnedLog:
    return OwnedLog(tmp_path)


def test_no_bytes_and_half_a_batch_append_nothing(owned: OwnedLog) -> None:
    whole = one_batch(b"value")
    assert owned.log.append_as_leader(b"").valid_bytes == 0
    assert owned.log.append_as_leader(whole[:-1]).valid_bytes == 0
    assert owned.log.log_end_offset == 0
    info = owned.log.append_as_follower(whole + one_batch(b"x", base_offset=1)[:40])
    assert (info.valid_bytes, owned.log.size_bytes) == (len(whole), len(whole))


def test_offsets_of_a_follower_must_increase(owned: OwnedLog) -> None:
    data = b"".join(one_batch(b"value", base_offset=offset) for offset in (0, 1, 3, 2, 4))
    with pytest.raises(OffsetsOutOfOrderError):
        owned.log.append_as_follower(data)
    assert owned.log.size_bytes == 0


@pytest.mark.parametrize(("magic", "codec"), ALL_FORMATS)
@pytest.mark.parametrize("start", [3, 4])
def test_batches_of_one_append_must_not_overlap(
    owned: OwnedLog, magic: int, codec: str, start: int
) -> None:
    owned.append_numbers(1)
    before = one_batch(b"1", b"2", b"3", b"4", base_offset=1)
    data = of_magic(magic, stored(b"a", b"b", b"c", base_offset=start), codec)
    expected = f"byte {len(before)} of the records to append holds offsets {start} to "
    with pytest.raises(OffsetsOutOfOrderError, match=f"{expected}.* the one before it ends at 4"):
        owned.log.append_as_follower(before + data)
    assert (owned.log.log_end_offset, len(owned.all_records())) == (1, 1)
    data = of_magic(magic, stored(b"a", b"b", b"c", base_offset=5), codec)
    owned.log.append_as_follower(before + data)
    assert [record.offset for record in owned.all_records()] == list(range(8))


def test_a_batch_may_not_end_before_it_begins(owned: OwnedLog) -> None:
    data = batch_v2_of(b"", base_offset=5, last_offset_delta=-1, record_count=0)
    with pytest.raises(OffsetsOutOfOrderError, match="holds offsets 5 to 4"):
        owned.log.append_as_follower(data)
    assert owned.log.log_end_offset == 0


def test_a_batch_above_max_message_bytes_is_refused_from_a_client_only(tmp_path: Path) -> None:
    small = one_batch(b"You", b"bethe")
    large = one_batch(b"change (I need more bytes)... blah blah blah.", b"More padding")
    owned = OwnedLog(tmp_path, LogConfig(max_message_bytes=len(large) - 1))
    owned.log.append_as_leader(small)
    with pytest.raises(RecordTooLargeError, match=f"{len(large)} bytes"):
        owned.log.append_as_leader(large)
    at_five = one_batch(
        b"change (I need more bytes)... blah blah blah.", b"More padding", base_offset=5
    )
    owned.log.append_as_follower(at_five)
    assert owned.log.log_end_offset == 7


def test_the_size_is_checked_again_after_recompression(tmp_path: Path) -> None:
    compressed = one_batch(b"a" * 5_000, codec="gzip")
    config = LogConfig(max_message_bytes=1_000, compression_type="uncompressed")
    owned = OwnedLog(tmp_path, config)
    with pytest.raises(RecordTooLargeError, match=r"max\.message\.bytes is 1000"):
        owned.log.append_as_leader(compressed)
    assert owned.log.log_end_offset == 0


def test_a_flipped_bit_is_found_before_anything_is_written(owned: OwnedLog) -> None:
    data = bytearray(one_batch(b"value"))
    data[-3] ^= 1
    for append in (owned.log.append_as_leader, owned.log.append_as_follower):
        with pytest.raises(CorruptRecordError, match="CRC"):
            append(bytes(data))
    assert owned.log.size_bytes == 0
