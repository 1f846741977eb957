"""Whoever writes keeps to what the cluster's metadata says of the topic; options win."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pylog
from pylog.writing.record_removal import delete_records, plan_record_deletion
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition, write_topic_id
from tests.support.metadata_log import (
    TOPIC,
    TOPIC_ID_TEXT,
    config_record,
    partition_record,
    topic_record,
    write_metadata_log,
)

if TYPE_CHECKING:
    from pathlib import Path

REFUSED = (ValueError, pylog.errors.LogStorageError)


def directory_with(tmp_path: Path, **properties: str) -> Path:
    """Make the log directory of broker 1, whose metadata configure topic "orders"."""
    logs = tmp_path / "logs"
    partition = write_partition(logs, {0: [batch_v2(plain_records(0, 10))]})
    write_topic_id(partition, TOPIC_ID_TEXT)
    (logs / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=the-cluster\n")
    records = [topic_record("orders"), partition_record(0, 1, (1,))]
    for name, value in properties.items():
        records.append(config_record(TOPIC, "orders", name.replace("_", "."), value))
    write_metadata_log(logs, records)
    return logs


def write(logs: Path, key: bytes | None, **options: object) -> None:
    pylog.write_topic(logs, "orders", [{"key": key, "value": b"v"}], **options)  # type: ignore[arg-type]


def test_a_compacted_topic_takes_no_record_without_a_key(tmp_path: Path) -> None:
    logs = directory_with(tmp_path, cleanup_policy="compact")
    with pytest.raises(REFUSED, match="needs a key"):
        write(logs, None)
    job = pylog.jobs.WriteJob(str(logs), "nightly", topic="orders")
    row = pa.record_batch({"key": pa.array([None], pa.binary()), "value": [b"v"]})
    with pytest.raises(REFUSED, match="has no key, and"), job.stage("attempt") as attempt:
        attempt.append(row)
    write(logs, b"k")
    assert pylog.scan(logs, topics="orders").count() == 11


@pytest.mark.parametrize("is_plan", [True, False])
@pytest.mark.parametrize(
    ("policy", "is_refused"), [("compact", True), ("delete", False), ("compact,delete", False)]
)
def test_records_are_deleted_only_where_the_policy_has_delete(
    tmp_path: Path, policy: str, *, is_refused: bool, is_plan: bool
) -> None:
    logs = directory_with(tmp_path, cleanup_policy=policy)
    delete = plan_record_deletion if is_plan else delete_records
    if is_refused:
        with pytest.raises(REFUSED, match="does not contain delete"):
            delete(logs, {("orders", 0): 5})
    else:
        moved = delete(logs, {("orders", 0): 5})
        assert [each.after for each in moved.values()] == [5]


def test_batches_have_the_topics_compression_time_and_segment_size(tmp_path: Path) -> None:
    logs = directory_with(
        tmp_path,
        compression_type="lz4",
        message_timestamp_type="LogAppendTime",
        segment_bytes="1048576",
    )
    before = len(list((logs / "orders-0").glob("*.log")))
    for _ in range(3):
        write(logs, b"k" * 500_000, compression="none")
    rows = pylog.read_table(logs, "batches", topics=["orders"]).to_pylist()[1:]
    assert {row["codec"] for row in rows} == {"lz4"}
    assert {row["timestamp_type"] for row in rows} == {1}
    assert before == 1


def test_too_large_a_message_is_refused(tmp_path: Path) -> None:
    logs = directory_with(tmp_path, max_message_bytes="1000")
    with pytest.raises(REFUSED, match="1000"):
        write(logs, b"k" * 2_000)


def test_too_large_a_record_of_a_compressed_batch_is_refused(tmp_path: Path) -> None:
    logs = directory_with(tmp_path, max_decompressed_message_bytes="1000")
    write(logs, b"k" * 2_000, compression="none")
    with pytest.raises(REFUSED, match="1000"):
        write(logs, b"k" * 2_000, compression="lz4")


def test_what_is_stored_beside_the_logs_wins(tmp_path: Path) -> None:
    logs = directory_with(tmp_path, cleanup_policy="compact")
    with pylog.logs.own_log_directory(logs) as manager:
        manager.store_topic_config("orders", {"cleanup.policy": "delete"})
    write(logs, None)


def test_metadata_of_another_topic_of_that_name_say_nothing(tmp_path: Path) -> None:
    logs = directory_with(tmp_path, cleanup_policy="compact")
    text = "version: 0\ntopic_id: YmJiYmJiYmJiYmJiYmJiYg"
    (logs / "orders-0" / "partition.metadata").write_text(text)
    write(logs, None)
