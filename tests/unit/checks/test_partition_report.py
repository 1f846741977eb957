"""What is said of one partition: its bytes, offsets and markers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pylog
from tests.support.batches import COMMIT, batch_v2, joined, marker, plain_records
from tests.support.log_files import write_partition
from tests.unit.checks.examined import FIRST, SECOND, THIRD, codes

if TYPE_CHECKING:
    from pathlib import Path


def test_a_sound_directory_has_no_finding(directory: Path) -> None:
    report = pylog.doctor(directory.parent)
    assert (codes(report), report.worst) == ([], None)
    [partition] = report.partitions
    assert partition.topic_partition == pylog.TopicPartition("orders", 0)
    assert (
        partition.size_bytes
        == partition.scanned_bytes
        == sum(len(joined(each)) for each in (FIRST, SECOND, THIRD))
    )
    assert (partition.start_offset, partition.end_offset) == (0, 30)
    assert partition.offsets == (30, 0, 0, 0, 0)


def test_markers_are_counted_apart(tmp_path: Path) -> None:
    data = batch_v2(plain_records(0, 4), producer_id=1, is_transactional=True)
    write_partition(tmp_path, {0: [data, marker(4, COMMIT, producer_id=1)]})
    [partition] = pylog.doctor(tmp_path).partitions
    assert (partition.offsets.records, partition.offsets.control_records) == (4, 1)
