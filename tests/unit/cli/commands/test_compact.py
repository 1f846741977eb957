"""``pylog compact``: what it says, and the statuses that it ends with."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.unit.writing.test_compaction_run import NOW_MS, digests, latest, make_topic, rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    make_topic(tmp_path / "logs", "foo", 200)
    make_topic(tmp_path / "logs", "plain", 20, cleanup_policy="delete")
    return tmp_path / "logs"


def test_it_says_topic_by_topic_what_went(logs: Path, pylog_run: Callable[..., Outcome]) -> None:
    before = digests(logs)
    planned = pylog_run("compact", logs, "--dry-run", "--now", NOW_MS)
    assert digests(logs) == before
    done = pylog_run("compact", logs, "--now", NOW_MS)
    again = pylog_run("compact", logs, "--now", NOW_MS)
    assert [each.status for each in (planned, done, again)] == [0, 0, 0]
    assert [each.error for each in (planned, done, again)] == ["", "", ""]
    heading, row, last = done.lines
    assert heading.split() == ["TOPIC", "PARTITIONS", "RECORDS", "REMOVED", "LEFT"]
    assert row.split()[:2] == ["foo", "1"]
    records = int(row.split()[2])
    assert records == 200 - len(rows(logs))
    assert last.startswith(f"removed {records} records of 1 partition (")
    assert last.endswith(" remain")
    *configs, blank, _, planned_row, planned_last = planned.lines
    assert [line.split() for line in configs[:2]] == [
        ["PROPERTY", "VALUE", "SOURCE", "TOPICS"],
        ["cleanup.policy", "compact", "stored", "topic", "config", "foo"],
    ]
    assert blank == ""
    assert planned_row == row
    assert planned_last.startswith(f"would remove {records} records of 1 partition (")
    assert planned_last.endswith(" would remain")
    assert again.lines == [f"nothing was cleaned; {row.split()[-1]} remain"]


def test_json_has_all_of_it(logs: Path, pylog_run: Callable[..., Outcome]) -> None:
    done = pylog_run("compact", logs, "--dry-run", "--now", NOW_MS, "--json")
    document = json.loads(done.output)
    assert (document["dryRun"], document["now"]) == (True, NOW_MS)
    [partition] = document["partitions"]
    assert (partition["topic"], partition["partition"], partition["rounds"]) == ("foo", 0, 1)
    assert (partition["isComplete"], partition["failure"]) == (True, None)
    active = max(int(path.stem) for path in logs.glob("foo-0/*.log"))
    assert partition["firstDirtyOffset"] == active
    [topic] = document["topics"]
    assert topic.pop("topic") == "foo"
    assert topic.pop("configs")["cleanup.policy"] == {
        "value": "compact",
        "source": "STORED_TOPIC_CONFIG",
    }
    assert topic == document["summary"]
    assert topic["removedRecords"] == partition["removedRecords"] > 100
    size = sum(path.stat().st_size for path in logs.glob("foo-0/*.log"))
    assert topic["sizeInBytes"] + topic["removedBytes"] == size


def test_once_is_for_what_a_broker_would_clean(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    make_topic(tmp_path / "logs", "foo", 200, min_cleanable_dirty_ratio="1.0")
    assert pylog_run("compact", tmp_path / "logs", "--once").lines[0].startswith("nothing was")
    done = pylog_run(
        "compact", tmp_path / "logs", "--once", "--config", "min.cleanable.dirty.ratio=0.1"
    )
    assert done.lines[-1].startswith("removed ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--topic", "plain"], "topic plain is not compacted: its cleanup.policy is delete"),
        (["--topic", "fooo"], "no topic 'fooo' in this log directory; did you mean 'foo'?"),
        (["--config", "cleanup.polic=compact"], "cleanup.polic is not a property of a topic"),
        (["--now", "friday"], "'friday' is not a time"),
    ],
)
def test_what_cannot_be_done_is_refused(
    arguments: list[str], message: str, logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    before = digests(logs)
    done = pylog_run("compact", logs, *arguments)
    assert (done.status, done.output) == (2, b"")
    assert message in done.error
    assert digests(logs) == before


def test_a_copied_directory_is_refused_by_name(
    logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    (logs / "pylog-topic-configs.json").unlink()
    done = pylog_run("compact", logs)
    assert done.status == 2
    assert "the configuration of topics foo, plain is not known" in done.error
    properties = logs.parent / "server.properties"
    properties.write_text(f"log.dirs={logs}\nlog.cleanup.policy=compact\n")
    done = pylog_run("compact", logs, "--server-properties", properties, "--topic", "foo")
    assert (done.status, done.error) == (0, "")


@pytest.mark.parametrize("arguments", [[], ["--dry-run"]])
def test_damage_is_a_finding(
    arguments: list[str], logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    damaged = sorted(logs.glob("foo-0/*.log"))[1]
    data = bytearray(damaged.read_bytes())
    data[70] ^= 1
    damaged.write_bytes(data)
    done = pylog_run("compact", logs, *arguments)
    assert done.status == 1
    verb = "would not be" if arguments else "was not"
    (line,) = (each for each in done.lines if each.startswith("foo-0 "))
    assert line.startswith(f"foo-0 {verb} fully cleaned: {logs}")
    assert str(damaged) in line


@pytest.mark.parametrize("arguments", [[], ["--dry-run"]])
def test_a_record_above_max_decompressed_message_bytes_is_a_finding(
    arguments: list[str], tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    logs = tmp_path / "logs"
    make_topic(logs, "foo", 200, compression_type="lz4")
    options = [*arguments, "--config", "max.decompressed.message.bytes=9"]
    before = {path.name: path.read_bytes() for path in logs.glob("foo-0/*.log")}
    done = pylog_run("compact", logs, *options)
    assert done.status == 1
    (line,) = (each for each in done.lines if each.startswith("foo-0 "))
    assert "max.decompressed.message.bytes is 9; the partition cannot be cleaned" in line
    as_json = pylog_run("compact", logs, *options, "--json")
    assert as_json.status == 1
    [partition] = json.loads(as_json.output)["partitions"]
    assert line.endswith(partition["failure"])
    assert {path.name: path.read_bytes() for path in logs.glob("foo-0/*.log")} == before


def test_a_directory_that_is_open_is_refused(logs: Path, pylog_run: Callable[..., Outcome]) -> None:
    with pylog.logs.own_log_directory(logs):
        assert pylog_run("compact", logs).status == 2
        assert pylog_run("compact", logs, "--dry-run").status == 0


def test_ctrl_c_ends_it_between_two_steps_and_leaves_the_log_as_it_was(
    logs: Path, pylog_run: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = latest(rows(logs))
    files = {path.name for path in logs.glob("foo-0/*.log")}
    original = pylog.logs.UnifiedLog.create_cleaned_segment

    def interrupted(log: pylog.logs.UnifiedLog, base_offset: int) -> object:
        os.kill(os.getpid(), signal.SIGINT)  # in the middle of a step
        return original(log, base_offset)

    monkeypatch.setattr(pylog.logs.UnifiedLog, "create_cleaned_segment", interrupted)
    done = pylog_run("compact", logs)
    assert (done.status, done.output) == (130, b"")
    assert "pylog: stopped: no segment is half replaced and no record is lost" in done.error
    assert {path.name for path in logs.glob("foo-0/*.log")} == files
    assert not list(logs.glob("foo-0/*.cleaned"))
    assert (logs / ".kafka_cleanshutdown").exists()
    assert latest(rows(logs)) == before


def test_help_fits_a_terminal(
    pylog_run: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = pylog_run("compact", "--help")
    assert done.status == 0
    assert max(map(len, done.lines)) <= 80
    for option in ("--dry-run", "--once", "--now", "--json", "--topic", "--server-properties"):
        assert option in done.output.decode()
