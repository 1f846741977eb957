from __future__ import annotations

import inspect
import operator
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click
import pytest

import pylog
from pylog.cli import main as program
from pylog.cli.main import COMMANDS, GROUPS, load_command, run
from pylog.cli.record_options import ChosenRecords, WayOfReading
from pylog.cli.record_tests import TESTS
from pylog.cli.rewriting import rewrite
from pylog.cli.value_options import TypedValues
from pylog.cli.written_schemas import WrittenSchemas

if TYPE_CHECKING:
    from collections.abc import Callable

    from pylog.cli.main import CommandGroup
    from tests.unit.cli.conftest import Outcome


def test_help_lists_the_commands_with_a_line_each(pylog_run: Callable[..., Outcome]) -> None:
    done = pylog_run("--help")
    assert done.status == 0
    text = " ".join(done.output.decode().split())
    for name, summary in COMMANDS.items():
        assert f"{name} {summary}" in text


def test_help_lists_them_in_groups_each_with_an_example(
    pylog_run: Callable[..., Outcome],
) -> None:
    sections = pylog_run("--help").output.decode().split("\n\n")
    found = {text.splitlines()[0]: text.splitlines()[1:] for text in sections}
    groups = {
        "Look:": [
            "ls",
            "browse",
            "cat",
            "dump",
            "stats",
            "info",
            "topics",
            "groups",
            "schemas",
            "transactions",
        ],
        "Query:": ["search", "sql", "export"],
        "Serve:": ["serve"],
        "Diagnose and repair:": ["doctor", "diff", "first-aid", "adopt", "merge", "extract"],
        "Write:": [
            "create-topic",
            "alter-topic",
            "append",
            "truncate",
            "delete-records",
            "retention",
            "compact",
            "erase",
            "mask",
            "restore-groups",
        ],
        "Set up:": ["demo"],
    }
    assert [title for title in found if title in groups] == list(groups)
    for title, names in groups.items():
        *lines, example = found[title]
        heads = [line for line in lines if not line.startswith("   ")]  # the rest is wrapped
        assert [line.split()[0] for line in heads] == names
        assert {
            line.index(COMMANDS[name][:9]) for name, line in zip(names, heads, strict=True)
        } == {18}
        assert example.startswith("  $ pylog ")


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.title)
def test_the_example_of_a_group_is_what_one_of_its_commands_takes(group: CommandGroup) -> None:
    program_name, name, *arguments = shlex.split(group.example)
    assert program_name == "pylog"
    assert name in group.commands
    load_command(name).make_context(name, arguments)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_commands_line_begins_its_own_help(name: str) -> None:
    command = load_command(name)
    assert command.name == name
    assert command.help is not None
    assert command.help.splitlines()[0] == COMMANDS[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, pylog_run: Callable[..., Outcome]) -> None:
    done = pylog_run(name, "--help")
    assert done.status == 0
    assert f"Usage: pylog {name} [OPTIONS]" in done.output.decode()
    assert "Exit status" in done.output.decode()


def test_help_of_cat_names_units_and_inclusivity(pylog_run: Callable[..., Outcome]) -> None:
    text = " ".join(pylog_run("cat", "--help").output.decode().split())
    for phrase in (
        "First offset to read (inclusive)",
        "Offset before which to stop (exclusive)",
        "whose timestamp is TIME or later (inclusive)",
        "whose timestamp is TIME or later (exclusive)",
        "milliseconds since 1970-01-01 UTC",
        r"A null is \N",
    ):
        assert phrase in text


def test_the_version_is_the_packages(pylog_run: Callable[..., Outcome]) -> None:
    done = pylog_run("--version")
    assert (done.status, done.output) == (0, f"pylog {pylog.__version__}\n".encode())


def test_python_runs_the_package_as_the_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pylog", "--version"], check=False, capture_output=True
    )
    assert (done.returncode, done.stdout.decode()) == (0, f"pylog {pylog.__version__}\n")


def test_without_a_command_help_is_printed_and_the_usage_is_wrong(
    pylog_run: Callable[..., Outcome],
) -> None:
    done = pylog_run()
    assert done.status == 2
    assert b"\nLook:\n" in done.output


def test_a_mode_is_shown_in_one_spelling_and_taken_in_any() -> None:
    options = {
        name: option
        for name in COMMANDS
        for option in load_command(name).params
        if option.name == "mode" and option.opts == ["--mode"]
    }
    assert {"cat", "export", "serve", "sql"} <= options.keys()
    for name, option in options.items():
        context = click.Context(load_command(name))
        for given in ("failfast", "FailFast", "FAILFAST"):
            assert option.type_cast_value(context, given) == "FAILFAST"
        assert option.make_metavar(context).startswith("[FAILFAST|DROPMALFORMED")


def broken(error: BaseException) -> Callable[..., Any]:
    def invoke(arguments: object) -> int:
        raise error

    return invoke


def test_an_error_is_one_line(
    monkeypatch: pytest.MonkeyPatch, pylog_run: Callable[..., Outcome]
) -> None:
    error = PermissionError(13, "Permission denied", "/logs/new\nline")
    monkeypatch.setattr(program, "_invoke", broken(error))
    done = pylog_run("ls", "/logs")
    assert done.status == 2
    assert done.error == "pylog: error: /logs/new\\nline: Permission denied\n"


def test_debug_shows_the_traceback(
    monkeypatch: pytest.MonkeyPatch, pylog_run: Callable[..., Outcome]
) -> None:
    monkeypatch.setattr(program, "_invoke", broken(ValueError("wrong")))
    done = pylog_run("--debug", "ls", ".")
    assert "Traceback (most recent call last)" in done.error
    assert done.error.endswith("pylog: error: wrong\n")
    assert "Traceback" not in pylog_run("ls", "--debug").error  # not the program's own option


def test_notes_on_an_error_go_into_its_line(
    monkeypatch: pytest.MonkeyPatch, pylog_run: Callable[..., Outcome]
) -> None:
    error = ValueError("wrong")
    error.add_note("in line 3")
    monkeypatch.setattr(program, "_invoke", broken(error))
    assert pylog_run("ls", ".").error == "pylog: error: wrong; in line 3\n"


def test_a_bug_is_called_a_bug(
    monkeypatch: pytest.MonkeyPatch, pylog_run: Callable[..., Outcome]
) -> None:
    monkeypatch.setattr(program, "_invoke", broken(KeyError("x")))
    done = pylog_run("ls", ".")
    assert done.status == 2
    assert (
        done.error == "pylog: error: this is a bug in pylog, --debug shows where: KeyError: 'x'\n"
    )


def test_ctrl_c_while_a_class_is_made_is_ctrl_c(
    monkeypatch: pytest.MonkeyPatch, pylog_run: Callable[..., Outcome]
) -> None:
    error = RuntimeError("Error calling __set_name__ on 'Field' instance")
    error.__cause__ = KeyboardInterrupt()
    monkeypatch.setattr(program, "_invoke", broken(error))
    done = pylog_run("ls", "/logs")
    assert (done.status, done.output, done.error) == (130, b"", "")


def test_closed_output_is_reported(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:  # noqa: ANN401
    monkeypatch.setattr(sys, "stdout", None)
    assert run(["--version"]) == 2
    assert capfd.readouterr().err == "pylog: error: standard output is closed\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_options_that_a_command_passes_on_are_parameters_of_the_library(name: str) -> None:
    command = load_command(name)
    assert command.callback is not None
    callback: Any = inspect.unwrap(command.callback)
    kinds = (ChosenRecords, WayOfReading, TypedValues, WrittenSchemas)
    accepted = {each.name for kind in kinds for each in fields(kind)}
    parameters = set(inspect.signature(callback).parameters)
    accepted |= parameters | ({*TESTS} if "where" in parameters else set())
    module = inspect.getsource(sys.modules[callback.__module__])
    for function in re.findall(r"\bpylog\.([\w.]+)(?:\(|, directory)", module):
        called = inspect.unwrap(operator.attrgetter(function)(pylog))
        accepted |= set(inspect.signature(called).parameters)
    if "takes_records" in module:
        accepted |= set(inspect.signature(rewrite).parameters)
    given = {each.name or "" for each in command.params if each.expose_value}
    assert {each for each in given - accepted if not each.endswith("_decoder")} == set()


def test_a_traceback_has_no_escape_sequence(
    monkeypatch: pytest.MonkeyPatch, pylog_run: Callable[..., Outcome]
) -> None:
    monkeypatch.setattr(program, "_invoke", broken(ValueError("a\x1b[2Jb")))
    done = pylog_run("--debug", "ls", ".")
    assert "\nValueError: a\\x1b[2Jb\n" in done.error
    assert "\x1b" not in done.error
