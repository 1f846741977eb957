"""Lines that people try first, of other tools and by guesses: each is answered with what is meant.

``wrong_usages.txt`` is the table: a line, and below it a part of the answer.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.log_files import tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.unit.cli.conftest import Outcome

TABLE = Path(__file__).with_name("wrong_usages.txt").read_text("utf-8").splitlines()
USAGES = dict(zip(TABLE[::2], TABLE[1::2], strict=True))
FINDING = "$ pylog cat kafka/damaged"
"""What is not refused, and ends at the damage."""
MOST_LINES = {"search": 3, "sql": 3}
"""How many lines on stderr an answer has at most, where it is not one: notes, DuckDB's caret."""


@pytest.fixture(scope="module", autouse=True)
def nothing_is_changed(demo_directory: Path) -> Iterator[None]:
    before = tree(demo_directory.parent)
    yield
    assert tree(demo_directory.parent) == before


def test_there_are_a_hundred() -> None:
    assert len(USAGES) >= 100
    assert len(TABLE) == 2 * len(USAGES)


@pytest.mark.parametrize("line", USAGES)
def test_a_wrong_usage_is_answered_with_what_was_meant(
    line: str,
    demo_directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    pylog_run: Callable[..., Outcome],
) -> None:
    monkeypatch.chdir(demo_directory.parent)
    program, *arguments = shlex.split(line.removeprefix("$ "))
    assert program == "pylog"
    done = pylog_run(*arguments)
    assert USAGES[line].strip() in done.output.decode() + done.error
    if "pylog: error: " in done.error and line != FINDING:
        assert (done.status, done.output) == (2, b"")
    assert done.error.count("\n") <= MOST_LINES.get(arguments[0] if arguments else "", 1)
