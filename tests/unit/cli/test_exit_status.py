from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog import errors
from pylog.cli.exit_status import FINDINGS, SOUND, UNUSABLE, status_of, status_of_listing
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition, write_segment

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "error",
    [
        errors.CorruptRecordError("damage"),
        errors.InvalidRecordError("damage"),
        errors.UnsupportedCodecError("damage"),
        errors.CorruptIndexError("damage"),
        errors.CorruptSnapshotError("damage"),
        errors.CorruptCheckpointError("damage"),
    ],
)
def test_damage_is_a_finding(error: Exception) -> None:
    assert status_of(error) == FINDINGS


@pytest.mark.parametrize(
    "error",
    [
        errors.LogDirectoryError("nothing here"),
        errors.UnknownTopicOrPartitionError("nothing here"),
        errors.OffsetOutOfRangeError("orders-0", 9, 0, 5),
        errors.SegmentVanishedError("gone"),
        errors.LogStorageError("no such time"),
        PermissionError(13, "Permission denied"),
        ValueError("wrong"),
    ],
)
def test_what_cannot_be_done_is_not_a_finding(error: Exception) -> None:
    assert status_of(error) == UNUSABLE


def test_a_listing_is_unusable_only_if_no_partition_can_be_read(tmp_path: Path) -> None:
    def listed(name: str) -> int:
        return status_of_listing(pylog.list_partitions(tmp_path / name))

    for name in ("sound-0", "warned-0"):
        write_partition(tmp_path, {0: [batch_v2(plain_records(0, 1))]}, name=name)
    (tmp_path / "warned-0" / "00000000000000000009.index").write_bytes(b"")
    assert listed("sound-0") == SOUND
    assert listed("warned-0") == listed(".") == FINDINGS
    shutil.copytree(tmp_path / "sound-0", tmp_path / "unreadable-0")
    log = tmp_path / "unreadable-0" / "00000000000000000000.log"
    log.unlink()
    log.mkdir()
    assert listed("unreadable-0") == UNUSABLE
    assert listed(".") == FINDINGS
    log = log.rename(log.with_name("00000000000000000007.log"))
    write_segment(log.parent, 0, [batch_v2(plain_records(0, 1))])
    assert listed("unreadable-0") == SOUND  # a broker, too, passes over a folder
