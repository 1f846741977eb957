"""Batches and what stands beside them: leader epochs."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import (
    segment_path,
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
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Give a node's directory with a log of leader epoch 1; its next leader begins epoch 2."""
    batches = [batch_v2(plain_records(at, 5), leader_epoch=1) for at in range(0, 30, 5)]
    partition = write_partition(tmp_path, {0: batches})
    write_topic_id(partition, TOPIC_ID_TEXT)
    write_meta_properties(tmp_path)
    write_metadata_log(tmp_path, [topic_record("orders"), partition_record(0, 1, (1,))])
    return tmp_path


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["1 0"], []),
        (["1 0", "2 12"], [(12, None)]),  # consumers go back to where epoch 2 is said to begin
        (["2 0"], [(0, None)]),
        (["1 0", "3 12"], []),  # which is not reached: a leader drops it
        (["0 0"], []),  # consumers ask about epoch 1, and are told the end of the log
    ],
)
def test_an_epoch_that_seems_to_have_begun_before_sends_consumers_back(
    logs: Path, lines: list[str], expected: list[tuple[int, int | None]]
) -> None:
    text = "\n".join(["0", str(len(lines)), *lines]) + "\n"
    (logs / "orders-0" / "leader-epoch-checkpoint").write_text(text)
    verdict = pylog.doctor(logs).verdict
    assert [(each.from_offset, each.to_offset) for each in verdict.consumers] == expected


def test_without_the_metadata_any_epoch_may_be_reached(logs: Path) -> None:
    partition = logs / "orders-0"
    (partition / "leader-epoch-checkpoint").write_text("0\n2\n1 0\n9 12\n")
    assert pylog.doctor(logs).verdict.consumers == []
    shutil.rmtree(logs / METADATA)
    [affected] = pylog.doctor(logs).verdict.consumers
    assert affected.from_offset == 12


@pytest.mark.parametrize(("magic", "end"), [(3, 15), (127, 15), (200, 5)])
def test_a_broker_keeps_a_batch_of_a_later_format_which_no_consumer_reads(
    tmp_path: Path, magic: int, end: int
) -> None:
    batches = [batch_v2(plain_records(base, 5)) for base in (0, 5, 10)]
    path = segment_path(write_partition(tmp_path, {0: batches}), 0)
    content = bytearray(path.read_bytes())
    content[len(batches[0].data) + 16] = magic
    path.write_bytes(content)
    report = pylog.doctor(tmp_path)
    [partition] = report.partitions
    assert partition.start is not None
    assert partition.start.log_end_offset == end
    [damaged] = [each for each in partition.findings if each.code == "damaged_batches"]
    assert (damaged.next_offset, damaged.end_offset) == (5, 10)
    assert bool(report.verdict.loses_records) is (end == 5)
    assert bool(report.verdict.consumers) is (end == 15)
