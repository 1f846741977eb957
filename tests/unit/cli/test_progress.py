from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import pytest

from pylog.cli import progress
from pylog.cli.main import run
from pylog.cli.progress import ProgressBar
from tests.unit.cli.conftest import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.golden import GoldenRoot


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
    assert "1.0/4.0 KiB" in output
    assert "4.0/4.0 KiB" in output
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


@pytest.mark.parametrize(
    ("error", "given", "asked"),
    [
        (Terminal, Terminal, True),
        (Terminal, io.StringIO, False),
        (io.StringIO, Terminal, False),
        (Terminal, lambda: None, False),
    ],
)
def test_only_who_sees_a_question_and_can_answer_it_is_asked(
    monkeypatch: pytest.MonkeyPatch,
    error: Callable[[], object],
    given: Callable[[], object],
    *,
    asked: bool,
) -> None:
    monkeypatch.setattr("sys.stderr", error())
    monkeypatch.setattr("sys.stdin", given())
    assert progress.is_asked() is asked


@pytest.mark.parametrize(
    ("command", "writes_to_terminal"),
    [
        (("groups",), True),
        (("transactions",), True),
        (("stats",), True),
        (("doctor",), True),
        (("export", "--to", "{to}"), True),
        (("search", "--value-contains", "in no record at all"), True),
        (("cat",), False),
        (("cat", "--merge"), False),
        (("cat", "--merge", "--reverse"), False),
    ],
)
def test_slow_commands_show_how_far_they_are(
    command: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    golden_root: GoldenRoot,
    tmp_path: Path,
    *,
    writes_to_terminal: bool,
) -> None:
    output, terminal = io.TextIOWrapper(io.BytesIO()), Terminal()
    if writes_to_terminal:
        monkeypatch.setattr(output, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout", output)
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    name, *options = (text.format(to=tmp_path / "records.jsonl") for text in command)
    run([name, str(golden_root.case("4.3.0/internal-logdir")), *options])
    assert re.search(r"\d+%.*[1-9]\d*(\.\d)?/\d+\.\d (KiB|kB)", terminal.getvalue())


def terminal_of_both(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Make one terminal stdout and stderr, where a bar is shown at once.

    Not a fixture: pytest puts its own streams in place between setup and the test.
    """
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    return terminal


def test_a_bar_makes_room_where_rich_stands_in_for_stdout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = terminal_of_both(monkeypatch)
    with ProgressBar("searching", 4096) as bar:
        bar.show(1024)
        monkeypatch.setattr("sys.stdout", io.StringIO())  # as rich 13 and 14 do: not a terminal
        with bar.hidden():
            assert both.getvalue().endswith("\x1b[2K")  # the line is erased


def test_a_bar_makes_room_for_what_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    both = terminal_of_both(monkeypatch)
    with ProgressBar("searching", 4096) as bar:
        bar.show(1024)
        with bar.hidden():
            assert both.getvalue().endswith("\x1b[2K")  # the line is erased
            both.write("a match\n")
        before = len(both.getvalue())
        monkeypatch.setattr(progress, "DELAY_SECONDS", 60.0)
        bar.show(2048)
        assert len(both.getvalue()) == before  # not at once: another match may follow
        monkeypatch.setattr(progress, "DELAY_SECONDS", 0.0)
        bar.show(2048)
        assert "50%" in both.getvalue()[before:]


def test_a_long_run_says_in_a_pipe_how_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr("sys.stderr", pipe)
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with progress.bar_or_lines("reading") as lines:
        for seconds, done in ((1, 1 << 20), (29, 2 << 20), (30, 3 << 20), (31, 4 << 20)):
            now[0] = 1000.0 + seconds
            lines.show(done, 12 << 20)
        now[0] = 1075.0
        lines.show(6 << 20, 12 << 20)
    assert pipe.getvalue().splitlines() == [
        "pylog: reading: 25 % of 12.0MiB, about 1m 30s left",
        "pylog: reading: 50 % of 12.0MiB, about 1m 15s left",
    ]


def test_a_short_run_says_nothing_in_a_pipe(
    golden_root: GoldenRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr("sys.stderr", pipe)
    run(["doctor", str(golden_root.case("4.3.0/plain")), "--severity", "error"])
    assert "left" not in pipe.getvalue()
