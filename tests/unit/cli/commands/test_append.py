from __future__ import annotations

import errno
import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.cli.commands import append as line_source
from pylog.cli.commands.append import STANDARD_INPUT, LineSource
from pylog.cli.progress import Interruption
from pylog.config import LogConfig
from pylog.log.log_context import LogContext
from pylog.model import TopicPartition
from pylog.writing import owned_directory
from pylog.writing.partitioner import murmur2
from tests.support.golden import Holds, golden_partitions
from tests.support.recording_io import Fault, FaultyIO, Kind

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.golden import GoldenRoot
    from tests.unit.cli.conftest import Outcome

SECONDS = 120
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PROGRAM = [sys.executable, "-c", "from pylog.cli.main import main; main()"]


@pytest.fixture
def lines(tmp_path: Path) -> Callable[..., Path]:
    """Write a file of lines: text as it is, mappings as JSON."""

    def write(*given: str | dict[str, Any]) -> Path:
        path = tmp_path / "lines"
        texts = [each if isinstance(each, str) else json.dumps(each) for each in given]
        path.write_text("".join(f"{text}\n" for text in texts))
        return path

    return write


def records_of(directory: Path) -> list[tuple[str, int, int, bytes | None, bytes | None]]:
    columns = ["topic", "partition", "offset", "key", "value"]
    return [
        tuple(row.values()) for row in pylog.scan(directory, columns=columns).to_table().to_pylist()
    ]


def without_place(output: bytes) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in output.splitlines()]
    for record in found:
        del record["offset"], record["leaderEpoch"]
        # The copy's topic is one of CreateTime, whatever the original was.
        record["timestampType"] = 0
    return found


@pytest.mark.parametrize(
    ("number", "partition_id"), list(enumerate(golden_partitions(Holds.EXACTLY)))
)
@pytest.mark.thorough(one_in=5)
def test_a_topic_is_copied_by_cat_and_append(
    number: int,
    partition_id: str,
    golden_root: GoldenRoot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pylog_run: Callable[..., Outcome],
) -> None:
    original = golden_root.partition(partition_id)
    values = pylog.jobs.VALUE_FORMATS[number % 2]
    arguments = (original.directory, "--isolation", "read_committed", "--values", values)
    printed = pylog_run("cat", *arguments).output
    (tmp_path / "lines").write_bytes(printed)
    copy = tmp_path / "copy"
    if original.topic == "extremes":  # has timestamps of the far future
        config = "message.timestamp.after.max.ms=9223372036854775807"
        pylog_run("create-topic", copy, "--topic", "extremes", "--config", config)
    with (tmp_path / "lines").open() as standard_input:
        monkeypatch.setattr(sys, "stdin", standard_input)
        codec = CODECS[number % len(CODECS)]
        done = pylog_run("append", copy, "--compression", codec, "--json")
    assert done.status == 0, done.error
    expected = without_place(printed)
    assert json.loads(done.output)["records"] == len(expected)
    if expected:
        again = pylog_run("cat", copy, "--topic", original.topic, "--values", values)
        assert without_place(again.output) == expected


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_what_lands_on_the_disk(
    codec: str, tmp_path: Path, lines: Callable[..., Path], pylog_run: Callable[..., Outcome]
) -> None:
    path = lines(*({"value": "YWFhYWFhYWFhYWFhYWFhYQ=="} for _ in range(50)))
    assert pylog_run("append", tmp_path, path, "--topic", "t", "--compression", codec).status == 0
    found = pylog.read_table(tmp_path, "batches").to_pylist()
    assert {row["codec"] for row in found} == {codec}
    assert sum(row["records"] for row in found) == 50


def test_the_summary_counts_records_and_names_end_offsets(
    tmp_path: Path, lines: Callable[..., Path], pylog_run: Callable[..., Outcome]
) -> None:
    path = lines({"value": "a"}, "", {"value": "b", "partition": 1}, {"value": None})
    pylog_run("create-topic", tmp_path / "logs", "--topic", "t", "--partitions", "2")
    arguments = ("append", tmp_path / "logs", path, "--topic", "t", "--partition", "0")
    done = pylog_run(*arguments)
    assert done.status == 0
    # Two batches of 61 bytes; a record is of 7 bytes and its value's.
    assert done.lines == ["appended 3 records (145B in batches) to 2 partitions of topic t"]
    assert json.loads(pylog_run(*arguments, "--json").output) == {
        "schemaVersion": 1,
        "lines": 4,
        "records": 3,
        "sizeInBytes": 145,
        "partitions": [
            {"topic": "t", "partition": 0, "records": 2, "sizeInBytes": 76, "logEndOffset": 4},
            {"topic": "t", "partition": 1, "records": 1, "sizeInBytes": 69, "logEndOffset": 2},
        ],
        "createdTopics": [],
        "isInterrupted": False,
    }


def test_the_summary_is_one_line(
    tmp_path: Path, lines: Callable[..., Path], pylog_run: Callable[..., Outcome]
) -> None:
    assert pylog_run("append", tmp_path / "logs", lines("")).lines == ["appended 0 records"]
    one = {"value": None, "topic": "a"}  # a batch of 61 bytes and a record of 7
    first = "appended 1 record (68B in batches) to a-0, which ends at offset 1 (exclusive)"
    assert pylog_run("append", tmp_path / "logs", lines(one)).lines == [
        f"created topic a with 1 partition, {first}"
    ]
    two = "appended 2 records (136B in batches) to 2 partitions of 2 topics"
    assert pylog_run("append", tmp_path / "logs", lines(one, one | {"topic": "b"})).lines == [
        f"created topic b with 1 partition, {two}"
    ]
    new = [one | {"topic": "c"}, one | {"topic": "d", "partition": 3}]
    assert pylog_run("append", tmp_path / "logs", lines(*new)).lines == [
        f"created 2 topics with 2 partitions, {two}"
    ]


def test_created_topics_are_in_the_document(
    tmp_path: Path, lines: Callable[..., Path], pylog_run: Callable[..., Outcome]
) -> None:
    path = lines({"value": None, "partition": 3}, {"value": None, "partition": 1})
    done = pylog_run("append", tmp_path / "logs", path, "--topic", "t", "--json")
    assert json.loads(done.output)["createdTopics"] == [{"topic": "t", "partitions": [1, 3]}]


def test_a_topic_that_looks_like_a_typing_error_is_not_created_unless_asked_for(
    tmp_path: Path, lines: Callable[..., Path], pylog_run: Callable[..., Outcome]
) -> None:
    logs = tmp_path / "logs"
    pylog_run("create-topic", logs, "--topic", "orders")
    arguments = ("append", logs, lines({"value": None}), "--topic", "ordes")
    done = pylog_run(*arguments)
    assert (done.status, done.output) == (2, b"")
    assert done.error == (
        "pylog: error: no topic 'ordes' in this log directory; did you mean 'orders'? --create "
        "makes a new topic\n"
    )
    assert not (logs / "ordes-0").exists()
    done = pylog_run(*arguments, "--create")
    assert done.status == 0
    assert done.lines[0].startswith("created topic ordes with 1 partition, appended 1 record (")
    assert pylog_run(*arguments).status == 0  # it exists now
    assert pylog_run("append", logs, lines({"value": None}), "--topic", "clicks").status == 0


def test_similar_topics_that_lines_name_are_copied(
    tmp_path: Path, lines: Callable[..., Path], pylog_run: Callable[..., Outcome]
) -> None:
    path = lines(*({"value": None, "topic": f"orders-{name}"} for name in ("eu", "us", "uk")))
    assert pylog_run("append", tmp_path / "logs", path).status == 0
    assert {topic for topic, *_ in records_of(tmp_path / "logs")} == {
        "orders-eu",
        "orders-uk",
        "orders-us",
    }


def test_values_that_are_text_are_read_where_that_is_said(
    tmp_path: Path, lines: Callable[..., Path], pylog_run: Callable[..., Outcome]
) -> None:
    path = lines({"key": "k1", "value": "test"}, {"values": "base64", "value": "YQ=="})
    arguments = ("append", tmp_path / "logs", path, "--topic", "t")
    assert pylog_run(*arguments).status == 0
    assert [row[3:] for row in records_of(tmp_path / "logs")] == [(b"k1", b"test"), (None, b"a")]
    done = pylog_run(*arguments, "--values", "base64")
    assert done.status == 2
    assert "line 1: key is not base64: " in done.error
    assert '; if it is text, write "values": "text" in the line, or leave' in done.error
    done = pylog_run(*arguments, "--values", "text", "--format", "text")
    assert (done.status, done.output) == (2, b"")
    assert "--values is for --format jsonl" in done.error


def test_text_values_that_cat_prints_are_read_back(
    tmp_path: Path, lines: Callable[..., Path], pylog_run: Callable[..., Outcome]
) -> None:
    records = [
        {"key": "YWJjZA==", "value": "ZMOkXHUyMDJlIgo=", "headers": [["h", "/w=="], ["ü", None]]},
        {"key": None, "value": "", "timestamp": 7},
        {"key": "", "value": None},
        {"key": "gIE=", "value": "4oCu"},
    ]
    arguments = ("--topic", "t", "--format", "jsonl", "--values", "base64")
    assert pylog_run("append", tmp_path / "a", lines(*records), *arguments).status == 0
    printed = pylog_run("cat", tmp_path / "a").output
    (tmp_path / "printed").write_bytes(printed)
    assert pylog_run("append", tmp_path / "b", tmp_path / "printed").status == 0
    assert pylog_run("cat", tmp_path / "b").output == pylog_run("cat", tmp_path / "a").output


def test_without_a_partition_the_key_decides(
    tmp_path: Path, lines: Callable[..., Path], pylog_run: Callable[..., Outcome]
) -> None:
    path = lines(*(f"key-{number}\tv" for number in range(40)))
    pylog_run("create-topic", tmp_path / "logs", "--topic", "t", "--partitions", "4")
    done = pylog_run("append", tmp_path / "logs", path, "--topic", "t", "--format", "text")
    assert done.status == 0, done.error
    found = records_of(tmp_path / "logs")
    assert len(found) == 40
    for _, partition, _, key, _ in found:
        assert key is not None
        assert partition == (murmur2(key) & 0x7FFFFFFF) % 4
    assert len({partition for _, partition, _, _, _ in found}) > 1


def test_text_that_cat_prints_is_read_back(
    tmp_path: Path, lines: Callable[..., Path], pylog_run: Callable[..., Outcome]
) -> None:
    text = ["a\t1\\n2", "\\N\t", "\t\\N", "b\\\\\tä\\x80\\u2028"]
    arguments = ("--topic", "t", "--format", "text")
    assert pylog_run("append", tmp_path / "logs", lines(*text), *arguments).status == 0
    assert pylog_run("cat", tmp_path / "logs", "--format", "text").lines == text


def test_a_topic_that_was_there_gets_no_new_partition_from_a_line(
    tmp_path: Path, lines: Callable[..., Path], pylog_run: Callable[..., Outcome]
) -> None:
    pylog_run("create-topic", tmp_path / "logs", "--topic", "t", "--partitions", "2")
    path = lines({"value": None}, {"value": None, "partition": 2})
    done = pylog_run("append", tmp_path / "logs", path, "--topic", "t")
    assert done.status == 2
    assert done.error == (
        f"pylog: error: {path}, line 2: topic 't' has no partition 2 here; found 0, 1; "
        "all lines before it have been appended (1 record)\n"
    )
    done = pylog_run("append", tmp_path / "logs", path, "--topic", "t", "--partition", "7")
    assert (done.status, done.error) == (
        2,
        "pylog: error: topic 't' has no partition 7 here; found 0, 1\n",
    )


def test_a_new_topic_gets_the_partitions_that_lines_name_under_one_id(
    tmp_path: Path, lines: Callable[..., Path], pylog_run: Callable[..., Outcome]
) -> None:
    path = lines({"value": None, "partition": 3}, {"value": None, "partition": 1})
    assert pylog_run("append", tmp_path / "logs", path, "--topic", "t").status == 0
    ids = {(tmp_path / "logs" / name / "partition.metadata").read_text() for name in ("t-1", "t-3")}
    assert len(ids) == 1
    assert not (tmp_path / "logs" / "t-0").exists()
    # A key cannot be placed among two partitions of who knows how many.
    done = pylog_run("append", tmp_path / "logs", lines({"value": None}), "--topic", "t")
    assert done.status == 2
    assert "partitions 1, 3 of topic 't' are here, not all from 0 on" in done.error


def test_a_new_topic_has_the_partitions_of_server_properties_if_no_line_names_one(
    tmp_path: Path, lines: Callable[..., Path], pylog_run: Callable[..., Outcome]
) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\n")
    path = lines(*({"key": key, "value": None} for key in "abc"))
    arguments = ("--topic", "t", "--server-properties", file)
    done = pylog_run("append", tmp_path / "logs", path, *arguments)
    assert (done.status, done.error) == (0, "")
    assert sorted(each.name for each in (tmp_path / "logs").glob("t-*")) == ["t-0", "t-1", "t-2"]
    # Where Kafka's partitioner puts a, b and c among three.
    table = pylog.scan(tmp_path / "logs", columns=["partition", "key"]).to_table()
    assert sorted(zip(table["key"].to_pylist(), table["partition"].to_pylist(), strict=True)) == [
        (b"a", 1),
        (b"b", 2),
        (b"c", 1),
    ]
    named = lines({"value": None, "partition": 1})
    done = pylog_run("append", tmp_path / "logs", named, "--topic", "u", "--create", *arguments[2:])
    assert [each.name for each in (tmp_path / "logs").glob("u-*")] == ["u-1"]


@pytest.mark.parametrize("before", [0, 1, 5])
def test_a_malformed_line_is_named_and_the_lines_before_it_are_appended(
    before: int, tmp_path: Path, lines: Callable[..., Path], pylog_run: Callable[..., Outcome]
) -> None:
    sound = [{"value": "a"}] * before
    path = lines(*sound, '{"value"', {"value": "b"})
    done = pylog_run("append", tmp_path / "logs", path, "--topic", "t")
    fates = {
        0: "nothing was appended",
        1: "all lines before it have been appended (1 record)",
        5: "all lines before it have been appended (5 records)",
    }
    assert done.status == 2
    assert done.error == (
        f"pylog: error: {path}, line {before + 1}: not JSON: Expecting ':' delimiter at column 9; "
        f"{fates[before]}\n"
    )
    assert f"appended {before} record" in done.lines[0]
    if before:
        assert [value for *_, value in records_of(tmp_path / "logs")] == [b"a"] * before
        assert (tmp_path / "logs" / ".kafka_cleanshutdown").exists()


def test_a_line_without_topic_needs_one(
    tmp_path: Path, lines: Callable[..., Path], pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("append", tmp_path / "logs", lines({"value": None}))
    assert done.status == 2
    assert "line 1: it names no topic, and --topic is not given; nothing was appended" in done.error
    done = pylog_run("append", tmp_path / "logs", lines("a\tb"), "--format", "text")
    assert (done.status, done.output) == (2, b"")
    assert "--format text needs --topic" in done.error


def test_a_refused_record_is_reported_with_its_lines(
    tmp_path: Path, lines: Callable[..., Path], pylog_run: Callable[..., Outcome]
) -> None:
    config = ("--config", "cleanup.policy=compact")
    pylog_run("create-topic", tmp_path / "logs", "--topic", "t", *config)
    done = pylog_run("append", tmp_path / "logs", lines({"value": None}), "--topic", "t")
    assert done.status == 2
    assert "record 0: a record of a compacted topic needs a key" in done.error
    assert done.error.endswith("lines; 0 records had been appended before\n")
    assert done.error.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["--topic", "a/b"],
        ["--topic", ""],
        ["--topic", "t", "--compression", "gzip", "--level", "99"],
    ],
)
def test_a_wrong_option_is_not_the_fault_of_a_line(
    arguments: list[str],
    tmp_path: Path,
    lines: Callable[..., Path],
    pylog_run: Callable[..., Outcome],
) -> None:
    for given in ([{"value": None}], []):
        done = pylog_run("append", tmp_path / "logs", lines(*given), *arguments)
        assert (done.status, done.output) == (2, b"")
        assert "line" not in done.error


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ('{"value"', ["--partition", "0"]),
        ({"value": None}, ["--compression", "zstd", "--level", "99"]),
        ({"value": None}, ["--compression", "brotli"]),
        ({"value": None, "partition": 2**31}, ["--partition", "1"]),
        ({"value": None}, ["--partition", str(2**31)]),
        ({"value": None, "timestamp": 2**63}, ["--partition", "0"]),
        ("", ["--partition", "0"]),
    ],
)
def test_what_fails_before_a_record_is_appended_leaves_no_new_topic(
    line: object,
    arguments: list[str],
    tmp_path: Path,
    lines: Callable[..., Path],
    pylog_run: Callable[..., Outcome],
) -> None:
    logs = tmp_path / "logs"
    config = ("--config", "compression.type=gzip")
    pylog_run("create-topic", logs, "--topic", "other", *config)
    configs = (logs / "pylog-topic-configs.json").read_bytes()
    done = pylog_run("append", logs, lines(line), "--topic", "t", *arguments)
    assert (done.status == 0) == (line == "")
    assert [path.name for path in logs.iterdir() if path.is_dir()] == ["other-0"]
    assert (logs / "pylog-topic-configs.json").read_bytes() == configs


@pytest.mark.parametrize(
    "refused",
    [
        ['{"value"'],
        [{"value": None}],  # a record of a compacted topic needs a key
        [{"key": "aw==", "value": None, "partition": 9}],
        [{"key": "aw==", "value": "a" * 2_000_000}],
    ],
)
@pytest.mark.parametrize("names_topic", [True, False])
def test_what_refuses_the_first_line_changes_no_file(
    refused: list[object],
    tmp_path: Path,
    lines: Callable[..., Path],
    pylog_run: Callable[..., Outcome],
    *,
    names_topic: bool,
) -> None:
    logs = tmp_path / "logs"
    pylog_run("create-topic", logs, "--topic", "t", "--config", "cleanup.policy=compact")
    found = {each: each.stat().st_mtime_ns for each in (logs, *logs.rglob("*"))}
    topic = ("--topic", "t") if names_topic else ()
    if not names_topic:
        refused = [each | {"topic": "t"} if isinstance(each, dict) else each for each in refused]
    done = pylog_run("append", logs, lines(*refused), *topic)
    assert done.status in (1, 2)
    assert done.output == b"appended 0 records\n"
    assert "overlay" not in done.error
    assert {each: each.stat().st_mtime_ns for each in (logs, *logs.rglob("*"))} == found


def test_a_missing_file_is_reported(tmp_path: Path, pylog_run: Callable[..., Outcome]) -> None:
    done = pylog_run("append", tmp_path / "logs", tmp_path / "none", "--topic", "t")
    assert done.status == 2
    assert done.error == f"pylog: error: {tmp_path / 'none'}: No such file or directory\n"
    assert not (tmp_path / "logs").exists()


def test_a_full_disk_is_one_clear_line(
    tmp_path: Path,
    lines: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    pylog_run: Callable[..., Outcome],
) -> None:
    kinds = frozenset({Kind.WRITE})
    fault = Fault(kinds=kinds, path_end=".log", at=3, forever=True, error_number=errno.ENOSPC)
    on_a_small_disk = partial(LogContext, io=FaultyIO(fault))
    monkeypatch.setattr(owned_directory, "LogContext", on_a_small_disk)
    # So large that each is written with a write of its own.
    path = lines(*({"value": "YWFh" * 100_000} for _ in range(8)))
    size = ("--batch-size", "4000")
    done = pylog_run("append", tmp_path / "logs", path, "--topic", "t", *size)
    assert done.status == 2
    assert done.error.count("\n") == 1
    log = tmp_path / "logs" / "t-0" / "00000000000000000000.log"
    assert done.error.startswith(f"pylog: error: {log} at byte ")
    assert ": I/O error, cannot write" in done.error
    assert "No space left on device" in done.error
    assert str(log) in done.error
    assert "2 records had been appended before" in done.error
    assert done.lines[-1].startswith("created topic t with 1 partition, appended 2 records (")
    assert done.lines[-1].endswith(" to t-0, which ends at offset 2 (exclusive)")
    assert not (tmp_path / "logs" / ".kafka_cleanshutdown").exists()
    # Its next owner finds what had been appended.
    monkeypatch.undo()
    assert pylog_run("append", tmp_path / "logs", path, "--topic", "t", *size).status == 0
    assert len(records_of(tmp_path / "logs")) == 10


def test_an_appended_topic_keeps_its_own_configuration(
    tmp_path: Path, lines: Callable[..., Path], pylog_run: Callable[..., Outcome]
) -> None:
    config = ("--config", "segment.bytes=1000", "--config", "compression.type=lz4")
    pylog_run("create-topic", tmp_path / "logs", "--topic", "t", *config)
    path = lines(*({"value": "aaa" * 100} for _ in range(10)))
    done = pylog_run("append", tmp_path / "logs", path, "--topic", "t", "--batch-size", "700")
    assert done.status == 0, done.error
    batches = pylog.read_table(tmp_path / "logs", "batches").to_pylist()
    assert {row["codec"] for row in batches} == {"lz4"}
    with pylog.logs.LogManager([tmp_path / "logs"]) as manager:
        config_of_t = manager.get_log(TopicPartition("t", 0)).config
    assert config_of_t == LogConfig(segment_bytes=1000, compression_type="lz4")


def test_segments_of_the_topics_size_are_rolled(
    tmp_path: Path, lines: Callable[..., Path], pylog_run: Callable[..., Outcome]
) -> None:
    config = ("--config", "segment.bytes=1000")
    pylog_run("create-topic", tmp_path / "logs", "--topic", "t", *config)
    path = lines(*({"value": "aaa" * 100} for _ in range(10)))
    # A batch larger than a segment would be refused: the topic bounds the size.
    assert pylog_run("append", tmp_path / "logs", path, "--topic", "t").status == 0
    logs = sorted((tmp_path / "logs" / "t-0").glob("*.log"))
    # Three records of 300 bytes each, and the last one.
    assert [int(log.stem) for log in logs] == [0, 3, 6, 9]
    assert all(log.stat().st_size <= 1000 for log in logs)


@pytest.mark.parametrize(
    "arguments",
    [
        ("create-topic", "--topic", "u"),
        ("append", "--topic", "t", os.devnull),
        ("truncate", "--topic", "t", "--partition", "0", "--offset", "0"),
        ("delete-records", "--topic", "t", "--partition", "0", "--all"),
    ],
)
def test_a_locked_directory_is_refused_with_the_process_that_holds_it(
    arguments: tuple[str, ...], tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    pylog_run("create-topic", tmp_path, "--topic", "t")
    before = sorted(path.name for path in tmp_path.iterdir())
    holder = (
        "import fcntl, sys; file = open(sys.argv[1], 'w'); fcntl.lockf(file, fcntl.LOCK_EX); "
        "print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(tmp_path / ".lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        done = pylog_run(arguments[0], tmp_path, *arguments[1:])
        process.communicate()
    assert (done.status, done.output) == (2, b"")
    who = f"process {process.pid}" if hasattr(fcntl, "F_GETLK") and sys.platform == "linux" else ""
    lock = tmp_path / ".lock"
    assert done.error.startswith(f"pylog: error: {lock}: log directory is locked by {who}")
    assert done.error.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*before, ".lock"])


@pytest.mark.parametrize("more", [("--json",), ()])
def test_ctrl_c_keeps_what_was_appended_and_closes_in_order(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    logs = tmp_path / "logs"
    with subprocess.Popen(
        [*PROGRAM, "append", str(logs), "--topic", "t", "--format", "text", *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - deaf in the background else
    ) as running:
        assert running.stdin is not None
        running.stdin.write(b"a\t1\nb\t2\nhalf of a li")
        running.stdin.flush()
        log = logs / "t-0" / "00000000000000000000.log"
        end = time.monotonic() + SECONDS
        while not (log.exists() and log.stat().st_size) and time.monotonic() < end:
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)
        output, error = running.communicate(timeout=SECONDS)
    assert (running.returncode, error) == (130, b"")
    if more:
        summary = json.loads(output)
        assert (summary["records"], summary["isInterrupted"]) == (2, True)
    else:
        assert output == (
            b"interrupted: created topic t with 1 partition, appended 2 records (79B in batches) "
            b"to t-0, which ends at offset 2 (exclusive); they are kept\n"
        )
    assert (logs / ".kafka_cleanshutdown").exists()
    assert not (logs / ".lock").exists()
    assert records_of(logs) == [("t", 0, 0, b"a", b"1"), ("t", 0, 1, b"b", b"2")]


@pytest.mark.parametrize("name", ["append", "create-topic", "truncate", "delete-records"])
def test_help_of_a_writing_command_imports_nothing_heavy(name: str) -> None:
    code = (
        "import sys; from pylog.cli.main import run; status = run(sys.argv[1:]); "
        "heavy = {'numba', 'llvmlite', 'pyarrow', 'numpy', 'pandas', 'rich'}; "
        "print(*sorted(heavy & set(sys.modules)), file=sys.stderr); sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, name, "--help"],
        check=True,
        capture_output=True,
        timeout=SECONDS,
    )
    assert done.stderr == b"\n"


def test_the_partitioner_can_be_chosen(
    pylog_run: Callable[..., Outcome], lines: Callable[..., Path], tmp_path: Path
) -> None:
    pylog_run("create-topic", tmp_path / "logs", "--topic", "t", "--partitions", "4")
    path = lines("6\ta", "7\tb", "9\tc")
    command = ("append", tmp_path / "logs", path, "--topic", "t", "--format", "text")
    assert pylog_run(*command, "--partitioner", "integer_key").status == 0
    assert [row[1:] for row in records_of(tmp_path / "logs")] == [
        (1, 0, b"9", b"c"),
        (2, 0, b"6", b"a"),
        (3, 0, b"7", b"b"),
    ]
    assert pylog_run(*command, "--partitioner", "rr").status == 2


def lines_of(path: Path | str) -> list[list[bytes]]:
    with LineSource(str(path), Interruption()) as source:
        return list(source)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\n\nb", [b"a", b"", b"b"]),
        (b"\n", [b""]),
        (b"a\r\n", [b"a\r"]),
        (b"only", [b"only"]),
    ],
)
@pytest.mark.parametrize("read_bytes", [1, 2, 3, 1 << 20])
@pytest.mark.parametrize("at_once", [1, 1 << 20])
def test_lines_are_those_of_the_file_however_it_is_read(
    tmp_path: Path,
    content: bytes,
    expected: list[bytes],
    read_bytes: int,
    at_once: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(line_source, "READ_BYTES", read_bytes)
    monkeypatch.setattr(line_source, "BYTES_AT_ONCE", at_once)
    path = tmp_path / "lines"
    path.write_bytes(content)
    parts = lines_of(path)
    assert [line for part in parts for line in part] == expected
    assert [] not in parts


def test_a_file_has_a_length_and_a_pipe_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\nb\n")
    with LineSource(str(path), Interruption()) as source:
        assert source.total_bytes == 4
        list(source)
        assert source.read_bytes == 4
    reading, writing = os.pipe()
    with os.fdopen(reading) as pipe, os.fdopen(writing, "wb", buffering=0) as sending:
        monkeypatch.setattr(sys, "stdin", pipe)
        with LineSource(STANDARD_INPUT, Interruption()) as source:
            assert source.total_bytes is None
            lines = iter(source)
            sending.write(b"a\nb")
            assert next(lines) == [b"a"]  # though the pipe stays open
            sending.write(b"c\n")
            sending.close()
            assert next(lines) == [b"bc"]
            assert list(lines) == []


def test_closed_standard_input_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ValueError, match="standard input is closed"):
        LineSource(STANDARD_INPUT, Interruption())


def test_a_process_may_have_thousands_of_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limits[0] != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], 2_000), limits[1]))
    reading, writing = os.pipe()
    high = fcntl.fcntl(reading, fcntl.F_DUPFD, 1_500)  # select() knows those up to 1,023
    try:
        os.write(writing, b"a\nb\n")
        os.close(writing)
        with os.fdopen(high, closefd=False) as standard_input:
            monkeypatch.setattr(sys, "stdin", standard_input)
            found = [line for some in lines_of(STANDARD_INPUT) for line in some]
        assert found == [b"a", b"b"]
    finally:
        os.close(high)
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
