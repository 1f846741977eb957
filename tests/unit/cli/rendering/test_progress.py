from __future__ import annotations

import io

import pytest

from pylog.cli.rendering import progress
from pylog.cli.rendering.progress import ProgressBar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_shown_in_the_first_second(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with ProgressBar("reading", 100) as bar:
        bar.show(50)
    assert terminal.getvalue() == ""


def test_a_bar_is_shown_afterwards_and_removed_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    with ProgressBar("reading", 4096) as bar:
        bar.show(1024)
        bar.show(4096)
    output = terminal.getvalue()
    assert "reading" in output
    assert "4.0 KiB" in output
    assert output.endswith("\x1b[2K")  # the line is erased


def test_a_bar_without_a_total_shows_what_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    with ProgressBar("appending", None) as bar:
        bar.show(2048)
    assert "appending" in terminal.getvalue()
    assert "2.0/? KiB" in terminal.getvalue()


@pytest.mark.parametrize(
    ("error_is_terminal", "output_is_terminal", "wanted"),
    [(True, False, True), (False, False, False), (True, True, False), (False, True, False)],
)
def test_a_bar_is_wanted_on_a_terminal_that_gets_no_records(
    monkeypatch: pytest.MonkeyPatch,
    *,
    error_is_terminal: bool,
    output_is_terminal: bool,
    wanted: bool,
) -> None:
    monkeypatch.setattr("sys.stderr", Terminal() if error_is_terminal else io.StringIO())
    monkeypatch.setattr("sys.stdout", Terminal() if output_is_terminal else io.StringIO())
    assert progress.is_wanted() is wanted
