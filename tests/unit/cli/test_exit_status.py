from __future__ import annotations

import pytest

from pylog import errors
from pylog.cli.exit_status import FINDINGS, UNUSABLE, status_of


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
