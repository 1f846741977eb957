from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import pylog

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


@pytest.mark.parametrize(
    ("offset", "end"), [(0, 0), (2, 0), (3, 3), (5, 3), (6, 6), (8, 6), (9, 9), (100, 9)]
)
def test_the_log_ends_where_the_batch_with_the_offset_began(
    offset: int, end: int, logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    where = ("--topic", "t", "--partition", "0", "--offset", offset)
    done = pylog_run("truncate", logs, *where)
    assert (done.status, done.error) == (0, "")
    assert done.lines[0] == f"t-0 ends at offset {end} (exclusive), before at 9"
    inside = f"offset {offset} was inside of a batch: all from {end} on went with it"
    assert done.lines[1:] == ([inside] if offset in {2, 5, 8} else [])
    assert offsets(logs) == list(range(end))
    assert json.loads(pylog_run("truncate", logs, *where, "--json").output) == {
        "topic": "t",
        "partition": 0,
        "endOffsetBefore": end,
        "logEndOffset": end,
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--topic", "u", "--partition", "0", "--offset", "0"], "there is no log of u-0 in"),
        (["--topic", "t", "--partition", "1", "--offset", "0"], "there is no log of t-1 in"),
        (["--topic", "t", "--partition", "0", "--offset", "-1"], "--offset"),
        (["--topic", "t", "--partition", "0"], "missing option '--offset'"),
    ],
)
def test_what_cannot_be_cut_is_one_line(
    arguments: list[str], message: str, logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("truncate", logs, *arguments)
    assert (done.status, done.output) == (2, b"")
    assert message in done.error
    assert done.error.count("\n") == 1
    assert offsets(logs) == list(range(9))


def test_a_directory_that_is_not_there_is_not_made(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    where = ("--topic", "t", "--partition", "0", "--offset", "0")
    done = pylog_run("truncate", tmp_path / "none", *where)
    assert done.status == 2
    assert "no such directory" in done.error
    assert not (tmp_path / "none").exists()
