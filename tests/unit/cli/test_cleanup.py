from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.terminal import answered

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome

QUESTION = "All records of t-0 will be removed ("
WHERE = ("-t", "t", "-p", "0")
ALL_GO = [("delete-records", *WHERE, "--all"), ("truncate", *WHERE, "--offset", "0")]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    pylog.write_topic(tmp_path / "logs", "t", [(None, b"%d" % number) for number in range(9)])
    return tmp_path / "logs"


def count(directory: Path) -> int:
    return pylog.scan(directory).count()


@pytest.mark.parametrize(("command", "arguments"), [(each[0], each[1:]) for each in ALL_GO])
def test_a_terminal_is_asked_before_all_records_go(
    command: str, arguments: tuple[str, ...], logs: Path
) -> None:
    status, output = answered(b"n\n", command, logs, *arguments)
    assert (status, QUESTION in output, count(logs)) == (2, True, 9)
    assert "pylog: nothing was changed" in output
    status, output = answered(b"y\n", command, logs, *arguments)
    assert (status, QUESTION in output, count(logs)) == (0, True, 0)


@pytest.mark.parametrize("key", [b"\x03", b"\x04"], ids=["ctrl-c", "ctrl-d"])
def test_a_question_that_is_not_answered_changes_nothing(logs: Path, key: bytes) -> None:
    status, output = answered(key, "truncate", logs, *WHERE, "--offset", "0")
    assert (status, "Traceback" in output, count(logs)) == (130, False, 9)


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("delete-records", (*WHERE, "--all", "--yes")),
        ("delete-records", (*WHERE, "--all", "--dry-run")),
        ("delete-records", (*WHERE, "--offset", "9")),
        ("truncate", (*WHERE, "--offset", "0", "--yes")),
        ("truncate", (*WHERE, "--offset", "0", "--dry-run")),
        ("truncate", (*WHERE, "--offset", "9")),
    ],
)
def test_nobody_is_asked_where_it_was_answered_or_no_end_was_asked_for(
    command: str, arguments: tuple[str, ...], logs: Path
) -> None:
    status, output = answered(b"", command, logs, *arguments)
    assert (status, QUESTION in output) == (0, False)


@pytest.mark.parametrize(("command", "arguments"), [(each[0], each[1:]) for each in ALL_GO])
def test_nobody_is_asked_behind_a_pipe(
    command: str, arguments: tuple[str, ...], logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    assert (pylog_run(command, logs, *arguments).status, count(logs)) == (0, 0)
