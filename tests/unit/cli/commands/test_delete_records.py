from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_high_watermarks, write_log_start_offsets, write_partition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome

WHERE = ("--topic", "t", "--partition", "0")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Make a log of nine records."""
    pylog.write_topic(tmp_path / "logs", "t", [(None, b"%d" % number) for number in range(9)])
    return tmp_path / "logs"


def offsets(directory: Path) -> list[int]:
    found: list[int] = pylog.scan(directory, columns=["offset"]).to_table()["offset"].to_pylist()
    return found


@pytest.mark.parametrize(
    ("arguments", "start"), [(["--offset", 0], 0), (["--offset", 4], 4), (["--all"], 9)]
)
def test_records_below_the_offset_are_served_no_more(
    arguments: list[object], start: int, logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("delete-records", logs, *WHERE, *arguments)
    assert (done.status, done.error) == (0, "")
    assert done.lines == [
        f"t-0 now starts at offset {start}; it started at 0"
        if start
        else "nothing was deleted: t-0 starts at offset 0, and offset 0 is not after that"
    ]
    assert offsets(logs) == list(range(start, 9))
    # The start goes up only, and is still there when the directory is opened again.
    done = pylog_run("delete-records", logs, *WHERE, "--offset", 2, "--json")
    assert json.loads(done.output) == {
        "schemaVersion": 1,
        "topic": "t",
        "partition": 0,
        "startOffsetBefore": start,
        "logStartOffset": max(start, 2),
        "heldBack": None,
    }


@pytest.mark.parametrize(
    ("arguments", "start", "segments"),
    [
        (["--offset", 4], 4, 0),
        (["--offset", 12], 12, 1),
        (["--all"], 30, 2),
        (["--offset", 2], 3, 0),
    ],
)
def test_a_dry_run_reports_what_would_be_removed_and_changes_nothing(
    arguments: list[object],
    start: int,
    segments: int,
    tmp_path: Path,
    pylog_run: Callable[..., Outcome],
) -> None:
    # As a broker that was killed leaves it: an owner would recover it, and write.
    batches = {first: [batch_v2(plain_records(first, 10))] for first in (0, 10, 20)}
    write_partition(tmp_path, batches, name="t-0")
    write_log_start_offsets(tmp_path, {("t", 0): 3})
    write_high_watermarks(tmp_path, {("t", 0): 30})
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    size = sum(len(batches[first][0].data) for first in (0, 10)[:segments])
    done = pylog_run("delete-records", tmp_path, *WHERE, *arguments, "--dry-run", "--json")
    assert (done.status, done.error) == (0, "")
    assert json.loads(done.output) == {
        "schemaVersion": 1,
        "topic": "t",
        "partition": 0,
        "startOffsetBefore": 3,
        "logStartOffset": start,
        "heldBack": None,
        "dryRun": True,
        "removed": {
            "startOffset": 3,
            "endOffset": start,
            "records": start - 3,
            "sizeInBytes": size,
            "segments": segments,
        },
    }
    done = pylog_run("delete-records", tmp_path, *WHERE, *arguments, "--dry-run")
    if start > 3:
        records = "1 record" if start == 4 else f"{start - 3} records"
        offsets = "offset 3" if start == 4 else f"offsets 3 to {start - 1}"
        whole = "1 whole segment" if segments == 1 else f"{segments} whole segments"
        assert done.lines == [
            f"t-0 would start at offset {start}; it starts at 3",
            f"{offsets} would be removed: {records}, {size} bytes, {whole}",
        ]
    else:
        assert done.lines == [
            "nothing would be deleted: t-0 starts at offset 3, and offset 2 is not after that"
        ]
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before


def test_records_of_a_compacted_topic_stay(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    config = {"cleanup.policy": "compact"}
    pylog.write_topic(tmp_path / "logs", "t", [(b"k", b"v")], config=config)
    for more in ([], ["--dry-run"]):
        done = pylog_run("delete-records", tmp_path / "logs", *WHERE, "--all", *more)
        assert done.status == 2
        assert (
            "cleanup.policy does not contain delete, so no record can be deleted in partition t-0"
            in done.error
        )


def offset_file(tmp_path: Path, *entries: tuple[str, int, int]) -> Path:
    path = tmp_path / "offsets.json"
    names = ("topic", "partition", "offset")
    partitions = [dict(zip(names, entry, strict=True)) for entry in entries]
    path.write_text(json.dumps({"partitions": partitions, "version": 1}))
    return path


def test_a_file_of_kafkas_own_script_names_several_partitions(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    logs = tmp_path / "logs"
    for topic in ("t", "u"):
        pylog.write_topic(logs, topic, [(None, b"%d" % number) for number in range(9)])
    file = offset_file(tmp_path, ("u", 0, -1), ("t", 0, 4))
    plan = pylog_run("delete-records", logs, "--offset-json-file", file, "--dry-run", "--json")
    removed = [each["removed"]["records"] for each in json.loads(plan.output)["partitions"]]
    assert removed == [9, 4]
    assert offsets(logs) == 2 * list(range(9))
    done = pylog_run("delete-records", logs, "--offset-json-file", file)
    assert (done.status, done.error) == (0, "")
    assert done.lines == [
        "u-0 now starts at offset 9; it started at 0",
        "t-0 now starts at offset 4; it started at 0",
    ]
    assert offsets(logs) == list(range(4, 9))
    done = pylog_run("delete-records", logs, "--offset-json-file", file, "--json")
    assert json.loads(done.output) == {
        "schemaVersion": 1,
        "partitions": [
            {
                "topic": "u",
                "partition": 0,
                "startOffsetBefore": 9,
                "logStartOffset": 9,
                "heldBack": None,
            },
            {
                "topic": "t",
                "partition": 0,
                "startOffsetBefore": 4,
                "logStartOffset": 4,
                "heldBack": None,
            },
        ],
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--offset", 1), "--offset-json-file goes without --topic, --partition, --offset and --a"),
        (("--all",), "--offset-json-file goes without --topic"),
        (("--topic", "t"), "--offset-json-file goes without --topic"),
        ((), "holds offsets 0 to 9 (exclusive); offset -1 keeps no record; nothing has been chan"),
    ],
)
def test_a_file_with_one_wrong_partition_changes_none(
    arguments: tuple[object, ...],
    message: str,
    logs: Path,
    tmp_path: Path,
    pylog_run: Callable[..., Outcome],
) -> None:
    pylog.write_topic(logs, "u", [(None, b"%d" % number) for number in range(9)])
    file = offset_file(tmp_path, ("u", 0, 5), ("t", 0, 10))
    done = pylog_run("delete-records", logs, "--offset-json-file", file, *arguments)
    assert (done.status, done.output) == (2, b"")
    assert message in done.error
    assert offsets(logs) == 2 * list(range(9))


def test_without_a_file_topic_and_partition_are_needed(
    logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("delete-records", logs, "--topic", "t", "--all")
    assert done.status == 2
    assert "give --topic and --partition, or --offset-json-file" in done.error


def test_what_may_not_be_replicated_stays_and_is_counted(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 30))]}, name="t-0")
    write_high_watermarks(tmp_path, {("t", 0): 10})
    done = pylog_run("delete-records", tmp_path, *WHERE, "--offset", 11)
    assert done.status == 2
    assert "offset 11 of t-0 is above its high watermark 10" in done.error
    for more in (["--dry-run"], []):
        done = pylog_run("delete-records", tmp_path, *WHERE, "--all", *more)
        assert done.status == 0
        assert "t-0: 20 records at offsets 10 to 29 are left alone" in done.lines[-1]
    done = pylog_run(
        "delete-records", tmp_path, *WHERE, "--all", "--high-watermark", "log-end", "--json"
    )
    assert json.loads(done.output)["logStartOffset"] == 30
