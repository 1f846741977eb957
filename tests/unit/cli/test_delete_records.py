from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import pylog

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
    assert done.lines == [f"t-0 starts at offset {start}, before at 0"]
    assert offsets(logs) == list(range(start, 9))
    # The start goes up only, and is still there when the directory is opened again.
    done = pylog_run("delete-records", logs, *WHERE, "--offset", 2, "--json")
    assert json.loads(done.output) == {
        "topic": "t",
        "partition": 0,
        "startOffsetBefore": start,
        "logStartOffset": max(start, 2),
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give either --offset or --all"),
        (["--offset", "1", "--all"], "give either --offset or --all"),
        (["--offset", "10"], "offset 10 of t-0 is out of range: the log holds offsets 0 to 9"),
    ],
)
def test_what_cannot_be_deleted_is_one_line(
    arguments: list[str], message: str, logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("delete-records", logs, *WHERE, *arguments)
    assert (done.status, done.output) == (2, b"")
    assert message in done.error
    assert done.error.count("\n") == 1
    assert offsets(logs) == list(range(9))


def test_records_of_a_compacted_topic_stay(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    config = {"cleanup.policy": "compact"}
    pylog.write_topic(tmp_path / "logs", "t", [(b"k", b"v")], config=config)
    done = pylog_run("delete-records", tmp_path / "logs", *WHERE, "--all")
    assert done.status == 2
    assert "topics whose cleanup.policy contains delete in partition t-0" in done.error
