from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import CorruptRecordError, LogDirectoryError
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition, write_segment

if TYPE_CHECKING:
    from pathlib import Path

BATCH = batch_v2(plain_records(0, 5), leader_epoch=3)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    write_partition(tmp_path, {0: [BATCH]}, name="t-0")
    write_partition(tmp_path, {0: [BATCH]}, name="u-1")
    return tmp_path


def test_each_directory_is_listed_once(logs: Path) -> None:
    listing = pylog.list_partitions(logs, logs / "t-0")
    assert [(each.topic, each.partition) for each in listing.partitions] == [("t", 0), ("u", 1)]
    (first, _) = listing.partitions
    assert (first.log_start_offset, first.log_end_offset, first.leader_epoch) == (0, 5, 3)
    assert (first.segments, first.size_bytes) == (1, len(BATCH.data))
    assert (first.path, first.log_directory) == (str(logs / "t-0"), str(logs))
    assert (first.findings, first.notes) == ([], [])
    assert listing.totals == (2, 2, 2, 2 * len(BATCH.data), 0, 0, 0)


def test_directories_that_are_not_live_are_named_only(logs: Path) -> None:
    name = f"v-7.{'a' * 32}-delete"
    write_partition(logs, {0: [BATCH]}, name=name)
    listing = pylog.list_partitions(logs)
    assert listing.not_live == [("v", 7, "delete", str(logs / name))]
    assert listing.totals.not_live == 1
    assert len(listing.partitions) == 2


def test_errors_and_warnings_are_findings(logs: Path) -> None:
    write_segment(logs / "t-0", 0, [BATCH], tail=b"\xee" * 100)
    (logs / "u-1" / "00000000000000000009.index").write_bytes(b"")
    damaged, lacking = pylog.list_partitions(logs).partitions
    (error,) = damaged.errors
    assert isinstance(error, CorruptRecordError)
    assert (damaged.log_end_offset, damaged.warnings) == (None, [])
    assert damaged.findings == [str(error)]
    (warning,) = lacking.warnings
    assert "no .log file beside them" in warning
    assert (lacking.errors, lacking.findings) == ([], [warning])


def test_a_path_without_a_log_is_an_error(logs: Path, tmp_path: Path) -> None:
    with pytest.raises(LogDirectoryError):
        pylog.list_partitions(logs, tmp_path / "none")
