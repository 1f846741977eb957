"""The cluster's metadata in a repaired copy: `pylog.checks.metadata_copy`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import (
    mark_clean_shutdown,
    write_meta_properties,
    write_partition,
    write_topic_id,
)
from tests.support.metadata_log import (
    METADATA,
    TOPIC_ID_TEXT,
    partition_record,
    topic_record,
    write_metadata_log,
    write_snapshot,
)

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = [topic_record("orders"), partition_record(0, 1, (1,))]
LEFT_OUT = pylog.TopicPartition("__cluster_metadata", 0)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    directory = tmp_path / "logs"
    place = write_partition(directory, {0: [batch_v2(plain_records(0, 3))]}, name="orders-0")
    write_topic_id(place, TOPIC_ID_TEXT)
    write_metadata_log(directory, RECORDS)
    write_meta_properties(directory)
    mark_clean_shutdown(directory)
    return directory


def copied_names(logs: Path, copy: Path) -> set[str]:
    summary = pylog.repair_copy(logs, copy)
    assert summary.left_out == []
    assert not summary.copy.refusals
    assert [each.topic for each in pylog.topics(copy).topics] == ["orders"]
    return {each.name for each in (copy / METADATA).iterdir()}


@pytest.mark.parametrize("name", ["._00000000000000000000.log", "00000000000000000000 (1).log"])
def test_it_is_copied_without_foreign_files(logs: Path, tmp_path: Path, name: str) -> None:
    (logs / METADATA / name).write_bytes(b"\0\5\x16\7")
    assert pylog.doctor(logs).refusals
    assert name not in copied_names(logs, tmp_path / "copy")


@pytest.mark.parametrize("content", [b"", b"nonsense"])
def test_it_is_copied_without_a_damaged_snapshot_that_the_log_does_not_need(
    logs: Path, tmp_path: Path, content: bytes
) -> None:
    snapshot = write_snapshot(logs / METADATA, 3, RECORDS)
    snapshot.write_bytes(content)
    [refusal] = pylog.doctor(logs).refusals
    assert (refusal.path, refusal.code) == (str(snapshot), "unusable_metadata")
    assert "move the file away" in refusal.message
    assert snapshot.name not in copied_names(logs, tmp_path / "copy")


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "partition.metadata", "quorum-state"])
def test_it_is_copied_without_a_side_file_that_cannot_be_read(
    logs: Path, tmp_path: Path, name: str
) -> None:
    (logs / METADATA / name).write_bytes(b"nonsense\n")
    assert name not in copied_names(logs, tmp_path / "copy")


def test_it_is_not_copied_where_only_a_damaged_snapshot_has_a_part_of_it(
    logs: Path, tmp_path: Path
) -> None:
    write_snapshot(logs / METADATA, 30, RECORDS).write_bytes(b"")
    summary = pylog.repair_copy(logs, tmp_path / "copy")
    assert summary.left_out == [LEFT_OUT]
    assert not (tmp_path / "copy" / METADATA).exists()


def test_it_is_not_copied_where_other_controllers_have_it(logs: Path, tmp_path: Path) -> None:
    for each in (logs / METADATA).iterdir():
        each.unlink()
    write_metadata_log(logs, RECORDS, voters=(1, 2, 3))
    summary = pylog.repair_copy(logs, tmp_path / "copy")
    assert summary.left_out == [LEFT_OUT]
    assert not (tmp_path / "copy" / METADATA).exists()
