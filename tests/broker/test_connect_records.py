"""Records of Kafka Connect's topics are to us what they are to Connect's own classes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from pylog.internal_topics.connect import read_config, read_offset, read_status
from tests.support.java_source import java_command
from tests.support.mirror_records import connect

SOURCE = Path(__file__).parent / "java" / "ConnectRecords.java"
pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("kafka_is_here")]

SAID = {"state": "FAILED", "trace": "a\ttrace", "worker_id": "w:8083", "generation": 4}
RUNNING = {"state": "RUNNING", "trace": None, "worker_id": "10.0.0.1:8083", "generation": 12}
TOPIC = {"name": "orders-2", "connector": "a-b", "task": 1, "discoverTimestamp": 1_700_000_000_000}
RECORDS: dict[str, list[tuple[object, object]]] = {
    "offsets": [
        (["files", {"filename": "ö.txt"}], {"position": 7}),
        (["jdbc-1", {"protocol": "1", "table": "a.b"}], {"incrementing": 2**53, "x": None}),
        (["mm2", {"cluster": "a", "partition": 0, "topic": "t"}], {"offset": 1.5, "y": True}),
        (["files", {"filename": "gone"}], None),
    ],
    "configs": [
        ("connector-a-b", {"properties": {"name": "a-b", "tasks.max": "1"}}),
        ("task-a-b-1", {"properties": {"task.class": "x", "empty": None}}),
        ("commit-a-b", {"tasks": 2}),
        ("target-state-a-b", {"state": "STOPPED"}),
        ("connector-a-b", None),
    ],
    "status": [
        ("status-connector-a-b", SAID),
        ("status-task-a-b-3", RUNNING),
        ("status-topic-orders-2:connector-a-b", {"topic": TOPIC}),
    ],
}


def test_connects_own_classes_understand_the_same(tmp_path: Path) -> None:
    records = [(kind, *connect(*each)) for kind, all_of in RECORDS.items() for each in all_of]
    lines = [
        f"{kind} {key.hex()} {'-' if value is None else value.hex()}\n"
        for kind, key, value in records
    ]
    (tmp_path / "records").write_text("".join(lines))
    done = subprocess.run(
        [*java_command(SOURCE), str(tmp_path / "records")],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    said = done.stdout.splitlines()
    known = {each.partition("=")[2] for each in said if each.startswith("KEY ")}
    assert known >= {"connector-", "task-", "commit-", "target-state-", "session-key"}
    assert known >= {"tasks-fencing-", "restart-connector-", "logger-cluster-"}
    found = [each.removeprefix("RECORD ") for each in said if each.startswith("RECORD ")]
    for (kind, key, value), theirs in zip(records, found, strict=True):
        assert _ours(kind, key, value) == _theirs(kind, key.decode(), theirs), (kind, key)


def _ours(kind: str, key: bytes, value: bytes | None) -> list[object]:
    match kind:
        case "offsets":
            offset = read_offset(key, value)
            return [
                offset.connector,
                json.loads(offset.source_partition),
                json.loads(offset.source_offset or "null"),
            ]
        case "configs":
            return [json.loads(read_config(key, value).config or "null")]
    status = read_status(key, value)
    if status.kind == "topic":
        shown = (
            f"TopicStatus{{topic='{status.used_topic}', connector='{status.connector}', "
            f"task={status.task}, discoverTimestamp={status.discovered_ms}}}"
        )
        return [f"{{{status.connector}={{{status.used_topic}={shown}}}}}"]
    fields = (status.connector, status.task, status.state, status.worker_id, status.generation)
    return ["null" if each is None else str(each) for each in (*fields, status.trace)]


def _theirs(kind: str, key: str, text: str) -> list[object]:
    if kind == "offsets":
        connector, partition, offset = text.split("\t")
        return [connector, json.loads(partition), json.loads(offset)]
    if kind == "configs":
        return [json.loads(text)]
    return [text] if key.startswith("status-topic") else [*text.split("\t", 5)]
