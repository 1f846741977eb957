"""Which outputs have colours: by --color, then NO_COLOR and FORCE_COLOR, then a terminal."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import click
import pytest

from pylog.cli.main import COMMANDS, load_command
from pylog.cli.style import OutputTraits
from tests.unit.cli.conftest import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome


@pytest.mark.parametrize(
    ("color", "variables", "in_terminal", "in_pipe"),
    [
        (None, {}, True, False),
        (None, {"TERM": "dumb"}, False, False),
        (None, {"NO_COLOR": "1"}, False, False),
        (None, {"FORCE_COLOR": "1"}, True, True),
        (None, {"FORCE_COLOR": "0"}, True, False),
        (None, {"FORCE_COLOR": "1", "TERM": "dumb"}, True, True),
        (None, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        (True, {"NO_COLOR": "1"}, True, True),
        (False, {"FORCE_COLOR": "1"}, False, False),
    ],
)
def test_who_says_first_whether_there_are_colours(
    monkeypatch: pytest.MonkeyPatch,
    color: bool | None,  # noqa: FBT001 - a parameter of pytest's
    variables: dict[str, str],
    in_terminal: bool,  # noqa: FBT001
    in_pipe: bool,  # noqa: FBT001
) -> None:
    for name, text in {"TERM": "xterm", "NO_COLOR": "", "FORCE_COLOR": "", **variables}.items():
        monkeypatch.setenv(name, text)
    with click.Context(click.Command("x"), color=color):
        assert OutputTraits.of(Terminal()).has_styles == in_terminal
        assert OutputTraits.of(io.StringIO()) == OutputTraits(None, has_styles=in_pipe)


def test_an_option_forces_colours_through_a_pipe(
    demo_directory: Path, pylog_run: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    damaged = demo_directory / "damaged"
    assert b"\x1b" not in pylog_run("doctor", damaged).output
    assert pylog_run("doctor", damaged, "--color", "always").output.startswith(b"\x1b[1;31m20 rec")
    for command in (("cat", "--format", "pretty", "-c", "1"), ("stats",)):
        done = pylog_run(*command, damaged, "-t", "invoices-eu", "--color", "always")
        assert (done.status, b"\x1b[" in done.output) == (0, True), command


@pytest.mark.parametrize("name", COMMANDS)
def test_topics_and_partitions_have_their_letters_in_every_command(name: str) -> None:
    options = {each for parameter in load_command(name).params for each in parameter.opts}
    for long, short in (("--topic", "-t"), ("--partition", "-p")):
        assert long not in options or short in options
