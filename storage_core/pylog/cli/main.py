"""The program ``pylog``: finds the command, and turns every error into one line and a status.

A command's module is imported when that command runs, so that ``pylog --help`` costs no more than
click. A command has the name of its module, dashes for underscores; its function returns the exit
status, see `pylog.cli.exit_status`.
"""

from __future__ import annotations

import gc
import itertools
import logging
import os
import signal
import sys
import traceback
from typing import TYPE_CHECKING, NamedTuple, cast

import click
from click.shell_completion import FishComplete, add_completion_class, shell_complete

import pylog
from pylog.cli import advice, exit_status
from pylog.errors import LogStorageError
from pylog.lazy_modules import load_name

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "pylog"
COMPLETION_VARIABLE = "_PYLOG_COMPLETE"
"""Set by the shell functions that complete; ``bash_source`` and the like print such a function."""


class CommandGroup(NamedTuple):
    """Commands that help lists together."""

    title: str
    commands: dict[str, str]  # each with its help in one line
    example: str  # to be typed into a shell


GROUPS = (
    CommandGroup(
        "Look",
        {
            "ls": "List topics and partitions: offsets, size, leader epoch.",
            "browse": "Browse topics, partitions and records in the terminal.",
            "cat": "Print records, as JSON lines or as text.",
            "dump": "Print what kafka-dump-log prints: batches, records, index entries, producers.",
            "stats": "Show what logs are made of: sizes, batches, codecs, keys, times.",
            "info": "Show whose disks these are, which versions of Kafka start, and who must run.",
            "topics": "Describe topics: ids, partitions, leaders, configuration.",
            "groups": "List consumer and share groups: offsets, lag, members.",
            "schemas": "List the schemas of a registry, and which topics use them.",
            "transactions": "List open transactions: since when, and whose they are.",
        },
        "pylog cat /mnt/kafka-logs --topic orders --last 10",
    ),
    CommandGroup(
        "Query",
        {
            "search": "Print the records that match: by key, value, header, JSON path or time.",
            "sql": "Query records and the structure of logs in SQL.",
            "export": "Write records to a file: Parquet, Arrow, CSV or JSON lines.",
        },
        "pylog search /mnt/kafka-logs --topic orders --json-path '$.user.id=7'",
    ),
    CommandGroup(
        "Serve",
        {"serve": "Serve log directories to Kafka clients, read-only, without a broker."},
        "pylog serve /mnt/kafka-logs",
    ),
    CommandGroup(
        "Diagnose and repair",
        {
            "doctor": "Find everything that is wrong in log directories, and say what to do.",
            "diff": "Compare logs: replicas, a topic and its copy, or compacted logs.",
            "first-aid": "Write a copy with which a node starts although most voters are gone.",
            "adopt": "Give a stopped node of a cluster the topics that other disks have.",
            "merge": "Write one log of each partition from damaged replicas, batch for batch.",
            "extract": "Copy a part of some logs into a new log directory, at the same offsets.",
        },
        "pylog doctor /mnt/kafka-logs",
    ),
    CommandGroup(
        "Write",
        {
            "create-topic": "Create a topic, and the log directory if it does not exist.",
            "alter-topic": "Change a topic's properties, or add partitions.",
            "append": "Append records to a topic, from JSON lines or text.",
            "truncate": "Remove a partition's records from an offset on.",
            "delete-records": "Stop serving records below an offset.",
            "retention": "Remove segments that topics no longer keep, by age and size.",
            "compact": "Keep the last record of each key, in topics that are compacted.",
            "erase": "Remove the records that match; all others keep their offsets.",
            "mask": "Replace parts of records by rules; all offsets stay.",
            "restore-groups": "Write what groups had committed to another log directory.",
        },
        "pylog append /mnt/kafka-logs records.jsonl --topic orders",
    ),
    CommandGroup(
        "Set up",
        {
            "demo": "Unpack two sample log directories to try pylog on.",
        },
        "pylog demo kafka",
    ),
)
"""All commands, in the order in which help lists them; a command is declared here alone."""

COMMANDS = {name: line for group in GROUPS for name, line in group.commands.items()}
"""Command and its help in one line."""

_OPTIONS_WITHOUT_COMMAND = ("--help", "--version")

_EPILOG = """Exit status: 0 nothing wrong was seen, 1 damage was found, 2 wrong usage or a path that
cannot be read, 130 stopped with Ctrl-C.

\b
To complete commands, options and topics with the tab key, run in the shell:
  bash  eval "$(_PYLOG_COMPLETE=bash_source pylog)"
  zsh   eval "$(_PYLOG_COMPLETE=zsh_source pylog)"
  fish  _PYLOG_COMPLETE=fish_source pylog | source
"""


def load_command(name: str) -> click.Command:
    """Import a command's module and return the command."""
    module_name = name.replace("-", "_")
    return cast("click.Command", load_name(f"pylog.cli.commands.{module_name}", module_name))


class LazyGroup(click.Group):
    """A group that knows its commands by name and one line, and imports one to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, in the order in which help lists them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return what stands for the command in a list: its name and its line."""
        if cmd_name not in COMMANDS:
            return None
        return click.Command(cmd_name, short_help=COMMANDS[cmd_name])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group, its columns as in the others, with its example."""
        width = max(map(len, COMMANDS))
        for group in GROUPS:
            with formatter.section(group.title):
                formatter.write_dl(
                    [(name.ljust(width), line) for name, line in group.commands.items()]
                )
                # As one line, however long it is: it is to be copied.
                formatter.write(f"{' ' * formatter.current_indent}$ {group.example}\n")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that ``args`` begins with, imported, and the rest of ``args``."""
        name = args[0]
        if name not in COMMANDS and not ctx.resilient_parsing:
            hint = advice.about_command(name, [*COMMANDS, *_OPTIONS_WITHOUT_COMMAND])
            ctx.fail(f"No such command {name!r}{hint}")
        return name, load_command(name) if name in COMMANDS else None, args[1:]


def _print_version(
    context: click.Context,
    _: click.Parameter,
    is_asked: bool,  # noqa: FBT001 - as click calls it
) -> None:
    if not is_asked or context.resilient_parsing:
        return
    # The other option may come later on the line, and is not known yet.
    if "--verbose" in (context.obj or ()):
        pylog.show_versions()
    else:
        click.echo(f"{PROGRAM} {pylog.__version__}")
    context.exit()


@click.group(
    cls=LazyGroup,
    epilog=_EPILOG,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
    },
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and exit.",
)
@click.option(
    "--verbose",
    is_flag=True,
    help="With --version: also print the versions of Python and of all libraries, and for which "
    "processors the kernels are that run here.",
)
@click.option("--debug", is_flag=True, help="Show Python's traceback where an error is reported.")
def program(*, verbose: bool, debug: bool) -> None:
    """Read and write Apache Kafka's log directories without a broker.

    pylog COMMAND -h shows examples and the main options, on one screen.

    Commands that only read never write to, lock or change a directory. Those under Write lock it
    first, as a broker does, and refuse to work while another process has it open.
    """
    if verbose:
        raise click.UsageError("--verbose before a command goes with --version alone")


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
    except KeyboardInterrupt as interrupt:
        return _interrupted(interrupt)
    except Exception as error:  # noqa: BLE001 - the last place where a traceback can be withheld
        if isinstance(error.__cause__, KeyboardInterrupt):
            return _interrupted(error.__cause__)  # Python 3.11 wraps one that meets a new class
        if is_debug:
            lines = traceback.format_exc().rstrip("\n").split("\n")
            sys.stderr.writelines(f"{pylog.jobs.printable(line)}\n" for line in lines)
        sys.stderr.write(f"{PROGRAM}: error: {_describe(error, arguments)}\n")
        return exit_status.status_of(error)
    finally:
        logging.getLogger("pylog").removeHandler(warnings)
    return status


def _interrupted(interrupt: KeyboardInterrupt) -> int:
    _drop_output()
    for note in getattr(interrupt, "__notes__", ()):
        sys.stderr.write(f"{PROGRAM}: {pylog.jobs.printable(note)}\n")
    return exit_status.INTERRUPTED


class WholeFishComplete(FishComplete):
    """Gives fish values (``--topic orders,payments``) and descriptions with their commas."""

    # Click's own function cuts everything at a comma.
    source_template = FishComplete.source_template.replace(
        'string split ","', 'string split -m 1 ","'
    )


class _WarningsOnStderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(f"{PROGRAM}: warning: {pylog.jobs.printable(record.getMessage())}\n")


def _invoke(arguments: Sequence[str]) -> int:
    if sys.stdout is None:
        raise ValueError("standard output is closed")
    instruction = os.environ.get(COMPLETION_VARIABLE)
    if instruction:
        return _complete(instruction)
    given = list(arguments) or ["--help"]
    if given[0] == "help":
        given = [*given[1:2], "--help"]
    try:
        with program.make_context(PROGRAM, given, obj=tuple(arguments)) as context:
            return int(program.invoke(context))
    except click.exceptions.Exit as ended:
        # Without arguments, help is what we print, and not what was asked for.
        return ended.exit_code if arguments else exit_status.UNUSABLE


def _complete(instruction: str) -> int:
    """Print a shell's function for completion, or what completes the line that it asks about."""
    add_completion_class(WholeFishComplete)
    if shell_complete(program, {}, PROGRAM, COMPLETION_VARIABLE, instruction):
        known = "bash_source, zsh_source or fish_source"
        raise click.UsageError(f"{COMPLETION_VARIABLE} is {instruction!r}, expected {known}")
    return exit_status.SOUND


def _describe(error: Exception, arguments: Sequence[str]) -> str:
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx is not None else PROGRAM
        text = f"{_describe_usage(error)} (see '{where} --help')"
    elif isinstance(error, OSError) and error.strerror:
        about = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        text = f"{about}{error.strerror}"
    elif isinstance(error, (LogStorageError, ValueError, OSError)):
        text = f"{error}{advice.about_path(error, arguments)}"
    else:
        text = f"this is a bug in pylog, --debug shows where: {type(error).__name__}: {error}"
    notes = getattr(error, "__notes__", ())
    return pylog.jobs.printable("; ".join([text, *notes]))


def _describe_usage(error: click.UsageError) -> str:
    """Return click's text as part of a line; ours where its versions have different ones."""
    if isinstance(error, click.NoSuchOption):
        hint = advice.about_option(error.option_name, error.ctx)
        return f"no such option: {error.option_name}{hint}"
    text = error.format_message().rstrip(".")
    text = text.replace("is not a valid integer range", "is not a whole number")
    return text[:1].lower() + text[1:] + advice.about_usage(text, error.ctx)


def _drop_output() -> None:
    """Let the interpreter's last flush go nowhere: whoever read our output is gone."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, sys.stdout.fileno())
    os.close(sink)


def main() -> None:
    """Run the program on the command line's arguments; see `pylog.cli.entry`."""
    # Imports and compilation make hundreds of thousands of objects and hardly any garbage: looking
    # for it at the usual pace is a tenth of the start-up.
    gc.set_threshold(100_000, 50, 50)
    # NumPy would start a thread for each core, to multiply matrices with: we have none.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    status = run(sys.argv[1:])
    # The interpreter would take all modules apart before it ends, which takes as long as importing
    # Arrow does. Everything is written and closed by now.
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(status)
