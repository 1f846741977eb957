from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pylog.errors import CorruptSnapshotError, SegmentVanishedError
from pylog.files import producer_snapshot
from pylog.files.durable_io import DurableIO
from pylog.files.producer_snapshot import (
    ProducerSnapshotEntry,
    parse_producer_snapshot,
    producer_snapshot_bytes,
    read_producer_snapshot,
    write_producer_snapshot,
)
from pylog.model import NO_TIMESTAMP
from pylog.native.checksum import crc32c
from tests.support.recording_io import RecordingIO

if TYPE_CHECKING:
    from pathlib import Path

GOLDEN_SNAPSHOT = bytes.fromhex(
    "00015b83e057000000010000000000000001000200000001000000000000000200000003"
    "ffffffffffffffff000000030000000000000064"
)
EMPTY_SNAPSHOT = bytes.fromhex("000148674bc700000000")
# Written by a 4.3.0 broker.
REAL_SNAPSHOT = bytes.fromhex(
    "0001167d2e1a000000020000000000000000000200000004000000000000001c000000010000018edd9f9fc9"
    "00000000000000000000001800000000000000010000000000030000000000000017000000030000018edd9f9ad1"
    "ffffffff0000000000000014"
)


def test_entry_has_the_layout_of_the_format() -> None:
    assert parse_producer_snapshot(GOLDEN_SNAPSHOT) == [
        ProducerSnapshotEntry(
            producer_id=1,
            producer_epoch=2,
            last_sequence=1,
            last_offset=2,
            offset_delta=3,
            timestamp=NO_TIMESTAMP,
            coordinator_epoch=3,
            current_txn_first_offset=100,
        )
    ]


def test_snapshot_of_a_real_broker_is_read(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000029.snapshot"
    path.write_bytes(REAL_SNAPSHOT)
    assert read_producer_snapshot(path) == [
        (0, 2, 4, 28, 1, 1713115209673, 0, 24),
        (1, 0, 3, 23, 3, 1713115208401, -1, 20),
    ]


def test_snapshot_without_producers_is_empty() -> None:
    assert parse_producer_snapshot(EMPTY_SNAPSHOT) == []


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SegmentVanishedError):
        read_producer_snapshot(tmp_path / "00000000000000000029.snapshot")


@pytest.mark.parametrize("length", range(len(GOLDEN_SNAPSHOT)))
def test_short_file_is_corrupt(length: int) -> None:
    with pytest.raises(CorruptSnapshotError, match=rf"has {length} bytes, expected"):
        parse_producer_snapshot(GOLDEN_SNAPSHOT[:length])


@pytest.mark.parametrize("bit", range(8 * len(GOLDEN_SNAPSHOT)))
def test_any_flipped_bit_is_corrupt(bit: int) -> None:
    data = bytearray(GOLDEN_SNAPSHOT)
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(CorruptSnapshotError):
        parse_producer_snapshot(bytes(data))


@pytest.mark.parametrize(
    ("data", "position", "reason"),
    [
        (b"\0\2" + EMPTY_SNAPSHOT[2:], 0, "version 2, expected 1"),
        (EMPTY_SNAPSHOT + b"x", 6, "with 0 entries has 11 bytes, expected 10"),
        (EMPTY_SNAPSHOT[:6] + b"\xff" * 4, 6, "with -1 entries has 10 bytes"),
        (EMPTY_SNAPSHOT[:6] + b"\x7f\xff\xff\xff", 6, "with 2147483647 entries has 10 bytes"),
        (
            EMPTY_SNAPSHOT[:2] + b"\0\0\0\1" + EMPTY_SNAPSHOT[6:],
            2,
            "producer snapshot CRC stored 0x00000001, computed 0x48674bc7",
        ),
    ],
)
def test_error_names_file_position_and_both_values(
    tmp_path: Path, data: bytes, position: int, reason: str
) -> None:
    path = tmp_path / "00000000000000000029.snapshot"
    path.write_bytes(data)
    with pytest.raises(CorruptSnapshotError, match=reason) as caught:
        read_producer_snapshot(path)
    assert caught.value.path == path
    assert caught.value.position == position


def test_huge_file_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_snapshot, "MAX_PRODUCER_SNAPSHOT_BYTES", 9)
    path = tmp_path / "00000000000000000029.snapshot"
    path.write_bytes(EMPTY_SNAPSHOT)
    with pytest.raises(CorruptSnapshotError, match="has 10 bytes, expected at most 9"):
        read_producer_snapshot(path)


@settings(deadline=None)  # busy machines are slow at times
@given(
    st.lists(
        st.builds(
            ProducerSnapshotEntry,
            *(
                st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
                for bits in (64, 16, 32, 64, 32, 64, 32, 64)
            ),
        ),
        max_size=20,
    )
)
def test_what_a_broker_writes_is_read_back(entries: list[ProducerSnapshotEntry]) -> None:
    body = struct.pack(">i", len(entries))
    body += b"".join(struct.pack(">qhiqiqiq", *entry) for entry in entries)
    data = struct.pack(">hI", 1, crc32c(body)) + body
    assert parse_producer_snapshot(data) == entries


@settings(deadline=None)  # busy machines are slow at times
@given(st.binary(max_size=150))
def test_any_bytes_are_a_snapshot_or_corrupt(data: bytes) -> None:
    for snapshot in (data, b"\0\1" + data):
        try:
            parse_producer_snapshot(snapshot)
        except CorruptSnapshotError:
            continue


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], EMPTY_SNAPSHOT),
        ([ProducerSnapshotEntry(1, 2, 1, 2, 3, -1, 3, 100)], GOLDEN_SNAPSHOT),
        (
            [
                ProducerSnapshotEntry(0, 2, 4, 28, 1, 1713115209673, 0, 24),
                ProducerSnapshotEntry(1, 0, 3, 23, 3, 1713115208401, -1, 20),
            ],
            REAL_SNAPSHOT,
        ),
    ],
)
def test_snapshot_has_the_bytes_that_a_broker_writes(
    entries: list[ProducerSnapshotEntry], expected: bytes
) -> None:
    assert producer_snapshot_bytes(entries) == expected


@pytest.mark.parametrize(
    "entry",
    [
        ProducerSnapshotEntry(2**63, 0, 0, 0, 0, 0, 0, 0),
        ProducerSnapshotEntry(0, 2**15, 0, 0, 0, 0, 0, 0),
        ProducerSnapshotEntry(0, 0, 2**31, 0, 0, 0, 0, 0),
        ProducerSnapshotEntry(0, 0, 0, 0, 0, 0, 0, -(2**63) - 1),
    ],
)
def test_number_that_does_not_fit_is_refused_before_anything_is_written(
    tmp_path: Path, entry: ProducerSnapshotEntry
) -> None:
    with pytest.raises(ValueError, match="does not fit into a snapshot"):
        write_producer_snapshot(DurableIO(), tmp_path / "s", [entry], sync=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("sync", "synced"), [(True, ["sync 29.snapshot"]), (False, [])])
def test_snapshot_is_written_in_place_and_synced_only_if_asked(
    tmp_path: Path, *, sync: bool, synced: list[str]
) -> None:
    path = tmp_path / "29.snapshot"
    path.write_bytes(REAL_SNAPSHOT)
    io = RecordingIO(tmp_path)
    write_producer_snapshot(io, path, parse_producer_snapshot(GOLDEN_SNAPSHOT), sync=sync)
    assert path.read_bytes() == GOLDEN_SNAPSHOT
    assert io.summary == ["truncate 29.snapshot 0", "write 29.snapshot 0+56", *synced]
