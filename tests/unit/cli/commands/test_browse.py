from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome


def test_without_a_terminal_it_says_what_to_use(
    pylog_run: Callable[..., Outcome], tmp_path: Path
) -> None:
    done = pylog_run("browse", tmp_path)
    assert (done.status, done.output) == (2, b"")
    assert "browse needs a terminal" in done.error


def test_a_dumb_terminal_is_none(tmp_path: Path) -> None:
    terminal = Terminal("-m", "pylog", "browse", tmp_path, environment={"TERM": "dumb"})
    assert terminal.status() == 2
    assert b"browse needs a terminal" in terminal.output


def test_without_textual_the_extra_is_named(tmp_path: Path) -> None:
    code = "import sys; sys.modules['textual'] = None; from pylog.cli.main import main; main()"
    terminal = Terminal("-c", code, "browse", tmp_path)
    assert terminal.status() == 2
    hint = f"pylog browse needs Textual: {pylog.jobs.install_command('browse')}"
    assert hint.encode() in terminal.output
    assert b"Traceback" not in terminal.output


@pytest.mark.parametrize("name", ["", "nothing-here"])
def test_a_path_without_logs_is_an_error_before_the_screen_changes(
    name: str, tmp_path: Path
) -> None:
    terminal = Terminal("-m", "pylog", "browse", tmp_path / name)
    assert terminal.status() == 2
    assert b"pylog: error: " in terminal.output
    assert b"\x1b[?1049h" not in terminal.output


def test_the_screen_is_restored_and_the_status_is_0(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "pylog", "demo", tmp_path / "demo"], check=True)
    terminal = Terminal("-m", "pylog", "browse", tmp_path / "demo" / "intact", "-t", "orders")
    terminal.read_until(b"orders")
    terminal.press(b"q")
    assert terminal.status() == 0
    assert terminal.output.index(b"\x1b[?1049h") < terminal.output.rindex(b"\x1b[?1049l")


def test_a_browser_ends_with_its_terminal_also_where_no_signal_says_so(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "pylog", "demo", tmp_path / "demo"], check=True)
    terminal = Terminal("-m", "pylog", "browse", tmp_path / "demo" / "intact")
    terminal.read_until(b"9 partitions")
    terminal.close()
    assert terminal.process.wait(60) == 141


def test_a_bug_ends_in_one_line_and_not_in_a_traceback(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "pylog", "demo", tmp_path / "demo"], check=True)
    code = (
        "import pylog.cli.browse.app as app; from pylog.cli.main import main\n"
        "def fail(self): raise KeyError('a bug')\n"
        "app.TopicsScreen.action_search = fail\n"
        "main()"
    )
    terminal = Terminal("-c", code, "browse", tmp_path / "demo" / "intact")
    terminal.read_until(b"9 partitions")
    terminal.press(b"/")
    assert terminal.status() == 2
    assert b"pylog: error: this is a bug in pylog, --debug shows where: KeyError: 'a bug'" in (
        terminal.output
    )
    assert b"Traceback" not in terminal.output
