"""The comparison finds whatever is not the same, and nothing else."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

import pytest

from tests.differential.comparison import differences
from tests.support.batches import Stored, batch_v2, crc32c, joined, plain_records
from tests.support.codecs import lz4_frame
from tests.support.damage import flip
from tests.support.log_files import segment_path, write_segment

if TYPE_CHECKING:
    from pathlib import Path

PARTITION = "topic-0"
FILE_TIME_MS = 1_700_000_000_000
CHECKPOINT = "cleaner-offset-checkpoint"


def write_directory(directory: Path, *, codec: str = "none") -> Path:
    partition = directory / PARTITION
    partition.mkdir(parents=True)
    batches = [batch_v2(plain_records(at, 2, timestamp=1_000 + at), codec=codec) for at in (0, 2)]
    write_segment(partition, 0, batches)
    set_time(segment_path(partition, 0), FILE_TIME_MS)
    snapshot = struct.pack(">hIi", 1, 0, 2) + b"a" * 46 + b"b" * 46
    segment_path(partition, 4, ".snapshot").write_bytes(snapshot)
    (directory / CHECKPOINT).write_text("0\n1\ntopic 0 4\n")
    return partition


def set_time(path: Path, ms: int) -> None:
    os.utime(path, ns=(ms * 1_000_000, ms * 1_000_000))


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Give two log directories that are the same."""
    for name in ("kafka", "ours"):
        write_directory(tmp_path / name)
    return tmp_path / "kafka", tmp_path / "ours"


def test_two_that_are_the_same_have_no_differences(pair: tuple[Path, Path]) -> None:
    assert differences(*pair, PARTITION) == []


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".snapshot"])
def test_a_byte_makes_a_difference(pair: tuple[Path, Path], suffix: str) -> None:
    path = segment_path(pair[1] / PARTITION, 4 if suffix == ".snapshot" else 0, suffix)
    flip(path, -1)
    set_time(path, FILE_TIME_MS)
    if suffix == ".log":
        with pytest.raises(AssertionError, match="checksum"):
            differences(*pair, PARTITION)
        return
    [found] = differences(*pair, PARTITION)
    assert found.startswith(path.name)


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".snapshot"])
@pytest.mark.parametrize("whose", [0, 1])
def test_a_file_that_only_one_has_makes_a_difference(
    pair: tuple[Path, Path], suffix: str, whose: int
) -> None:
    base_offset = 4 if suffix == ".snapshot" else 0
    segment_path(pair[whose] / PARTITION, base_offset, suffix).unlink()
    assert len(differences(*pair, PARTITION)) == 1


def test_another_file_time_makes_a_difference(pair: tuple[Path, Path]) -> None:
    set_time(segment_path(pair[1] / PARTITION, 0), FILE_TIME_MS + 1)
    [found] = differences(*pair, PARTITION)
    assert "file time" in found


def test_another_checkpoint_makes_a_difference(pair: tuple[Path, Path]) -> None:
    (pair[1] / CHECKPOINT).write_text("0\n1\ntopic 0 3\n")
    [found] = differences(*pair, PARTITION)
    assert CHECKPOINT in found


def test_the_order_of_producers_in_a_snapshot_makes_none(pair: tuple[Path, Path]) -> None:
    path = segment_path(pair[1] / PARTITION, 4, ".snapshot")
    head, entries = path.read_bytes()[:10], path.read_bytes()[10:]
    path.write_bytes(head + entries[46:] + entries[:46])
    assert differences(*pair, PARTITION) == []


def test_other_compressed_bytes_of_the_same_records_make_none(tmp_path: Path) -> None:
    for name, options in (("kafka", {}), ("ours", {"block_checksums": True})):
        partition = write_directory(tmp_path / name)
        sound = batch_v2(plain_records(0, 3), codec="lz4")
        payload = batch_v2(plain_records(0, 3)).data[61:]
        data = recompressed(sound.data, lz4_frame(payload, **options))
        segment_path(partition, 0).write_bytes(data)
        for suffix in (".index", ".timeindex"):
            segment_path(partition, 0, suffix).write_bytes(b"")
        time_entry = struct.pack(">qi", 1_002, 2)
        segment_path(partition, 0, ".timeindex").write_bytes(time_entry)
        set_time(segment_path(partition, 0), FILE_TIME_MS)
    logs = [segment_path(tmp_path / name / PARTITION, 0) for name in ("kafka", "ours")]
    assert logs[0].read_bytes() != logs[1].read_bytes()
    assert differences(tmp_path / "kafka", tmp_path / "ours", PARTITION) == []


def test_another_record_in_a_compressed_batch_makes_one(tmp_path: Path) -> None:
    for name, value in (("kafka", b"a"), ("ours", b"b")):
        partition = write_directory(tmp_path / name)
        batch = batch_v2([Stored(0, 1_000, b"key", value)], codec="zstd")
        segment_path(partition, 0).write_bytes(joined([batch]))
        set_time(segment_path(partition, 0), FILE_TIME_MS)
        segment_path(partition, 0, ".index").write_bytes(b"")
        segment_path(partition, 0, ".timeindex").write_bytes(struct.pack(">qi", 1_000, 0))
    [found] = differences(tmp_path / "kafka", tmp_path / "ours", PARTITION)
    assert "batch at offset 0" in found


def recompressed(batch: bytes, payload: bytes) -> bytes:
    covered = batch[21:61] + payload
    size = struct.pack(">i", 9 + len(covered))
    return batch[:8] + size + batch[12:17] + struct.pack(">I", crc32c(covered)) + covered
