from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import batch_v2, plain_records, wrapper
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Make a log of batches at offsets 0, 3 and 6, three records each."""
    for first in (0, 3, 6):
        records = [(None, b"%d" % (first + number), 1_000) for number in range(3)]
        pylog.write_topic(tmp_path / "logs", "t", records)
    return tmp_path / "logs"


def offsets(directory: Path) -> list[int]:
    found: list[int] = pylog.scan(directory, columns=["offset"]).to_table()["offset"].to_pylist()
    return found


def content_of(directory: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(directory)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


WHERE = ("--topic", "t", "--partition", "0", "--offset")


@pytest.mark.parametrize(("offset", "end"), [(0, 0), (3, 3), (6, 6), (9, 9), (100, 9)])
def test_a_log_is_cut_between_batches(
    offset: int, end: int, logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("truncate", logs, *WHERE, offset)
    assert (done.status, done.error) == (0, "")
    assert done.lines == [
        f"t-0 now ends at offset {end} (exclusive); it ended at 9"
        if end < 9
        else f"nothing was removed: t-0 ends at offset 9 (exclusive), and offset {offset} is not "
        "below that"
    ]
    assert offsets(logs) == list(range(end))
    assert json.loads(pylog_run("truncate", logs, *WHERE, offset, "--json").output) == {
        "schemaVersion": 1,
        "topic": "t",
        "partition": 0,
        "endOffsetBefore": end,
        "logEndOffset": end,
    }


@pytest.mark.parametrize("more", [(), ("--json",), ("--dry-run",)])
@pytest.mark.parametrize(("offset", "first"), [(1, 0), (2, 0), (4, 3), (5, 3), (7, 6), (8, 6)])
def test_an_offset_inside_a_batch_is_refused_and_nothing_is_lost(
    offset: int, first: int, more: tuple[str, ...], logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    log = logs / "t-0" / f"{0:020d}.log"
    before = log.read_bytes()
    done = pylog_run("truncate", logs, *WHERE, offset, *more)
    assert (done.status, done.output) == (2, b"")
    assert done.error == (
        f"pylog: error: offset {offset} of t-0 lies inside a batch of offsets {first} to "
        f"{first + 2}: the log can be cut at {first} or at {first + 3}; --whole-batch removes "
        "that batch as a whole\n"
    )
    assert log.read_bytes() == before
    assert offsets(logs) == list(range(9))


@pytest.mark.parametrize(("offset", "end"), [(2, 0), (3, 3), (5, 3), (8, 6)])
def test_a_whole_batch_goes_where_that_is_asked_for(
    offset: int, end: int, logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("truncate", logs, *WHERE, offset, "--whole-batch")
    assert (done.status, done.error) == (0, "")
    assert done.lines[0] == f"t-0 now ends at offset {end} (exclusive); it ended at 9"
    inside = f"offset {offset} lies inside a batch, so everything from offset {end} on was removed"
    assert done.lines[1:] == ([inside] if offset != end else [])
    assert offsets(logs) == list(range(end))


@pytest.mark.parametrize(("magic", "codec"), [(0, "gzip"), (1, "gzip"), (1, "snappy")])
@pytest.mark.parametrize(("offset", "cut"), [(3, 3), (4, None), (5, None), (6, 6)])
def test_a_compressed_batch_of_an_old_format_is_not_cut_through(
    magic: int,
    codec: str,
    offset: int,
    cut: int | None,
    tmp_path: Path,
    pylog_run: Callable[..., Outcome],
) -> None:
    # Its header names its last offset only.
    batches = [
        wrapper(plain_records(first, 3), magic=magic, codec=codec) for first in range(0, 9, 3)
    ]
    write_partition(tmp_path, {0: batches}, name="t-0")
    for more in (("--dry-run",), ()):
        done = pylog_run("truncate", tmp_path, *WHERE, offset, *more)
        assert done.status == (2 if cut is None else 0)
        if cut is None:
            assert "a batch of offsets 3 to 5: the log can be cut at 3 or at 6" in done.error
    assert offsets(tmp_path) == list(range(9 if cut is None else cut))


def test_a_dry_run_reports_what_would_be_removed_and_changes_nothing(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    # As a broker that was killed leaves it: an owner would recover it, and write.
    segments = {
        first: [batch_v2(plain_records(first, 5)), batch_v2(plain_records(first + 5, 5))]
        for first in (0, 10, 20)
    }
    directory = write_partition(tmp_path, segments, name="t-0")
    with (directory / f"{20:020d}.log").open("ab") as log:
        log.write(segments[20][0].data[:40])
    size = sum(len(batch.data) for batch in (segments[0][1], *segments[10], *segments[20]))
    before = content_of(tmp_path)
    done = pylog_run("truncate", tmp_path, *WHERE, 5, "--dry-run")
    torn = directory / f"{20:020d}.log"
    assert done.status == 0
    assert done.error == (
        f"pylog: warning: recovering {torn}: truncating 40 bytes from position "
        f"{torn.stat().st_size - 40} on: a batch is cut short by the end of the file\n"
    )
    assert done.lines == [
        "t-0 would end at offset 5 (exclusive); it ends at 30",
        f"offsets 5 to 29 would be removed: 25 records, {size} bytes, 2 whole segments",
    ]
    done = pylog_run("truncate", tmp_path, *WHERE, 7, "--dry-run", "--whole-batch", "--json")
    assert json.loads(done.output) == {
        "schemaVersion": 1,
        "topic": "t",
        "partition": 0,
        "endOffsetBefore": 30,
        "logEndOffset": 5,
        "dryRun": True,
        "removed": {
            "startOffset": 5,
            "endOffset": 30,
            "records": 25,
            "sizeInBytes": size,
            "segments": 2,
        },
    }
    done = pylog_run("truncate", tmp_path, *WHERE, 30, "--dry-run")
    (line,) = done.lines
    assert line == (
        "nothing would be removed: t-0 ends at offset 30 (exclusive), and offset 30 is not below "
        "that"
    )
    assert content_of(tmp_path) == before


@pytest.mark.parametrize("offset", [0, 3, 5, 8, 9, 40])
def test_a_dry_run_reports_what_the_cut_removes(
    offset: int, logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    said = json.loads(
        pylog_run("truncate", logs, *WHERE, offset, "--whole-batch", "--dry-run", "--json").output
    )
    removed = said.pop("removed")
    log = logs / "t-0" / f"{0:020d}.log"
    size = log.stat().st_size
    done = json.loads(pylog_run("truncate", logs, *WHERE, offset, "--whole-batch", "--json").output)
    assert said == done | {"dryRun": True}
    assert removed["records"] == 9 - len(offsets(logs))
    assert removed["sizeInBytes"] == size - log.stat().st_size


def test_a_single_offset_is_not_called_a_range(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    with pylog.logs.LogManager([tmp_path / "one"]) as manager:
        log = manager.get_or_create_log(pylog.TopicPartition("t", 0))
        batch = pylog.logs.RecordBatchBuilder()
        batch.append(0, None, b"v")
        log.append_as_leader(batch.build())
    done = pylog_run("truncate", tmp_path / "one", *WHERE, 0, "--dry-run")
    assert done.lines[1].startswith("offset 0 would be removed: 1 record, ")


def test_a_topic_that_is_nearly_there_is_suggested(
    logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    pylog.create_topic(logs, "orders", 1)
    done = pylog_run("truncate", logs, "--topic", "order", "--partition", "0", "--offset", "0")
    assert done.error.endswith("; did you mean topic 'orders'?\n")


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_an_offset_below_the_start_is_refused_with_the_lowest_that_is_possible(
    logs: Path, more: tuple[str, ...], pylog_run: Callable[..., Outcome]
) -> None:
    pylog.delete_records(logs, {("t", 0): 3})
    done = pylog_run("truncate", logs, *WHERE, 2, *more)
    assert (done.status, done.output) == (2, b"")
    assert done.error == (
        "pylog: error: offset 2 of t-0 is out of range: the log holds offsets 3 to 9 (exclusive); "
        "--offset 3 removes all of them; nothing has been removed\n"
    )


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_dry_run_is_refused_where_the_command_would_be(
    logs: Path, more: tuple[str, ...], pylog_run: Callable[..., Outcome]
) -> None:
    (logs / "notes").mkdir()
    done = pylog_run("truncate", logs, *WHERE, 3, *more)
    assert (done.status, done.output) == (1, b"")
    assert done.error == (
        f"pylog: error: {logs / 'notes'}: directory is not named <topic>-<partition>, and a broker "
        "refuses a log directory that holds any other: move it away\n"
    )


def test_a_directory_that_is_not_there_is_not_made(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    where = ("--topic", "t", "--partition", "0", "--offset", "0")
    done = pylog_run("truncate", tmp_path / "none", *where)
    assert done.status == 2
    assert "no such directory" in done.error
    assert not (tmp_path / "none").exists()
