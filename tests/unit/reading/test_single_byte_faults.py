"""One wrong byte, whichever: an error, or the same records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import batch_v2, marker, message, plain_records, wrapper
from tests.support.log_files import segment_path, write_partition
from tests.support.reading import scanned

if TYPE_CHECKING:
    from pathlib import Path

SEGMENTS = {
    0: [
        message(plain_records(0, 1)[0], magic=0),
        wrapper(plain_records(1, 3), magic=1, codec="lz4"),
    ],
    10: [batch_v2(plain_records(10, 5)), batch_v2(plain_records(15, 5), codec="gzip")],
    20: [batch_v2(plain_records(20, 3)), marker(23, 1), batch_v2(plain_records(24, 2))],
}


@pytest.mark.parametrize("with_index", [True, False])
@pytest.mark.parametrize(
    "flip", [0x01, pytest.param(0x80, marks=[pytest.mark.slow, pytest.mark.thorough]), 0xFF]
)
@pytest.mark.parametrize("base", SEGMENTS)
@pytest.mark.thorough(one_in=4)
def test_no_wrong_byte_changes_what_is_read_in_silence(
    tmp_path: Path, base: int, flip: int, *, with_index: bool
) -> None:
    directory = write_partition(
        tmp_path, SEGMENTS, with_index=with_index, with_time_index=with_index
    )
    records, path = scanned(directory), segment_path(directory, base)
    content = path.read_bytes()
    silent = []
    for position in range(len(content)):
        changed = bytearray(content)
        changed[position] ^= flip
        path.write_bytes(changed)
        try:
            if scanned(directory) != records:
                silent.append(position)
        except pylog.LogStorageError as error:
            assert f"{path} at byte " in str(error) or "orders-0" in str(error)  # noqa: PT017
    # The base offset of the log's last batch lies outside its checksum, and nothing follows it.
    last = len(content) - len(SEGMENTS[20][-1].data)
    allowed = range(last, last + 8) if base == 20 else range(0)
    assert set(silent) <= set(allowed)
