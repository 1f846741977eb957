from __future__ import annotations

from typing import TYPE_CHECKING

import pylog
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition
from tests.support.mirror_records import connect

if TYPE_CHECKING:
    from pathlib import Path


def write(logs: Path, topic: str, *records: tuple[bytes, bytes | None]) -> None:
    stored = [Stored(offset, 1000 + offset, *each) for offset, each in enumerate(records)]
    write_partition(logs, {0: [batch_v2(stored)]}, name=f"{topic}-0")


def test_offsets_of_sources_are_rows(tmp_path: Path) -> None:
    key = ["files", {"filename": "a"}]
    records = [connect(key, {"position": 7}), connect(key, None), connect("no", {})]
    write(tmp_path, "connect-offsets", *records)
    rows = pylog.read_table(tmp_path, "connect_offsets").to_pylist()
    assert [(each["connector"], each["source_offset"]) for each in rows] == [
        ("files", '{"position":7}'),
        ("files", None),
        (None, None),
    ]
    assert rows[0]["source_partition"] == '{"filename":"a"}'
    assert [each["is_latest"] for each in rows] == [False, True, True]
    assert "is no JSON" in rows[2]["problem"]


def test_configurations_are_rows(tmp_path: Path) -> None:
    write(
        tmp_path,
        "mm2-configs.a.internal",
        connect("connector-c", {"properties": {"tasks.max": "1"}}),
        connect("task-c-0", {"properties": {}}),
        connect("session-key", {"key": "secret"}),
    )
    rows = pylog.read_table(tmp_path, "connect_configs").to_pylist()
    assert [(each["kind"], each["name"], each["task"]) for each in rows] == [
        ("connector", "c", None),
        ("task", "c", 0),
        ("session-key", None, None),
    ]
    assert rows[0]["config"] == '{"properties":{"tasks.max":"1"}}'
    assert "secret" not in str(rows)


def test_status_is_a_row(tmp_path: Path) -> None:
    said = {"state": "RUNNING", "trace": None, "worker_id": "w:8083", "generation": 4}
    topic = {"topic": {"name": "t", "connector": "c", "task": 1, "discoverTimestamp": 99_000}}
    write(
        tmp_path,
        "connect-status",
        connect("status-connector-c", said),
        connect("status-topic-t:connector-c", topic),
    )
    one, other = pylog.read_table(tmp_path, "connect_status").to_pylist()
    assert (one["kind"], one["connector"], one["state"], one["worker_id"], one["generation"]) == (
        "connector",
        "c",
        "RUNNING",
        "w:8083",
        4,
    )
    assert (other["kind"], other["used_topic"], other["task"]) == ("topic", "t", 1)
    assert other["discovered"].timestamp() == 99
