"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import pylog
from pylog.cli.command_help import argument
from pylog.cli.parameter_types import DIRECTORY, FILE, NOW, TOPIC, TOPICS
from pylog.cli.storage_options import stored_paths

if TYPE_CHECKING:
    from collections.abc import Callable

LINE_FORMATS = ("jsonl", "text")
"""How records are printed, and read back."""

_SIGNS_OF_A_PATTERN = frozenset("*?[]^$|()+\\")

paths = stored_paths(
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


def one_topic(*, required: bool = True) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return the option for the name of a topic."""
    return click.option(
        "--topic", metavar="T", type=TOPIC, required=required, help="The topic's name."
    )


topic = one_topic()


def topics(help_text: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return the option for the names of the only topics that count; see `names_in`."""
    return click.option(
        "--topic", "topics", metavar="T[,T...]", multiple=True, type=TOPICS, help=help_text
    )


def partitions(
    help_text: str = "Only this partition of each topic; may be given several times.",
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return the option for the only partitions of each topic that count."""
    return click.option(
        "--partition",
        "partitions",
        metavar="N",
        multiple=True,
        type=click.IntRange(min=0),
        help=help_text,
    )


def threads(
    what: str, default: str = "one for each processor"
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return the option for how many threads work; ``what`` is what there are so many of then."""
    return click.option(
        "--threads",
        metavar="N",
        type=click.IntRange(min=1),
        help=f"How many {what}. Default: what the environment variable PYLOG_NUM_THREADS says, "
        f"else {default}. The output does not depend on it.",
    )


def now(what: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return the option for the time that a cleanup goes by; ``what`` is counted to it."""
    return click.option(
        "--now",
        "now_ms",
        metavar="TIME",
        type=NOW,
        help=f"Count {what} to this time: an ISO date or time (2026-11-27, UTC unless it names a "
        "zone), how long before now (-2h), or milliseconds since 1970-01-01 UTC. Default: now.",
    )


def names_in(topics: tuple[str, ...], pattern: str | None) -> list[str]:
    """Return the names that were given, unless a pattern was, too.

    Whoever gives ``--topic`` means some topics: an empty name, as a shell makes of a variable that
    is not set, is an error, and does not stand for all topics.
    """
    if topics and pattern is not None:
        msg = "give either --topic or --pattern, not both"
        raise click.UsageError(msg)
    names = []
    for text in topics:
        given = [name for name in text.split(",") if name]
        if not given:
            msg = f"--topic {text!r} names no topic; without --topic, all topics are meant"
            raise click.UsageError(msg)
        names += given
    for name in names:
        if _SIGNS_OF_A_PATTERN.intersection(name):
            msg = f"{name!r} is not a topic name{_hint_at_patterns()}"
            raise click.UsageError(msg)
    return names


def _hint_at_patterns() -> str:
    """Return what to do instead of giving a pattern as a name."""
    context = click.get_current_context(silent=True)
    if context is not None and "pattern" in context.params:
        return "; --pattern takes a regular expression"
    return ": give whole names, with commas between them"


def one_partition(*, required: bool = True) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return the option for the number of a partition."""
    return click.option(
        "--partition",
        metavar="N",
        type=click.IntRange(min=0),
        required=required,
        help="The partition's number.",
    )


partition = one_partition()

as_json = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the summary as one JSON document, sizes in bytes.",
)


def _properties(
    context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    """Return what ``--config`` gives, by property."""
    properties: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            msg = f"--config {text!r} is not of the form key=value"
            raise click.UsageError(msg, context)
        if name in properties:
            msg = f"--config names {name} twice"
            raise click.UsageError(msg, context)
        properties[name] = value.strip()
    return properties


config = click.option(
    "--config",
    metavar="KEY=VALUE",
    multiple=True,
    callback=_properties,
    help="A topic property, such as cleanup.policy=compact; may be given several times.",
)


def _server_properties(
    context: click.Context, parameter: click.Parameter, path: str | None
) -> pylog.ServerProperties | None:
    return None if path is None else pylog.ServerProperties.read(path)


server_properties = click.option(
    "--server-properties",
    metavar="FILE",
    type=FILE,
    callback=_server_properties,
    help="A broker's server.properties, which configures topics as far as they have no properties "
    "of their own. Default: Kafka's defaults.",
)

dry_run = click.option(
    "--dry-run", is_flag=True, help="Print what would be removed, and change nothing."
)


def cleanup(
    *, all_topics: str, counted: str, once: str
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return the argument and the options of a command that removes what topics no longer keep."""
    parts = (
        writable_directory,
        topics(f"Only these topics; may be given several times. Default: {all_topics}."),
        server_properties,
        config,
        now(counted),
        click.option("--once", is_flag=True, help=once),
        dry_run,
        as_json,
    )

    def add(function: Callable[..., int]) -> Callable[..., int]:
        for part in reversed(parts):
            function = part(function)
        return function

    return add
