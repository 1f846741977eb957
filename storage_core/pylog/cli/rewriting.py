"""What commands do that change records of a log directory: ask, do it, tell what is left."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

import pylog
from pylog.cli import exit_status, options, progress
from pylog.cli.output import tell, write_summary
from pylog.cli.record_tests import filtered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pylog.cli.options import Decorator
    from pylog.results import PlaceOfRecords, RewrittenRecords

_SHOWN = 20


def takes_records(what_they_have: str, done_to_them: str) -> Decorator:
    """Give a command the options for which records, where and how; `rewrite` takes their values.

    ``what_they_have`` is said of the files that are looked for elsewhere, and ``done_to_them`` of
    records, such as "erased".
    """
    return options.together(
        options.topics(
            "Only these topics; may be given several times. Default: all but internal ones."
        ),
        options.pattern(
            "; ^ and $ stand for the name's start and end. Internal topics are left out."
        ),
        options.partitions(),
        filtered,
        click.option(
            "--look-in",
            metavar="DIR",
            type=options.DIRECTORY,
            multiple=True,
            help=f"Name the files of this log directory, too, that have {what_they_have}; it is "
            "not changed.",
        ),
        options.server_properties,
        options.recover_as_broker,
        options.dry_run,
        options.flag("--yes", help=f"Do not ask in a terminal before records are {done_to_them}."),
        options.as_json,
    )


def rewrite(  # noqa: PLR0913 - an argument for each option
    call: Callable[..., RewrittenRecords],
    done_to_them: str,
    *,
    topics: tuple[str, ...],
    pattern: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **of_library: Any,  # noqa: ANN401 - options that the function has, too
) -> int:
    """Call a function of the library, after asking in a terminal; return the exit status.

    ``done_to_them`` says what is done to records, such as "erased".
    """
    names = options.names_in(topics, pattern)
    call = partial(call, topics=names, pattern=pattern, **of_library)
    try:
        if dry_run or (not yes and progress.is_asked()):
            done = call(dry_run=True)
            records = sum(each.records for each in done.partitions)
            if not dry_run and records and not _is_agreed(records, done, done_to_them):
                return exit_status.UNUSABLE
        if not dry_run:
            with progress.bar_or_lines("looking for records") as bar:
                done = call(progress=bar.show)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    write_summary(pylog.jobs.document_of(done), _lines(done, done_to_them), as_json=as_json)
    tell("note", *done.notes)
    tell("warning", *map(_remaining_line, done.remaining[:_SHOWN]))
    return exit_status.FINDINGS if done.remaining else exit_status.SOUND


def _is_agreed(records: int, plan: RewrittenRecords, done_to_them: str) -> bool:
    count = pylog.jobs.counted(records, "record")
    places = ", ".join(f"{each.topic}-{each.partition}" for each in plan.partitions[:_SHOWN])
    if click.confirm(f"{count} of {places} will be {done_to_them}. Go on?", err=True):
        return True
    click.echo("pylog: nothing was changed", err=True)
    return False


def _lines(done: RewrittenRecords, done_to_them: str) -> Iterator[str]:
    would = "" if done.is_written else "would be "
    for each in done.partitions[:_SHOWN]:
        records = pylog.jobs.counted(each.records, "record")
        segments = pylog.jobs.counted(each.segments, "segment")
        line = f"{each.topic}-{each.partition}: {records} {would}{done_to_them}, "
        line += f"{segments} written anew"
        if done.is_written:
            sizes = map(pylog.jobs.format_bytes, (each.before_bytes, each.after_bytes))
            line += "; {} before, {} now".format(*sizes)
        yield line
    more = len(done.partitions) - _SHOWN
    if more > 0:
        yield f"and {pylog.jobs.counted(more, 'more partition')}"
    if not done.partitions:
        yield "no such record was found"
    if not done.is_written:
        yield "nothing was changed (--dry-run)"


def _remaining_line(each: PlaceOfRecords) -> str:
    if each.problem is not None:
        return f"{each.path} could not be looked through: {each.problem}"
    return f"{each.path} has {pylog.jobs.counted(each.records, 'such record')}"
