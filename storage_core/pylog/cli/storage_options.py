"""The argument for paths that are read, with the option that says how their stores are reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import pylog
from pylog.cli.command_help import argument

if TYPE_CHECKING:
    from collections.abc import Callable

_META = "pylog.storage_options"
_HELP = (
    "A parameter of the store that PATH lies in, such as region=eu-central-1; may be given several "
    "times. Credentials are better in the environment, since other users of this machine see "
    "command lines."
)


def stored_paths(
    *,
    metavar: str = "PATH",
    help_text: str,
    type: click.ParamType,  # type: ignore[type-arg]  # noqa: A002 - click's name
    required: bool = True,
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return the decorator that gives a command the argument ``paths``, and ``--storage-option``.

    The command gets paths that have the parameters with them, and does not know of the option.
    """
    takes_paths = argument(
        "paths",
        metavar=metavar,
        nargs=-1,
        required=required,
        type=type,
        help_text=help_text,
        callback=_located,
    )
    takes_parameters = click.option(
        "--storage-option",
        metavar="KEY=VALUE",
        multiple=True,
        is_eager=True,  # so that it is known when paths are looked at
        expose_value=False,
        callback=_parsed,
        help=_HELP,
    )
    return lambda function: takes_paths(takes_parameters(function))


def _parsed(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> None:
    """Keep the parameters for `_located`. No message repeats a text, which may be a secret."""
    parameters: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            msg = "a --storage-option is not of the form KEY=VALUE"
            raise click.UsageError(msg, context)
        if name in parameters:
            msg = f"--storage-option names {name} twice"
            raise click.UsageError(msg, context)
        parameters[name] = value
    context.meta[_META] = parameters


def _located(
    context: click.Context, parameter: click.Parameter, paths: tuple[str, ...]
) -> tuple[str, ...]:
    parameters = context.meta.get(_META)
    if not parameters:
        return paths
    return tuple(pylog.location(path, storage_options=parameters) for path in paths)
