from __future__ import annotations

import json

import pytest

from pylog.errors import InvalidRecordError
from pylog.internal_topics.connect import (
    CONFIGS,
    OFFSETS,
    STATUSES,
    ConnectConfig,
    ConnectDecoder,
    ConnectOffset,
    ConnectStatus,
    read_config,
    read_offset,
    read_status,
)
from tests.support.mirror_records import connect


def test_offsets_are_of_a_connector_and_of_what_it_reads() -> None:
    key = ["files", {"filename": "ö.txt"}]
    assert read_offset(*connect(key, {"position": 7})) == ConnectOffset(
        "files", '{"filename":"ö.txt"}', '{"position":7}'
    )
    assert read_offset(*connect(key, None)).source_offset is None
    enveloped = {"schema": {"type": "map"}, "payload": {"position": 7}}
    assert read_offset(*connect(key, enveloped)).source_offset == '{"position":7}'
    own = {"schema": "public", "payload": 3}  # an offset that looks like an envelope
    assert read_offset(*connect(key, own)).source_offset == '{"schema":"public","payload":3}'


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("connector-my-sink", {"properties": {"a": "b"}}, ("connector", "my-sink", None)),
        ("task-my-sink-12", {"properties": {}}, ("task", "my-sink", 12)),
        ("commit-my-sink", {"tasks": 2}, ("commit", "my-sink", None)),
        ("target-state-my-sink", {"state": "PAUSED"}, ("target-state", "my-sink", None)),
        ("tasks-fencing-my-sink", {"task-count": 2}, ("tasks-fencing", "my-sink", None)),
        ("restart-connector-x", {"only-failed": True}, ("restart-connector", "x", None)),
        ("logger-cluster-org.apache", {"level": "DEBUG"}, ("logger-cluster", "org.apache", None)),
    ],
)
def test_configurations_are_of_the_kind_that_their_key_says(
    key: str, value: object, expected: tuple[str, str, int | None]
) -> None:
    text = json.dumps(value, separators=(",", ":"))
    assert read_config(*connect(key, value)) == ConnectConfig(*expected, text)
    assert read_config(*connect(key, None)) == ConnectConfig(*expected, None)


def test_the_key_of_a_session_is_hidden() -> None:
    value = {"key": "c2VjcmV0", "algorithm": "HmacSHA256", "creation-timestamp": 5}
    found = read_config(*connect("session-key", value))
    assert found.kind == "session-key"
    assert "c2VjcmV0" not in str(found)
    assert "HmacSHA256" in str(found)


def test_status_is_of_connectors_tasks_and_topics() -> None:
    said = {"state": "FAILED", "trace": "java.lang", "worker_id": "w:8083", "generation": 4}
    expected = {"state": "FAILED", "trace": "java.lang", "worker_id": "w:8083", "generation": 4}
    assert read_status(*connect("status-connector-my-sink", said)) == ConnectStatus(
        "connector",
        "my-sink",
        None,
        **expected,  # type: ignore[arg-type]
    )
    assert read_status(*connect("status-task-my-sink-3", said)) == ConnectStatus(
        "task",
        "my-sink",
        3,
        **expected,  # type: ignore[arg-type]
    )
    topic = {"topic": {"name": "t", "connector": "c", "task": 1, "discoverTimestamp": 99}}
    assert read_status(*connect("status-topic-t:connector-c", topic)) == ConnectStatus(
        "topic", "c", 1, "t", discovered_ms=99
    )
    assert read_status(*connect("status-task-my-sink-3", None)).state is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"\xff", b"{}"),
        (b"other", b"{}"),
        (b"task-1", b"{}"),
        (b"task-x-y", b"{}"),
        (b"status-task-x", b"{}"),
        (b"status-topic-:connector-c", b"{}"),
        (b"connector-x", b"[]"),
        (b"status-connector-x", b'"text"'),
        (b"status-connector-x", b'{"state":7}'),
        (b"status-connector-x", b'{"generation":"1"}'),
        (b"status-topic-t:connector-c", b'{"topic":[]}'),
        (b'["c"]', b"{}"),
        (b"[1,{}]", b"{}"),
        (b'["c",{}]', b"7"),
        (b'["c",{}]', b'{"x":NaN}'),
        (b'["c",{}]', b'{"x":1e999}'),
        (b'["c",{}]', b"\xff"),
        (b'["c",{}]', b"[" * 200_000),
    ],
)
def test_what_is_no_such_record_is_told(key: bytes | None, value: bytes) -> None:
    for read in (read_offset, read_config, read_status):
        with pytest.raises(InvalidRecordError, match="of Kafka Connect"):
            read(key, value)


def test_the_decoder_prints_json_in_one_line() -> None:
    decode = ConnectDecoder().decode
    assert decode(b'["c",{"a":1}]', b'{"b": 1.50}', 0) == ('["c",{"a":1}]', '{"b": 1.50}')
    assert decode(b"connector-c", None, 0) == ("connector-c", "<DELETE>")
    assert decode(b"connector-c", b'{\n"b": "\\ud800"}', 0)[1] == '{"b":"\\ud800"}'
    with pytest.raises(InvalidRecordError, match=r"the value of a record .* is no JSON"):
        decode(b"connector-c", b"{", 0)


def test_topics_are_known_by_their_usual_names() -> None:
    names = {
        "connect-offsets": OFFSETS,
        "_connect-offsets": OFFSETS,
        "connect-cluster-offsets": OFFSETS,
        "mm2-offsets.a.internal": OFFSETS,
        "my-connect-configs": CONFIGS,
        "mm2-configs.a.internal": CONFIGS,
        "connect-status": STATUSES,
        "mm2-status.a.internal": STATUSES,
        "mm2-offset-syncs.a.internal": None,
        "orders-status": None,
        "__consumer_offsets": None,
    }
    for name, expected in names.items():
        found = [each for each in (OFFSETS, CONFIGS, STATUSES) if each.fullmatch(name)]
        assert found == ([expected] if expected else []), name
