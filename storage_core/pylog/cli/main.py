"""The program ``pylog``: finds the command, and turns every error into one line and a status.

A command's module is imported when that command runs, so that ``pylog --help`` costs no more than
typer. A command is a function of the same name as its module, underscores for dashes; it returns
its exit status, see `pylog.cli.exit_status`.
"""

from __future__ import annotations

import gc
import importlib
import itertools
import logging
import os
import sys
import traceback
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core
import typer.main

import pylog
from pylog.cli import exit_status
from pylog.cli.printable import printable
from pylog.errors import LogStorageError

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "pylog"

COMMANDS = {
    "ls": "List topics and partitions: offsets, size, leader epoch.",
    "cat": "Print records, as JSON lines or as text.",
    "create-topic": "Make a topic's partitions, and the directory if need be.",
    "append": "Append records to a topic, from JSON lines or text.",
    "truncate": "Remove a partition's records from an offset on.",
    "delete-records": "Serve no record of a partition below an offset any more.",
}
"""Command and its help in one line. Module of `pylog.cli` and function: see `module_of`."""

# typer brings a click of its own or uses the installed one, depending on its version.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

_SETTINGS: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100},
}


class LazyGroup(typer.core.TyperGroup):
    """A group that knows its commands by name and one line, and imports one to run it."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - whatever typer hands over
        super().__init__(**attributes)
        for name, summary in COMMANDS.items():
            self.add_command(typer.core.TyperCommand(name, help=summary))

    def resolve_command(
        self,
        ctx: Any,  # noqa: ANN401 - of typer's own click or the installed one
        args: list[str],
    ) -> tuple[str | None, Any, list[str]]:
        """Return the command that ``args`` begins with, imported, and the rest of ``args``."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, found if name is None else _load(name), rest


def module_of(name: str) -> str:
    """Return what the module and the function of a command are called."""
    return name.replace("-", "_")


def _load(name: str) -> object:
    module = importlib.import_module(f"pylog.cli.{module_of(name)}")
    alone = typer.Typer(**_SETTINGS)
    alone.command(name)(getattr(module, module_of(name)))
    return typer.main.get_command(alone)


app = typer.Typer(cls=LazyGroup, **_SETTINGS)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{PROGRAM} {pylog.__version__}")
        raise typer.Exit


@app.callback(epilog="Exit status: 0 sound, 1 findings (damage), 2 wrong usage or unreadable path.")
def _program(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show Python's traceback where an error is reported.")
    ] = False,
) -> None:
    """Read and write Apache Kafka's log directories without a broker.

    ls and cat never write to, lock or change a directory. All other commands lock it first, as a
    broker does, and are refused where somebody has it open.
    """


def run(arguments: Sequence[str]) -> int:
    """Run the program and return its exit status; no exception leaves but SystemExit."""
    # Options before the command are the program's own, and all of them are flags.
    warnings = _WarningsOnStderr(logging.WARNING)
    logging.getLogger("pylog").addHandler(warnings)
    is_debug = "--debug" in itertools.takewhile(lambda text: text.startswith("-"), arguments)
    try:
        status = _invoke(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        return exit_status.BROKEN_PIPE
    except KeyboardInterrupt:
        _drop_output()
        return exit_status.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last place where a traceback can be withheld
        if is_debug:
            traceback.print_exc()
        sys.stderr.write(f"{PROGRAM}: error: {_describe(error)}\n")
        return exit_status.status_of(error)
    finally:
        logging.getLogger("pylog").removeHandler(warnings)
    return status


class _WarningsOnStderr(logging.Handler):
    """Writes what the library warns of, one line each."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(f"{PROGRAM}: warning: {printable(record.getMessage())}\n")


def _invoke(arguments: Sequence[str]) -> int:
    if sys.stdout is None:
        msg = "standard output is closed"
        raise ValueError(msg)
    command = typer.main.get_command(app)
    try:
        with command.make_context(PROGRAM, list(arguments) or ["--help"]) as context:
            return int(command.invoke(context))
    except typer.Exit as ended:
        # Without arguments, help is what we print, and not what was asked for.
        return ended.exit_code if arguments else exit_status.UNUSABLE


def _describe(error: Exception) -> str:
    """Return what is wrong, in one line."""
    if isinstance(error, _UsageError):
        where = getattr(getattr(error, "ctx", None), "command_path", PROGRAM)
        text = str(error.format_message()).rstrip(".")  # type: ignore[attr-defined]
        text = f"{text[:1].lower()}{text[1:]} (see '{where} --help')"
    elif isinstance(error, OSError) and error.strerror:
        about = "" if error.filename is None else f": {os.fsdecode(error.filename)}"
        text = f"{error.strerror}{about}"
    elif isinstance(error, (LogStorageError, ValueError, OSError)):
        text = str(error)
    else:
        text = f"this is a bug in pylog, --debug shows where: {type(error).__name__}: {error}"
    notes = getattr(error, "__notes__", ())
    return printable("; ".join([text, *notes]))


def _drop_output() -> None:
    """Let the interpreter's last flush go nowhere: whoever read our output is gone."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, sys.stdout.fileno())
    os.close(sink)


def main() -> None:
    """Run the program on the command line's arguments; the entry point."""
    # Imports and compilation make hundreds of thousands of objects and hardly any garbage: looking
    # for it at the usual pace is a tenth of the start-up.
    gc.set_threshold(100_000, 50, 50)
    sys.exit(run(sys.argv[1:]))
