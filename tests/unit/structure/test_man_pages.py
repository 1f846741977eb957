from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import tomllib

import click
import pytest

from pylog.cli.main import COMMANDS, load_command, program
from pylog.cli.options import DocumentedArgument
from tests.structure.__main__ import ROOT
from tests.structure.man_pages import man_pages

PAGES = man_pages()
COMMAND_PAGES = {name: PAGES[f"man/pylog-{name}.1"] for name in COMMANDS}
REQUESTS = {"TH", "SH", "SS", "TP", "PP", "EX", "EE", "nh", "ad"}
ESCAPES = {
    r"\-": "-",
    r"\(aq": "'",
    r"\(ga": "`",
    r"\(ha": "^",
    r"\(ti": "~",
    r"\(dq": '"',
    r"\e": "\\",
    r"\&": "",
    r"\fB": "",
    r"\fI": "",
    r"\fR": "",
}


def text_of(page: str) -> str:
    """Return what a reader sees, in one line; an unknown escape is an error."""
    lines = [re.sub(r"^\.SH ", "", line) for line in page.splitlines()]
    text = " ".join(line for line in lines if not line.startswith("."))
    shown = re.sub(r"\\(?:\(..|f.|.)", lambda match: ESCAPES[match[0]], text)
    return " ".join(shown.split())


def words(text: str) -> str:
    return " ".join(text.replace("\b", "").split())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument_and_option_is_on_the_commands_page(name: str) -> None:
    text = text_of(COMMAND_PAGES[name])
    command = load_command(name)
    context = click.Context(command, info_name=name, **program.context_settings)
    for parameter in command.get_params(context):
        if isinstance(parameter, DocumentedArgument):
            assert words(" ".join(parameter.help_record)) in text
        else:
            names, meaning = parameter.get_help_record(context) or ("", "")
            assert parameter.opts[0] in names
            assert words(f"{names} {meaning}") in text


@pytest.mark.parametrize("name", COMMANDS)
def test_all_of_the_help_is_on_the_commands_page(name: str) -> None:
    text = text_of(COMMAND_PAGES[name])
    command = load_command(name)
    *about, status = inspect.cleandoc(command.help or "").split("\n\n")
    for paragraph in about:
        assert words(paragraph) in text
    statuses = re.search(r"EXIT STATUS (.*?)(?= EXAMPLES| SEE ALSO)", text)
    assert statuses is not None
    assert words(status).removeprefix("Exit status: ").replace(",", "").rstrip(".") == (
        statuses[1].replace(",", "")
    )
    for example in getattr(command, "examples", ()):
        assert example in text


def test_the_programs_page_refers_to_that_of_each_command() -> None:
    text = text_of(PAGES["man/pylog.1"])
    for name, line in COMMANDS.items():
        assert f"pylog-{name}(1) {line}" in text
    assert 'bash eval "$(_PYLOG_COMPLETE=bash_source pylog)"' in text
    assert "130 stopped with Ctrl-C" in text


@pytest.mark.parametrize("path", PAGES)
def test_nothing_in_the_text_is_taken_for_a_request(path: str) -> None:
    lines = PAGES[path].splitlines()
    requests = {line[1:].split(" ")[0] for line in lines if line.startswith(".")}
    assert requests <= REQUESTS
    assert [line for line in lines if line.startswith("'")] == []


def test_the_folder_has_these_pages_and_no_others() -> None:
    there = {f"man/{each.name}": each.read_text("utf-8") for each in (ROOT / "man").iterdir()}
    assert there == PAGES, "run: make import-graph, and remove the pages of what is gone"


def test_the_wheel_has_them_where_man_looks() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["shared-data"] == {"man": "share/man/man1"}


@pytest.mark.skipif(shutil.which("man") is None, reason="this system has no man")
@pytest.mark.parametrize("path", PAGES)
def test_man_shows_a_page_without_a_warning(path: str) -> None:
    done = subprocess.run(
        ["man", "--warnings", "-l", ROOT / path],
        capture_output=True,
        text=True,
        env={
            "PATH": "/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
            "MANWIDTH": "80",
            "MAN_KEEP_FORMATTING": "",
        },
        check=True,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines()[0].startswith(path.removeprefix("man/")[:-2].upper())
