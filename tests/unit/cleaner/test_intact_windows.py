"""What a cleaning reads is checked: damage is named, and the log stays as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.errors import CorruptRecordError, InvalidRecordError
from tests.support.batches import batch_v2_of
from tests.unit.cleaner.dirty_log import DirtyLog

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("place", ["crc", "size", "end", "offset", "records"])
def test_damage_is_named_and_leaves_the_log_as_it_was(tmp_path: Path, place: str) -> None:
    """Kafka: testCorruptMessageSizeLargerThanBytesAvailable."""
    dirty = DirtyLog(tmp_path)
    dirty.put((b"a", b"1"))
    first = dirty.log.segments[0].size_bytes
    dirty.put((b"a", b"2"))
    dirty.log.roll()
    path = dirty.directory / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    if place == "crc":
        data[-1] ^= 1
    elif place == "size":
        data[first + 8] = 0x7F
    elif place == "end":
        data[first:] = data[first:-1]
    elif place == "offset":
        data[first : first + 8] = bytes(8)
    else:
        data[first:] = batch_v2_of(b"\x09\0\0", base_offset=1)
    path.write_bytes(data)
    dirty.reopen_without_looking()
    before = dirty.files
    with pytest.raises((CorruptRecordError, InvalidRecordError)) as caught:
        dirty.clean()
    assert caught.value.path == str(path)
    assert caught.value.position == first
    assert dirty.files == before


def test_batches_larger_than_a_window_are_cleaned(tmp_path: Path) -> None:
    """Kafka: testLargeMessage."""
    dirty = DirtyLog(tmp_path, max_message_bytes=5 << 20, segment_bytes=16 << 20)
    for value in (b"1", b"2"):
        dirty.put((b"k", value * (2 << 20)), (value, b""))
    dirty.roll_and_clean()
    assert dirty.offsets == [1, 2, 3]
