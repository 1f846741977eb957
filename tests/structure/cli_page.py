"""The page about the command line: the help of every command, statuses, the environment."""

from __future__ import annotations

from pathlib import Path

import click

from pylog.cli.main import COMMANDS, PROGRAM, load_command, program
from pylog.cli.options import NAMES_SHARED, SHARED, HelpContext, HelpFormatter

PAGE = "docs/cli.md"

_WIDTH = 98  # what click makes of a terminal of 100 columns or more

_HEAD = """\
# Commands

The help of all commands. [The command line](operators.md) shows what the commands are for. At the
end are [exit statuses of commands](#exit-statuses-of-commands), [of jobs](#exit-statuses-of-jobs)
and [environment variables](#environment-variables).

"""

_TAIL = Path(__file__).with_name("cli_page_end.md")


def command_page() -> str:
    """Return the page: the program's help, then each command's, in the order of the help."""
    whole = click.Context(
        program, info_name=PROGRAM, terminal_width=_WIDTH, **program.context_settings
    )
    links = "".join(
        f"- [`{PROGRAM} {name}`](#{PROGRAM}-{name}): {COMMANDS[name]}\n" for name in COMMANDS
    )
    sections = [_section(PROGRAM, program.get_help(whole))]
    shared: dict[str, tuple[str, str]] = {}
    for name in COMMANDS:
        command = load_command(name)
        context = HelpContext(command, parent=whole, info_name=name, terminal_width=_WIDTH)
        context.meta[NAMES_SHARED] = True
        sections.append(_section(f"{PROGRAM} {name}", command.get_help(context)))
        for each in command.params:
            if each.opts[0] in SHARED and (record := each.get_help_record(context)):
                shared.setdefault(each.opts[0], record)
    formatter = HelpFormatter(width=_WIDTH)
    formatter.write_dl([shared[name] for name in SHARED])
    sections.insert(1, _section("Options of many commands", formatter.getvalue().rstrip()))
    return f"{_HEAD}{links}\n" + "\n".join(sections) + "\n" + _TAIL.read_text("utf-8")


def _section(title: str, text: str) -> str:
    lines = "\n".join(line.rstrip() for line in text.splitlines())
    return f"## {title}\n\n```text\n{lines}\n```\n"
