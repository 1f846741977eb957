from __future__ import annotations

import re
import shlex
import time
from typing import TYPE_CHECKING, cast

import click
import pytest
from click.testing import CliRunner

from pylog.cli.main import COMMANDS, load_command
from pylog.cli.options import SHARED, TIME, argument, command

if TYPE_CHECKING:
    from collections.abc import Callable

    from pylog.cli.options import DocumentedCommand
    from tests.unit.cli.conftest import Outcome


@command("copy")
@argument("sources", metavar="SOURCE", nargs=-1, required=True, help_text="What to copy.")
@argument("target", metavar="TARGET", required=False, help_text="Where to.")
def copy(sources: tuple[str, ...], target: str | None) -> int:
    """Copy."""
    return 0


def test_arguments_are_explained_before_options() -> None:
    lines = CliRunner().invoke(copy, ["--help"]).output.splitlines()
    assert lines[0] == "Usage: copy [OPTIONS] SOURCE... [TARGET]"
    start = lines.index("Arguments:")
    assert lines[start + 1 : start + 3] == ["  SOURCE  What to copy.", "  TARGET  Where to."]
    assert lines.index("Options:") > start


def test_arguments_have_no_line_among_the_options(pylog_run: Callable[..., Outcome]) -> None:
    lines = pylog_run("mask", "--help").lines
    assert "  DIR" not in lines[lines.index("Options:") :]


@pytest.mark.parametrize("name", COMMANDS)
def test_no_line_of_help_ends_within_an_option(
    name: str, pylog_run: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    for width in (60, 80, 100):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = pylog_run(name, "--help").lines
        assert [line for line in lines if re.search(r"--[a-z-]*-$", line)] == [], width
        text = [line for line in lines if not line.startswith("  pylog ")]  # examples are one line
        assert width < 80 or max(map(len, text)) <= width


def test_a_missing_argument_is_called_by_its_metavar() -> None:
    done = CliRunner().invoke(copy, [])
    assert done.exit_code == 2
    assert "Missing argument 'SOURCE'." in done.output


@pytest.mark.parametrize(
    ("name", "usage"),
    [
        ("ls", "ls [OPTIONS] PATH..."),
        ("cat", "cat [OPTIONS] PATH..."),
        ("append", "append [OPTIONS] DIR [FILE]"),
        ("create-topic", "create-topic [OPTIONS] DIR"),
        ("truncate", "truncate [OPTIONS] DIR"),
        ("delete-records", "delete-records [OPTIONS] DIR"),
    ],
)
def test_usage_tells_what_may_be_left_out_and_what_repeats(
    name: str, usage: str, pylog_run: Callable[..., Outcome]
) -> None:
    lines = pylog_run(name, "--help").lines
    assert lines[0] == f"Usage: pylog {usage}"
    assert "Arguments:" in lines


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("cat", "[default: read_uncommitted]"),
        ("cat", "[default: 268435456; x>=1]"),
        ("append", "[default: 16384; x>=1]"),
        ("truncate", "[x>=0; required]"),
    ],
)
def test_options_tell_defaults_and_bounds(
    name: str, default: str, pylog_run: Callable[..., Outcome]
) -> None:
    assert default in " ".join(pylog_run(name, "--help").output.decode().split())


EXAMPLES = [
    (name, line)
    for name in COMMANDS
    for line in cast("DocumentedCommand", load_command(name)).examples
]


def test_every_command_has_an_example() -> None:
    assert {name for name, _ in EXAMPLES} == set(COMMANDS)


@pytest.mark.parametrize(("name", "line"), EXAMPLES)
def test_examples_are_what_the_command_takes(name: str, line: str) -> None:
    line = re.split(" [<>] ", line)[0]
    program, given, *arguments = shlex.split(line)
    assert (program, given) == ("pylog", name)
    load_command(name).make_context(name, arguments)


@pytest.mark.parametrize(("name", "line"), EXAMPLES)
def test_examples_are_printed_as_they_are_to_be_typed(
    name: str, line: str, pylog_run: Callable[..., Outcome]
) -> None:
    assert f"  {line}" in pylog_run(name, "--help").lines


@pytest.mark.parametrize("name", COMMANDS)
def test_the_short_help_is_one_screen_with_examples_first(
    name: str, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run(name, "-h")
    assert (done.status, done.error) == (0, "")
    assert len(done.lines) < 24
    examples = [line for line in done.lines if line.startswith("  pylog ")]
    assert done.lines[0] == COMMANDS[name]
    assert done.lines[2] in examples
    assert all(len(line) < 80 for line in done.lines if len(examples) > 1 or line not in examples)
    usage = done.lines.index(next(line for line in done.lines if line.startswith("Usage: ")))
    assert usage > max(map(done.lines.index, examples))
    for option in load_command(name).params:
        if option.required and option.param_type_name == "option":
            assert any(f"{option.opts[0]} " in line for line in done.lines[usage:]), option.opts


@pytest.mark.parametrize("name", COMMANDS)
def test_the_long_help_has_every_option(name: str, pylog_run: Callable[..., Outcome]) -> None:
    text = pylog_run(name, "--help").output.decode()
    for option in load_command(name).params:
        if option.param_type_name == "option":
            assert re.search(rf"(?m)^  (-\w, )?{re.escape(option.opts[0])}\b", text), option.opts


def test_options_of_many_commands_say_the_same_in_each() -> None:
    said: dict[str, set[str | None]] = {}
    for name in COMMANDS:
        for option in load_command(name).params:
            if isinstance(option, click.Option) and option.opts[0] in SHARED:
                said.setdefault(option.opts[0], set()).add(option.help)
    assert set(said) == set(SHARED)
    assert {name: len(texts) for name, texts in said.items()} == dict.fromkeys(SHARED, 1)


NOW_MS = 1_800_000_000_500


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: NOW_MS / 1000)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("0", 0),
        ("1730999991709", 1_730_999_991_709),
        ("2024-03-01", 1_709_251_200_000),
        ("2024-03-01T12:30", 1_709_296_200_000),
        ("2024-03-01 12:30:00.5Z", 1_709_296_200_500),
        ("2024-03-01T12:30:00+01:00", 1_709_292_600_000),
        ("2024-03-01T12:30:00.0001Z", 1_709_296_200_001),
        ("-30s", NOW_MS - 30_000),
        ("-15m", NOW_MS - 900_000),
        ("-2h", NOW_MS - 7_200_000),
        ("-7d", NOW_MS - 604_800_000),
        ("-4w", NOW_MS - 2_419_200_000),
    ],
)
def test_a_time_is_a_date_a_while_ago_or_milliseconds(text: str, milliseconds: int) -> None:
    assert TIME.convert(text, None, None) == milliseconds


@pytest.mark.parametrize(
    "text", ["", "now", "-2", "-1", "2h", "-2y", "-h", "1.5", "2024-13-01", "\u0661"]
)
def test_anything_else_is_refused_with_what_may_be_given(text: str) -> None:
    with pytest.raises(
        click.BadParameter, match=r"is not a time: give an ISO date or time \(2026-"
    ):
        TIME.convert(text, None, None)
