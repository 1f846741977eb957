"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pylog.cli.command_help import argument
from pylog.cli.parameter_types import DIRECTORY, TOPIC, TOPICS

if TYPE_CHECKING:
    from collections.abc import Callable

LINE_FORMATS = ("jsonl", "text")
"""How records are printed, and read back."""

_SIGNS_OF_A_PATTERN = frozenset("*?[]^$|()+\\")

VALUE_FORMATS = ("base64", "text")
"""How JSON lines have keys, values and headers' values."""

paths = argument(
    "paths",
    metavar="PATH",
    nargs=-1,
    required=True,
    type=DIRECTORY,
    help_text="Log directories (entries of a broker's log.dirs) or <topic>-<partition> "
    "directories.",
)

writable_directory = argument(
    "directory",
    metavar="DIR",
    type=DIRECTORY,
    help_text="A log directory (entry of a broker's log.dirs), local and not open in a broker.",
)

topic = click.option("--topic", metavar="T", type=TOPIC, required=True, help="The topic's name.")


def topics(help_text: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return the option for the names of the only topics that count; see `names_in`."""
    return click.option(
        "--topic", "topics", metavar="T[,T...]", multiple=True, type=TOPICS, help=help_text
    )


def names_in(topics: tuple[str, ...], pattern: str | None) -> list[str]:
    """Return the names that were given, unless a pattern was, too."""
    if topics and pattern is not None:
        msg = "give either --topic or --pattern, not both"
        raise click.UsageError(msg)
    names = [name for text in topics for name in text.split(",") if name]
    for name in names:
        if _SIGNS_OF_A_PATTERN.intersection(name):
            msg = f"{name!r} is not a topic name; --pattern takes a regular expression"
            raise click.UsageError(msg)
    return names


partition = click.option(
    "--partition",
    metavar="N",
    type=click.IntRange(min=0),
    required=True,
    help="The partition's number.",
)

as_json = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the summary as one JSON document, sizes in bytes.",
)

dry_run = click.option(
    "--dry-run", is_flag=True, help="Print what would be removed, and change nothing."
)
