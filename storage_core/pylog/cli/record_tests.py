"""Options that test records by key, value, headers and time, for all commands that choose some."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import click

import pylog
from pylog.cli import options
from pylog.cli.record_options import of_times

if TYPE_CHECKING:
    from pylog.cli.options import CommandFunction

record_tests = options.together(
    click.option(
        "--key",
        metavar="TEXT",
        multiple=True,
        help="The key is exactly this text (in UTF-8); given several times, one of them.",
    ),
    click.option(
        "--key-contains",
        metavar="TEXT",
        multiple=True,
        help="The key has this text (in UTF-8) in it; given several times, all.",
    ),
    click.option(
        "--key-regex",
        metavar="REGEX",
        multiple=True,
        help="This regular expression (of Python) is found in the key, read as UTF-8; given "
        "several times, all.",
    ),
    click.option(
        "--value-contains",
        metavar="TEXT",
        multiple=True,
        help="The value has this text (in UTF-8) in it; given several times, all.",
    ),
    click.option(
        "--value-regex",
        metavar="REGEX",
        multiple=True,
        help="This regular expression (of Python) is found in the value, read as UTF-8; "
        "given several times, all.",
    ),
    click.option(
        "--header",
        metavar="NAME[=VALUE]",
        multiple=True,
        help="The record has a header of this name, or one of this name and exactly this value (in "
        "UTF-8); given several times, all.",
    ),
    click.option(
        "--json-path",
        metavar="PATH[=VALUE]",
        multiple=True,
        help="The value is JSON and has something at this path, or has exactly this there; other "
        "comparisons are != < <= > >=. Given several times, all. "
        "pylog search --help tells what a PATH is.",
    ),
    options.flag("--tombstones", help="Only records whose value is null."),
    options.flag(
        "-i",
        "--ignore-case",
        help="Find upper and lower case alike, with --key-contains, --key-regex, --value-contains "
        "and --value-regex.",
    ),
    options.own_timestamps,
)
"""Gives a command's function the arguments of `TESTS`."""

TESTS = (
    *("key", "key_contains", "key_regex", "value_contains", "value_regex", "header", "json_path"),
    *("tombstones", "ignore_case", "min_timestamp", "max_timestamp"),
)
"""What decides which records pass, by the names of the arguments."""


def filtered(function: CommandFunction) -> CommandFunction:
    """Give a command these options, and its function the argument ``where``: their filter."""

    @functools.wraps(function)
    def with_filter(**parameters: Any) -> int:  # noqa: ANN401 - click's own
        where = _filter_of(**{name: parameters.pop(name) for name in TESTS})
        return function(where=where, **parameters)

    return record_tests(with_filter)


def _filter_of(
    *,
    min_timestamp: int | None,
    max_timestamp: int | None,
    **tests: Any,  # noqa: ANN401 - of `RecordFilter.matching`
) -> pylog.RecordFilter | None:
    """Return the filter for records that pass all tests; None if none was given."""
    of_time = of_times(min_timestamp, max_timestamp)
    if not any(value for name, value in tests.items() if name != "ignore_case"):
        return of_time
    tests["key"] = tests["key"] or None
    try:
        where = pylog.RecordFilter.matching(**tests)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    return where if of_time is None else where & of_time
