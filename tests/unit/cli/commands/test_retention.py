from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import tree, write_high_watermarks, write_partition
from tests.support.terminal import answered

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.batches import Built
    from tests.unit.cli.conftest import Outcome

DAY_MS = 86_400_000
NOW_MS = 1_700_000_000_000
NOW = ("--now", "2023-11-14T22:13:20Z")  # the same instant
KEPT_A_DAY = ("--config", "retention.ms=86400000")


def batch(base_offset: int, days_ago: int) -> Built:
    records = [
        Stored(base_offset + each, NOW_MS - days_ago * DAY_MS, None, b"value") for each in range(10)
    ]
    return batch_v2(records)


SIZE = len(batch(0, 0).data)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Make two partitions as a broker leaves them: nothing says how their topic is configured."""
    directory = tmp_path / "logs"
    write_partition(
        directory, {0: [batch(0, 30)], 10: [batch(10, 3)], 20: [batch(20, 0)]}, name="t-0"
    )
    write_partition(directory, {0: [batch(0, 0)], 10: [batch(10, 0)]}, name="t-1")
    write_high_watermarks(directory, {("t", 0): 30, ("t", 1): 20})
    return directory


def offsets(directory: Path) -> list[int]:
    table = pylog.scan(directory, columns=["partition", "offset"]).to_table()
    return [each["offset"] for each in table.to_pylist() if each["partition"] == 0]


def test_old_segments_are_removed(logs: Path, pylog_run: Callable[..., Outcome]) -> None:
    done = pylog_run("retention", logs, *KEPT_A_DAY, *NOW)
    assert (done.status, done.error) == (0, "")
    assert done.lines == [
        "TOPIC  PARTITIONS  SEGMENTS  REMOVED  LEFT",
        f"t               1         2     {2 * SIZE}B  {3 * SIZE}B",
        f"removed 2 segments of 1 partition ({2 * SIZE}B); {3 * SIZE}B remain",
    ]
    assert offsets(logs) == list(range(20, 30))
    # At once: nothing is left to be removed later.
    assert not [name for name in tree(logs) if name.endswith(".deleted")]
    done = pylog_run("retention", logs, *KEPT_A_DAY, *NOW)
    assert done.lines == [f"nothing was removed; {3 * SIZE}B remain"]


def test_a_dry_run_counts_and_changes_nothing(
    logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    before = tree(logs)
    done = pylog_run("retention", logs, *KEPT_A_DAY, *NOW, "--dry-run")
    assert (done.status, done.error) == (0, "")
    closing = f"(20 records, {2 * SIZE}B); {3 * SIZE}B would remain"
    assert done.lines == [
        "PROPERTY            VALUE  SOURCE               TOPICS",
        "cleanup.policy     delete  Kafka's default      t",
        "retention.ms     86400000  --config             t",
        "retention.bytes        -1  nobody: not limited  t",
        "",
        "TOPIC  PARTITIONS  SEGMENTS  RECORDS  REMOVED  LEFT",
        f"t               1         2       20     {2 * SIZE}B  {3 * SIZE}B",
        f"would remove 2 segments of 1 partition {closing}",
    ]
    assert tree(logs) == before


def test_json_has_every_segment_and_the_reason(
    logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    limits = ("--config", f"retention.bytes={2 * SIZE}", "--topic", "t")
    done = pylog_run("retention", logs, *limits, *NOW, "--dry-run", "--json")
    sums = {
        "partitions": 2,
        "changedPartitions": 1,
        "removedSegments": 1,
        "removedRecords": 10,
        "removedBytes": SIZE,
        "sizeInBytes": 4 * SIZE,
    }
    configs = {
        "cleanup.policy": {"value": "delete", "source": "DEFAULT_CONFIG"},
        "retention.ms": {"value": "-1", "source": "NO_LIMIT"},
        "retention.bytes": {"value": str(2 * SIZE), "source": "GIVEN_FOR_THIS_RUN"},
    }
    removed = {
        "baseOffset": 0,
        "nextOffset": 10,
        "sizeInBytes": SIZE,
        "reason": "retention.bytes",
        "isDatedByFile": False,
    }
    assert json.loads(done.output) == {
        "schemaVersion": 1,
        "dryRun": True,
        "now": NOW_MS,
        "partitions": [
            {
                "topic": "t",
                "partition": 0,
                "logStartOffset": 10,
                "logEndOffset": 30,
                "removedRecords": 10,
                "removedBytes": SIZE,
                "sizeInBytes": 2 * SIZE,
                "removed": [removed],
                "heldBack": None,
                "future": None,
                "failure": None,
            },
            {
                "topic": "t",
                "partition": 1,
                "logStartOffset": 0,
                "logEndOffset": 20,
                "removedRecords": 0,
                "removedBytes": 0,
                "sizeInBytes": 2 * SIZE,
                "removed": [],
                "heldBack": None,
                "future": None,
                "failure": None,
            },
        ],
        "topics": [{"topic": "t", **sums, "configs": configs}],
        "summary": sums,
    }


def test_a_topic_of_which_nothing_is_known_is_not_touched(
    logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    before = tree(logs)
    for extra in ([], ["--dry-run"], ["--topic", "t"]):
        done = pylog_run("retention", logs, *extra)
        assert (done.status, done.output) == (2, b"")
        assert "the configuration of topic t is not known: " in done.error
        assert "Nothing has been changed" in done.error
    assert tree(logs) == before


def test_a_brokers_properties_and_a_topics_own_ones_count(
    logs: Path, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    broker = tmp_path / "server.properties"
    broker.write_text(f"log.retention.hours=168\nlog.dirs={logs}\n")
    known = ("--server-properties", broker)
    done = pylog_run("retention", logs, *known, *NOW, "--dry-run")
    assert done.lines[-1].startswith("would remove 1 segment of 1 partition (10 records")
    # A topic's own properties win over the broker's, and --config over both.
    assert pylog_run("alter-topic", logs, "--topic", "t", "--config", "retention.ms=-1").status == 0
    for place in (known, ()):
        done = pylog_run("retention", logs, *place, *NOW, "--dry-run")
        assert done.lines[-1] == f"nothing would be removed; {5 * SIZE}B would remain"
        assert "retention.ms        -1  stored topic config  t" in done.lines
    done = pylog_run("retention", logs, *known, *KEPT_A_DAY, *NOW, "--dry-run")
    assert done.lines[-1].startswith("would remove 2 segments")


def test_a_dry_run_for_a_later_time_shows_what_goes_then(
    logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    later = ("--now", str(NOW_MS + DAY_MS + 1))
    done = pylog_run("retention", logs, *KEPT_A_DAY, *later, "--once", "--dry-run")
    assert done.lines[-1] == (
        f"would remove 5 segments of 2 partitions (50 records, {5 * SIZE}B); 0B would remain"
    )


def test_a_damaged_partition_is_said_and_the_others_are_done(
    logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("retention", logs, *KEPT_A_DAY, *NOW)  # closed in order, with all indexes
    path = logs / "t-0" / f"{20:020}.log"
    path.write_bytes(b"\0" * 8 + b"\xff" * 4 + path.read_bytes()[12:])
    later = ("--now", str(NOW_MS + 2 * DAY_MS))
    dry = pylog_run("retention", logs, *KEPT_A_DAY, *later, "--dry-run")
    done = pylog_run("retention", logs, *KEPT_A_DAY, *later)
    for each in (dry, done):
        assert each.status == 1
        [line] = [line for line in each.lines if "t-0" in line]
        assert line.startswith("nothing w")
        assert path.name in line
    assert done.lines[-1] == f"removed 2 segments of 1 partition ({2 * SIZE}B); {SIZE}B remain"


# ---- in a terminal


ALL_GO = ("--config", "retention.ms=1", "--now", "2024-01-01T00:00:00Z")
QUESTION = "All records of topic t will be removed ("


def test_a_terminal_is_asked_before_a_topic_loses_all_its_records(logs: Path) -> None:
    before = tree(logs)
    status, output = answered(b"n\n", "retention", logs, *ALL_GO)
    assert (status, QUESTION in output) == (2, True)
    assert "pylog: nothing was changed" in output
    assert tree(logs) == before
    status, output = answered(b"y\n", "retention", logs, *ALL_GO)
    assert (status, QUESTION in output) == (0, True)
    assert offsets(logs) == []


@pytest.mark.parametrize("key", [b"\x03", b"\x04"], ids=["ctrl-c", "ctrl-d"])
def test_a_question_that_is_not_answered_changes_nothing(logs: Path, key: bytes) -> None:
    before = tree(logs)
    status, output = answered(key, "retention", logs, *ALL_GO)
    assert (status, "Traceback" in output) == (130, False)
    assert "pylog: nothing was changed" in output
    assert tree(logs) == before


@pytest.mark.parametrize(
    "arguments",
    [
        (*ALL_GO, "--yes"),
        (*ALL_GO, "--dry-run"),
        (*KEPT_A_DAY, *NOW),  # some stay
        ("--config", "retention.ms=1", "--config", "cleanup.policy=compact", *NOW),  # all stay
    ],
)
def test_nobody_is_asked_where_it_was_answered_or_records_stay(
    arguments: tuple[str, ...], logs: Path
) -> None:
    status, output = answered(b"", "retention", logs, *arguments)
    assert (status, QUESTION in output) == (0, False)


def test_nobody_is_asked_behind_a_pipe(logs: Path, pylog_run: Callable[..., Outcome]) -> None:
    assert (pylog_run("retention", logs, *ALL_GO).status, offsets(logs)) == (0, [])


def test_an_empty_policy_is_shown(logs: Path, pylog_run: Callable[..., Outcome]) -> None:
    done = pylog_run("retention", logs, "--dry-run", "--config", "cleanup.policy=")
    assert done.lines[1].split()[:2] == ["cleanup.policy", "(empty)"]
    as_json = pylog_run("retention", logs, "--dry-run", "--config", "cleanup.policy=", "--json")
    [topic] = json.loads(as_json.output)["topics"]
    assert topic["configs"]["cleanup.policy"]["value"] == ""


def test_a_time_in_the_future_and_one_of_a_file_are_said(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    microseconds = NOW_MS * 1000
    directory = tmp_path / "logs"
    far = batch_v2([Stored(10, microseconds, None, b"far")])
    path = write_partition(
        directory, {0: [batch(0, 30)], 10: [far], 11: [batch(11, 30)]}, name="t-0"
    )
    write_high_watermarks(directory, {("t", 0): 21})
    (directory / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":-1}')
    (path / "00000000000000000010.timeindex").write_bytes(
        microseconds.to_bytes(8, "big") + bytes(4)
    )
    os.utime(path / "00000000000000000000.log", (1_000_000_000, 1_000_000_000))
    (path / "00000000000000000000.timeindex").write_bytes(b"")
    done = pylog_run("retention", directory, *NOW, *KEPT_A_DAY, "--dry-run")
    assert done.status == 0
    assert done.lines[-3:] == [
        (
            "t-0: 1 segment from offset 0 on has no timestamp in the time index: the date of the "
            ".log file is taken for the age, as a broker does"
        ),
        (
            "t-0: segment 10 has a timestamp in the future (+55840-11-08T22:13:20.000Z, probably "
            "microseconds), and keeps 2 segments, until it is older than retention.ms"
        ),
        (
            f"would remove 1 segment of 1 partition (10 records, {SIZE}B); "
            f"{len(far.data) + SIZE}B would remain"
        ),
    ]
    done = pylog_run("retention", directory, *NOW, *KEPT_A_DAY, "--dry-run", "--json")
    [partition] = json.loads(done.output)["partitions"]
    assert partition["future"] == {
        "baseOffset": 10,
        "largestTimestamp": microseconds,
        "keptSegments": 2,
    }
    assert [each["isDatedByFile"] for each in partition["removed"]] == [True]
