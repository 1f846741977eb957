"""A call that is refused changes no file of a log directory, whatever it is refused for."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import LogStorageError
from tests.support.log_files import write_high_watermarks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOW_MS = 1_700_000_000_000
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"


def row(number: int, key: bytes | None = b"k") -> dict[str, Any]:
    return {"key": key, "value": b"v%d" % number, "timestamp": NOW_MS}


@pytest.fixture(params=["clean", "unclean", "locked before"])
def logs(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Return a broker's log directory: a plain topic, a compacted one, one held back."""
    directory = tmp_path / "logs"
    for topic, policy in (("plain", "delete"), ("compacted", "compact")):
        pylog.create_topic(directory, topic, 2, properties={"cleanup.policy": policy})
        pylog.write_topic(directory, topic, [row(number) for number in range(5)])
    pylog.delete_records(directory, {("plain", 0): 1} if has(directory, 0) else {("plain", 1): 1})
    (directory / ".pylog-only-replica").unlink()
    write_high_watermarks(
        directory, {(topic, number): 3 for topic in ("plain", "compacted") for number in (0, 1)}
    )
    if request.param == "unclean":
        (directory / CLEAN_SHUTDOWN).unlink()
    if request.param == "locked before":
        (directory / ".lock").touch()  # as a broker leaves it that was killed
    return directory


def has(directory: Path, partition: int) -> bool:
    return pylog.open_directory(directory)["plain", partition].log_end_offset > 0


def used(directory: Path) -> int:
    """Return the partition that has the records."""
    return 0 if has(directory, 0) else 1


def files(directory: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return inode, time and content of every file, and of every directory."""
    found = {}
    for path in (directory, *directory.rglob("*")):
        status = path.stat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (status.st_ino, status.st_mtime_ns, content)
    return found


REFUSED: dict[str, Callable[[Path], object]] = {
    "truncate inside a batch": lambda d: pylog.truncate_log(d, ("plain", used(d)), 3),
    "truncate below the start": lambda d: pylog.truncate_log(d, ("plain", used(d)), 0),
    "truncate an unknown topic": lambda d: pylog.truncate_log(d, ("plan", 0), 3),
    "truncate an unknown partition": lambda d: pylog.truncate_log(d, ("plain", 9), 3),
    "delete above the high watermark": lambda d: pylog.delete_records(d, {("plain", used(d)): 4}),
    "delete beyond the end": lambda d: pylog.delete_records(d, {("plain", used(d)): 99}),
    "delete of a compacted topic": lambda d: pylog.delete_records(d, {("compacted", 0): 0}),
    "delete, the second is unknown": lambda d: pylog.delete_records(
        d, {("plain", used(d)): 2, ("plan", 0): 1}
    ),
    "compact what is not compacted": lambda d: pylog.compact(d, topics=["plain"]),
    "compact an unknown topic": lambda d: pylog.compact(d, topics=["plan"]),
    "compact with a wrong property": lambda d: pylog.compact(d, config={"segment.bytes": "x"}),
    "retain with a wrong property": lambda d: pylog.apply_retention(d, config={"retention": "1"}),
    "retain an unknown topic": lambda d: pylog.apply_retention(d, topics=["plan"]),
    "create a topic that is there": lambda d: pylog.create_topic(d, "plain", 1),
    "create a topic with a wrong name": lambda d: pylog.create_topic(d, "a/b", 1),
    "create a topic with a wrong property": lambda d: pylog.create_topic(
        d, "new", 1, properties={"segment.bytes": "1"}
    ),
    "create a topic of a similar name": lambda d: pylog.create_topic(d, "a.b", 0),
    "create by a manager that is not open": lambda d: pylog.create_topic(
        pylog.logs.own_log_directory(d), "plain", 1
    ),
    "alter by a manager that is not open": lambda d: pylog.alter_topic(
        pylog.logs.own_log_directory(d), "plain", partitions=1
    ),
    "alter an unknown topic": lambda d: pylog.alter_topic(
        d, "plan", properties={"segment.ms": "1"}
    ),
    "alter with a wrong property": lambda d: pylog.alter_topic(
        d, "plain", properties={"segment.ms": "x"}
    ),
    "write to a number of partitions": lambda d: pylog.write_topic(
        d, "plain", [row(1)], partitions=7
    ),
    "write a table without a value": lambda d: pylog.write_topic(d, "plain", [{"text": b"v"}]),
    "write with an unknown partitioner": lambda d: pylog.write_topic(
        d, "plain", [row(1)], partitioner="none"
    ),
    "write a record that is too large": lambda d: pylog.write_topic(
        d, "plain", [row(1), {"value": bytes(2_000_000)}]
    ),
    "write a record without a key to a compacted topic": lambda d: pylog.write_topic(
        d, "compacted", [row(1), row(2, None)]
    ),
    "write to a partition that is not there": lambda d: pylog.write_topic(
        d, "plain", [{"value": b"v", "partition": 9}], partition="partition"
    ),
    "write keys that are no integers": lambda d: pylog.write_topic(
        d, "plain", [row(1)], partitioner="integer_key"
    ),
    "write rows that come to an end": lambda d: pylog.write_topic(d, "plain", iter([1])),
    "write with another id": lambda d: pylog.write_topic(
        d, "plain", [row(1)], topic_id=uuid.uuid4()
    ),
    "write with another configuration": lambda d: pylog.write_topic(
        d, "plain", [row(1)], config={"retention.ms": "5"}
    ),
    "write to a new topic a record that is too large": lambda d: pylog.write_topic(
        d, "new", [{"value": bytes(2_000_000)}]
    ),
    "write to a new topic of a similar name": lambda d: pylog.write_topic(
        d, "plain.a", [row(1)], config={"segment.bytes": "1"}
    ),
    "delete an unknown topic": lambda d: pylog.delete_topic(d, "plan"),
    "alter to fewer partitions": lambda d: pylog.alter_topic(d, "plain", partitions=1),
    "write to an unknown codec": lambda d: pylog.write_topic(
        d, "plain", [row(1)], compression="rar"
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_call_changes_no_file(logs: Path, name: str) -> None:
    before = files(logs)
    with pytest.raises((LogStorageError, ValueError)) as caught:
        REFUSED[name](logs)
    assert "overlay" not in str(caught.value)
    assert files(logs) == before
