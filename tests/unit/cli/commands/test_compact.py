"""``pylog compact``: what it says, and the statuses that it ends with."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import (
    Stored,
    batch_v2,
    message,
    message_bytes,
    plain_records,
    wrapper_of,
)
from tests.support.codecs import compress
from tests.support.damage import flip
from tests.support.log_files import write_high_watermarks, write_partition
from tests.unit.writing.test_compaction import NOW_MS, digests, latest, make_topic, rows

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
    assert again.lines[-1] == f"nothing was cleaned; {row.split()[-1]} remain"


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
    first, second = pylog_run("compact", tmp_path / "logs", "--once").lines
    assert first.startswith("foo-0: its dirty ratio is not above min.cleanable.dirty.ratio")
    assert second.startswith("nothing was cleaned")
    done = pylog_run(
        "compact", tmp_path / "logs", "--once", "--config", "min.cleanable.dirty.ratio=0.1"
    )
    assert done.lines[-1].startswith("removed ")


def test_a_topic_that_is_not_compacted_is_refused(
    logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    before = digests(logs)
    done = pylog_run("compact", logs, "--topic", "plain")
    assert (done.status, done.output) == (2, b"")
    assert "topic plain is not compacted: its cleanup.policy is delete" in done.error
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
    flip(damaged, 70)
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


# ---- why nothing was cleaned


def without_cleaning(
    pylog_run: Callable[..., Outcome], logs: Path, *arguments: object
) -> tuple[list[str], str | None]:
    """Return what is said where nothing is cleaned, the same by a dry run, and JSON's word."""
    planned = pylog_run("compact", logs, "--dry-run", "--now", NOW_MS, *arguments)
    as_json = pylog_run("compact", logs, "--dry-run", "--now", NOW_MS, "--json", *arguments)
    done = pylog_run("compact", logs, "--now", NOW_MS, *arguments)
    assert [each.status for each in (planned, as_json, done)] == [0, 0, 0]
    assert done.lines[-1].startswith("nothing was cleaned; ")
    assert planned.lines[-len(done.lines) : -1] == done.lines[:-1]
    words = {each["notCleaned"] for each in json.loads(as_json.output)["partitions"]}
    return done.lines[:-1], next(iter(words), None)


def test_the_active_segment_is_named_and_cleaned_once_it_is_rolled(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    make_topic(tmp_path, "foo", 100, segment_bytes="1000000")
    lines, word = without_cleaning(pylog_run, tmp_path)
    [line] = lines
    assert line.startswith("foo-0: all that is dirty is in the active segment, which is never")
    assert line.endswith("; --roll begins a new one first")
    assert word == "active_segment"
    before = digests(tmp_path)
    planned = pylog_run("compact", tmp_path, "--roll", "--dry-run", "--now", NOW_MS)
    assert digests(tmp_path) == before
    done = pylog_run("compact", tmp_path, "--roll", "--now", NOW_MS)
    assert planned.lines[-2:] == [
        done.lines[-2],
        done.lines[-1].replace("removed", "would remove").replace("remain", "would remain"),
    ]
    assert len(latest(rows(tmp_path))) == len(rows(tmp_path)) == 7
    lines, word = without_cleaning(pylog_run, tmp_path, "--roll")
    assert lines == ["foo-0: clean already: nothing was written since it was cleaned"]
    assert word == "clean"


def test_a_log_without_records_is_named(tmp_path: Path, pylog_run: Callable[..., Outcome]) -> None:
    pylog.create_topic(tmp_path, "foo", 5, properties={"cleanup.policy": "compact"})
    lines, word = without_cleaning(pylog_run, tmp_path)
    assert lines == ["foo-0, foo-1, foo-2 and 2 more: no records"]
    assert word == "empty"


def test_what_is_too_young_is_named(tmp_path: Path, pylog_run: Callable[..., Outcome]) -> None:
    make_topic(tmp_path, "foo", 200, min_compaction_lag_ms="60000")
    lines, word = without_cleaning(pylog_run, tmp_path)
    assert lines == ["foo-0: all that is dirty is younger than min.compaction.lag.ms"]
    assert word == "min_compaction_lag"


def test_what_may_not_be_replicated_is_named(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 5))]}, name="foo-0")
    write_high_watermarks(tmp_path, {("foo", 0): 0})
    compacted = ("--config", "cleanup.policy=compact")
    lines, word = without_cleaning(pylog_run, tmp_path, *compacted)
    assert lines == [
        (
            "foo-0: all that is dirty may not be replicated: it is above the high watermark "
            "(--high-watermark)"
        )
    ]
    assert word == "high_watermark"


def test_an_open_transaction_is_named(tmp_path: Path, pylog_run: Callable[..., Outcome]) -> None:
    opened = batch_v2(
        plain_records(0, 5),
        producer_id=1,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    write_partition(tmp_path, {0: [opened], 5: [batch_v2(plain_records(5, 5))]}, name="foo-0")
    write_high_watermarks(tmp_path, {("foo", 0): 10})
    lines, word = without_cleaning(pylog_run, tmp_path, "--config", "cleanup.policy=compact")
    assert lines == [
        "foo-0: all that is dirty follows the start of an open transaction: see pylog transactions"
    ]
    assert word == "open_transaction"


def test_topics_that_are_not_compacted_are_named_an_empty_policy_too(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    for topic, policy in (("a", "delete"), ("b", ""), ("c", "delete")):
        pylog.create_topic(tmp_path, topic, 1, properties={"cleanup.policy": policy})
    lines, word = without_cleaning(pylog_run, tmp_path)
    assert lines == [
        "a, c: not compacted: cleanup.policy is delete",
        "b: not compacted: cleanup.policy is (empty)",
    ]
    assert word is None


# ---- what an operator would not understand


def test_what_becomes_larger_is_said_to_grow(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    # 26 bytes beside key and value in v0, 61 and 7 in v2.
    write_partition(
        tmp_path,
        {
            0: [message(Stored(0, -1, b"a", b"1"), magic=0)],
            1: [message(Stored(1, -1, b"b", b"2"), magic=0)],
        },
        name="foo-0",
    )
    write_high_watermarks(tmp_path, {("foo", 0): 2})
    compacted = ("--config", "cleanup.policy=compact", "--now", NOW_MS)
    planned = pylog_run("compact", tmp_path, "--dry-run", *compacted)
    as_json = pylog_run("compact", tmp_path, "--dry-run", "--json", *compacted)
    done = pylog_run("compact", tmp_path, *compacted)
    assert done.lines[1].split() == ["foo", "1", "0", "grew", "42B", "98B"]
    assert done.lines[2] == "removed 0 records of 1 partition (grew 42B); 98B remain"
    assert planned.lines[-1] == "would remove 0 records of 1 partition (grew 42B); 98B would remain"
    assert json.loads(as_json.output)["summary"]["removedBytes"] == -42


def test_a_dry_run_of_several_rounds_never_says_at_least_nothing(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    make_topic(tmp_path / "logs", "foo", 2_000, keys=2_000)
    file = tmp_path / "server.properties"
    file.write_text(
        f"log.dirs={tmp_path}/logs\nlog.cleaner.dedupe.buffer.size=1048600\n"
        "log.cleaner.io.buffer.load.factor=0.01\n"
    )
    arguments = ("compact", tmp_path / "logs", "--server-properties", file, "--now", NOW_MS)
    planned = pylog_run(*arguments, "--dry-run")
    assert planned.status == 0
    assert planned.lines[-1].startswith(
        "would remove nothing of 1 partition in the first of several rounds; "
    )


@pytest.mark.parametrize("size", [1, 18, 5_000])
def test_zeros_at_the_end_of_a_segment_name_the_way_out(
    size: int, logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    segment = min(logs.glob("foo-0/*.log"))
    with segment.open("ab") as file:
        file.write(bytes(size))
    done = pylog_run("compact", logs)
    assert done.status == 1
    assert done.lines[0].endswith(
        f"cannot clean: zeros where {size} bytes are left of the segment's "
        f"{segment.stat().st_size}; save what is intact with pylog doctor --repair-to"
    )
    repaired = logs.parent / "repaired"
    pylog_run("doctor", logs, "--repair-to", repaired)
    assert pylog_run("compact", repaired).status == 0


def test_a_wrong_checksum_that_a_cleaning_makes_right_is_a_finding(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    damaged = message_bytes(0, b"a", b"1", magic=1, timestamp=NOW_MS, crc=5)
    entry = wrapper_of(compress("gzip", damaged), offset=0, magic=1, codec="gzip")
    built = replace(message(Stored(0, NOW_MS, b"a", b"1"), magic=1), data=entry)
    write_partition(tmp_path, {0: [built], 1: [batch_v2(plain_records(1, 1))]}, name="foo-0")
    write_high_watermarks(tmp_path, {("foo", 0): 2})
    compacted = ("--config", "cleanup.policy=compact", "--now", NOW_MS)
    assert pylog_run("doctor", tmp_path).status == 1
    planned = pylog_run("compact", tmp_path, "--dry-run", *compacted)
    as_json = pylog_run("compact", tmp_path, "--dry-run", "--json", *compacted)
    done = pylog_run("compact", tmp_path, *compacted)
    assert [each.status for each in (planned, as_json, done)] == [1, 1, 1]
    (line,) = (each for each in done.lines if each.startswith("foo-0: "))
    path = tmp_path / "foo-0" / "00000000000000000000.log"
    assert line.startswith(
        "foo-0: 1 record with a wrong checksum got a right one, as from a broker's cleaner, the "
        f"first one at offset 0, {path} at byte 0: message CRC stored 0x00000005, computed "
    )
    assert line.replace(" got ", " would get ") in planned.lines
    [partition] = json.loads(as_json.output)["partitions"]
    assert partition["damagedRecords"] == 1
    assert partition["damage"] in line
    assert pylog_run("compact", tmp_path, *compacted).status == 0


def test_records_without_a_key_are_counted_apart(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    pylog.create_topic(tmp_path, "users", 1)
    keys = [None, b"a", b"", None, b"a", None]  # an empty key is one
    rows = [{"key": key, "value": b"v", "timestamp": NOW_MS} for key in keys]
    pylog.write_topic(tmp_path, "users", rows)
    switched = ("--topic", "users", "--config", "cleanup.policy=compact", "--roll")
    planned = pylog_run("compact", tmp_path, "--dry-run", *switched, "--json")
    topic, total = (json.loads(planned.output)[name] for name in ("topics", "summary"))
    assert (total["removedRecords"], total["invalidRecords"]) == (4, 3)
    assert topic[0]["invalidRecords"] == 3
    planned = pylog_run("compact", tmp_path, "--dry-run", *switched)
    rest = "no key: no later record replaces them, and a compacted topic keeps none"
    assert f"users: 3 of these 4 records have {rest}" in planned.lines
    done = pylog_run("compact", tmp_path, *switched)
    assert f"users: 3 of these 4 records had {rest}" in done.lines
    again = pylog_run("compact", tmp_path, *switched)
    assert "no key" not in again.output.decode()
