"""Messages in wrappers of v0 and v1 whose own checksum is wrong: kept as by Kafka, and reported.

Kafka's cleaner looks at no checksum of such a message, and computes those that it writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.batches import message_bytes, wrapper_of
from tests.support.codecs import compress
from tests.unit.cleaner.dirty_log import NOW_MS, DirtyLog

if TYPE_CHECKING:
    from pathlib import Path

FORMATS = [(magic, codec) for magic in (0, 1) for codec in ("gzip", "snappy", "lz4")]
PAIRS = [(b"a", b"1"), (b"b", b"2"), (b"c", b"3"), (b"d", b"4")]


def wrapped(magic: int, codec: str, wrong: set[int]) -> bytes:
    """Return a wrapper of four messages, some of which store a checksum of 5."""
    inner = b"".join(
        message_bytes(
            offset, *pair, magic=magic, timestamp=NOW_MS, crc=5 if offset in wrong else None
        )
        for offset, pair in enumerate(PAIRS)
    )
    return wrapper_of(
        compress(codec, inner, magic=magic), offset=3, magic=magic, codec=codec, timestamp=NOW_MS
    )


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_the_bytes_are_those_of_a_sound_log_and_the_damage_is_told(
    tmp_path: Path, magic: int, codec: str
) -> None:
    written = {}
    wrong: set[int]
    for name, wrong in (("sound", set()), ("damaged", {1, 3})):
        (tmp_path / name).mkdir()
        log = DirtyLog(tmp_path / name)
        log.copy(wrapped(magic, codec, wrong))
        stats = log.roll_and_clean().stats
        written[name] = log.log.segments[0].log.read_at(0, log.log.segments[0].size_bytes)
        expected = (2, True) if wrong else (0, False)
        assert (stats.damaged_records, stats.first_damage is not None) == expected
    assert bytes(written["damaged"]) == bytes(written["sound"])
    assert stats.first_damage is not None
    path = tmp_path / "damaged" / "topic-0" / "00000000000000000000.log"
    assert stats.first_damage.startswith(
        f"offset 1, {path} at byte 0: message CRC stored 0x00000005, computed 0x"
    )


def test_a_damaged_record_that_goes_is_not_told(tmp_path: Path) -> None:
    log = DirtyLog(tmp_path)
    log.copy(wrapped(1, "gzip", {1, 2}))
    log.put((b"b", b"later"))
    stats = log.roll_and_clean().stats
    assert stats.damaged_records == 1
    assert (stats.first_damage or "").startswith("offset 2, ")


def test_every_damaged_message_is_counted(tmp_path: Path) -> None:
    log = DirtyLog(tmp_path)
    log.copy(wrapped(1, "lz4", {1, 2, 3}))
    assert log.roll_and_clean().stats.damaged_records == 3
