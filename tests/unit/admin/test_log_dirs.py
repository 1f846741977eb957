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
    disk_bytes = sum(path.stat().st_size for path in logs.rglob("*") if path.is_file())
    assert listing.totals == (2, 2, 2, 2 * len(BATCH.data), 0, 0, 0, disk_bytes)


def test_directories_that_are_not_live_are_named_only(logs: Path) -> None:
    name = f"v-7.{'a' * 32}-delete"
    write_partition(logs, {0: [BATCH]}, name=name)
    listing = pylog.list_partitions(logs)
    size = sum(path.stat().st_size for path in (logs / name).iterdir())
    assert listing.not_live == [("v", 7, "delete", str(logs / name), size)]
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
    assert "the batches before that end at offset 5" in str(error)
    (warning,) = lacking.warnings
    assert "no .log file beside them" in warning
    assert (lacking.errors, lacking.findings) == ([], [warning])


def test_a_path_without_a_log_is_an_error(logs: Path, tmp_path: Path) -> None:
    with pytest.raises(LogDirectoryError):
        pylog.list_partitions(logs, tmp_path / "none")


@pytest.mark.parametrize(
    ("lines", "epoch"),
    [("1 0\n4 3\n2 4\n", 2), ("3 0\n5 0\n", 5), ("1 0\n7 4\n2 2\n", 2), ("1 0\n1 x\n", None)],
)
def test_the_epoch_is_the_one_that_a_broker_has_after_loading_the_checkpoint(
    logs: Path, lines: str, epoch: int | None
) -> None:
    count = lines.count("\n")
    (logs / "t-0" / "leader-epoch-checkpoint").write_text(f"0\n{count}\n{lines}")
    [listed] = pylog.list_partitions(logs / "t-0").partitions
    assert listed.leader_epoch == epoch
    assert len(listed.errors) == 1  # that it contradicts itself is still told


@pytest.mark.parametrize("checkpoint", [None, "0\n2\n4 0\n2 3\n", "nonsense\n"])
def test_the_table_of_partitions_says_the_same_epoch(logs: Path, checkpoint: str | None) -> None:
    write_segment(logs / "t-0", 5, [])  # it has just been rolled: the last batch is before it
    if checkpoint is not None:
        (logs / "t-0" / "leader-epoch-checkpoint").write_text(checkpoint)
    [listed] = pylog.list_partitions(logs / "t-0").partitions
    [row] = pylog.read_table(logs / "t-0", "partitions").to_pylist()
    expected = {None: 3, "nonsense\n": None}.get(checkpoint, 2)
    assert (listed.leader_epoch, row["leader_epoch"]) == (expected, expected)
    assert len(listed.errors) == len(row["defects"])
