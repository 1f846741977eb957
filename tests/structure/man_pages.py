"""The manual pages: one of the program and one of each command, from the commands' own help.

click-man was looked at: it leaves out arguments and examples, does not find commands that are
imported late, and does not escape backslashes, of which our help has some.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import TYPE_CHECKING

import click

import pylog
from pylog.cli.main import COMMANDS, GROUPS, PROGRAM, load_command, program
from pylog.cli.options import DocumentedArgument, DocumentedCommand

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FOLDER = "man"
"""What ``pyproject.toml`` has in the wheel as ``share/man/man1``."""

_SECTION = "1"
_WIDTH = 78
# What troff takes for something else where it stands in text.
_SIGNS = str.maketrans(
    {
        "\\": r"\e",
        "-": r"\-",
        "'": r"\(aq",
        "`": r"\(ga",
        "^": r"\(ha",
        "~": r"\(ti",
        '"': r"\(dq",
    }
)
_SWITCHES = re.compile(r"-{1,2}[\w-]+(?:, -{1,2}[\w-]+)*")
_STATUS = "Exit status: "
_VERBATIM = "\b\n"  # how click is told not to fill a paragraph


def man_pages() -> dict[str, str]:
    """Return the source of each page by its path."""
    whole = click.Context(program, info_name=PROGRAM, **program.context_settings)
    pages = {_path(PROGRAM): _program_page(whole)}
    for name in COMMANDS:
        context = click.Context(load_command(name), parent=whole, info_name=name)
        pages[_path(f"{PROGRAM}-{name}")] = _command_page(name, context)
    return pages


def _path(title: str) -> str:
    return f"{FOLDER}/{title}.{_SECTION}"


def _program_page(context: click.Context) -> str:
    summary = inspect.cleandoc(program.help or "").partition(".")[0]
    about = [
        *_head(PROGRAM, f"{summary[0].lower()}{summary[1:]}"),
        *_synopsis(context),
        *_description(program.help or ""),
        *_options(context),
        ".SH COMMANDS",
    ]
    for group in GROUPS:
        about += [f".SS {group.title}"]
        for name, line in group.commands.items():
            about += [".TP", _reference(f"{PROGRAM}-{name}"), *_filled(line)]
        about += [".PP", *_verbatim([group.example])]
    status, completion = (program.epilog or "").strip().split("\n\n", 1)
    about += _exit_status(status)
    first, *commands = completion.removeprefix(_VERBATIM).splitlines()
    about += [".SH COMPLETION", *_filled(first), *_verbatim(map(str.strip, commands))]
    return _text(about)


def _command_page(name: str, context: click.Context) -> str:
    command = context.command
    summary = COMMANDS[name].rstrip(".")
    lines = [
        *_head(f"{PROGRAM}-{name}", f"{summary[0].lower()}{summary[1:]}"),
        *_synopsis(context),
        *_description(command.help or ""),
        *_arguments(command),
        *_options(context),
        *_exit_status(_status_of(command.help or "")),
    ]
    if isinstance(command, DocumentedCommand) and command.examples:
        lines += [".SH EXAMPLES", *_verbatim(command.examples)]
    return _text([*lines, ".SH SEE ALSO", _reference(PROGRAM)])


def _head(title: str, summary: str) -> Iterator[str]:
    """Yield title and name; no date, since the same sources make the same page on each day."""
    version = f"{PROGRAM} {pylog.__version__}"
    yield f'.TH {_escaped(title.upper())} {_SECTION} "" "{version}" "{PROGRAM} manual"'
    yield from (".nh", ".ad l")  # names and options stay whole, to be found and copied
    yield from (".SH NAME", rf"{_escaped(title)} \- {_escaped(summary)}")


def _synopsis(context: click.Context) -> Iterator[str]:
    pieces = " ".join(context.command.collect_usage_pieces(context))
    yield from (".SH SYNOPSIS", rf"\fB{_escaped(context.command_path)}\fR {_escaped(pieces)}")


def _description(help_text: str) -> Iterator[str]:
    yield ".SH DESCRIPTION"
    between = ""
    for paragraph in _paragraphs(help_text):
        if not paragraph.startswith(_STATUS):
            yield from [between] * bool(between)
            yield from _filled(paragraph)
            between = ".PP"


def _arguments(command: click.Command) -> Iterator[str]:
    records = [each.help_record for each in command.params if isinstance(each, DocumentedArgument)]
    if records:
        yield ".SH ARGUMENTS"
    for name, meaning in records:
        yield from (".TP", rf"\fI{_escaped(name)}\fR", *_filled(meaning))


def _options(context: click.Context) -> Iterator[str]:
    yield ".SH OPTIONS"
    for parameter in context.command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option):
            names, meaning = record
            switches = _SWITCHES.match(names)
            assert switches is not None, names
            value = names[switches.end() :].strip()
            yield ".TP"
            yield rf"\fB{_escaped(switches[0])}\fR" + (
                rf" \fI{_escaped(value)}\fR" if value else ""
            )
            yield from _filled(meaning)


def _exit_status(text: str) -> Iterator[str]:
    """Yield a section with an entry for each status of ``Exit status: 0 well, 1 not so well.``."""
    statuses = " ".join(text.split()).removeprefix(_STATUS).rstrip(".")
    _, *parts = re.split(r"(?:^|, )(\d+) ", statuses)
    yield ".SH EXIT STATUS"
    for status, meaning in zip(parts[::2], parts[1::2], strict=True):
        yield from (".TP", rf"\fB{status}\fR", *_filled(meaning))


def _status_of(help_text: str) -> str:
    [text] = [each for each in _paragraphs(help_text) if each.startswith(_STATUS)]
    return text


def _paragraphs(text: str) -> list[str]:
    return inspect.cleandoc(text).split("\n\n")


def _filled(text: str) -> list[str]:
    """Return running text as lines, none of which troff takes for a request."""
    lines = textwrap.wrap(
        _escaped(" ".join(text.split())), _WIDTH, break_long_words=False, break_on_hyphens=False
    )
    return [rf"\&{line}" if line.startswith(".") else line for line in lines]


def _verbatim(lines: Iterable[str]) -> Iterator[str]:
    yield ".EX"
    for line in lines:
        yield _escaped(line)
    yield ".EE"


def _reference(title: str) -> str:
    return rf"\fB{_escaped(title)}\fR({_SECTION})"


def _escaped(text: str) -> str:
    return text.translate(_SIGNS)


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
