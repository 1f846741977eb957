"""``pylog search``: the records that match."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import signal
import sys
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, Self

import click

import pylog
from pylog.cli import exit_status, options, progress
from pylog.cli.options import command
from pylog.cli.output import (
    RecordOutput,
    line_format,
    lines_of_format,
    tell,
    write_json,
)
from pylog.cli.record_options import chosen_records, way_of_reading
from pylog.cli.record_tests import record_tests
from pylog.cli.record_view import RecordView
from pylog.cli.style import OutputTraits
from pylog.cli.value_options import tell_counts, typed_values
from pylog.text.words import counted, format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

    from pylog.cli.progress import ProgressBar
    from pylog.cli.record_options import ChosenRecords, WayOfReading
    from pylog.cli.value_options import TypedValues
    from pylog.results import SearchSummary


@command(
    "search",
    "pylog search /mnt/kafka-logs 'payment failed'",
    "pylog search /mnt/kafka-logs --topic orders --key user-7 --json",
    "pylog search /mnt/kafka-logs --json-path '$.user.id=7' --start-timestamp -2h --limit 10",
    "pylog search /mnt/kafka-logs --json-path '$.amount>=100' --json-path '$.currency!=EUR'",
    'pylog search /mnt/kafka-logs -t orders --value-format auto --where "value.amount >= 100"',
    "pylog search /mnt/kafka-logs --topic users --tombstones --key-contains user-",
    "pylog search /mnt/kafka-logs --value-contains timeout -i --not --count",
)
@chosen_records
@record_tests
@click.option(
    "--where",
    metavar="CONDITION",
    help="The fields of decoded values or keys pass this condition, as SQL has it: "
    "\"value.user.id = 7 AND value.status IN ('sent', 'returned')\". For --value-format and "
    "--key-format; see above.",
)
@typed_values
@click.option(
    "--partitioner",
    metavar="NAME",
    type=click.Choice(pylog.KEY_PARTITIONER_NAMES),
    help="Search only the partition where this partitioner puts the --key, of as many partitions "
    "as the topic has today. default: of Kafka's own clients, murmur2. integer_key: the key, a "
    "decimal number, modulo the number of partitions. consistent_random (librdkafka's default), "
    "consistent, murmur2_random, murmur2, fnv1a_random, fnv1a: librdkafka's.",
)
@options.flag(
    "--not",
    "invert",
    help="Print the records that do not match instead. --min-timestamp and --max-timestamp still "
    "apply.",
)
@options.trust_batch_timestamps("For --min-timestamp")
@options.number(
    "--limit", "-c", at_least=1, help="Stop at the N-th match, and read nothing after it."
)
@options.flag("--count", "only_count", help="Print only how many records match.")
@options.color
@line_format
@options.json_output(
    "Print matches as JSON lines, as cat does, and the summary as a last line, "
    '{"summary": {...}}; with --count, only the summary.'
)
@way_of_reading
def search(
    chosen: ChosenRecords,
    typed: TypedValues,
    way: WayOfReading,
    *,
    where: str | None,
    limit: int | None,
    only_count: bool,
    format_text: str | None,
    as_json: bool,
    **tests: Any,  # noqa: ANN401 - options that `pylog.search` has, too
) -> int:
    r"""Print the records that match: by key, value, header, JSON path or time.

    A record matches if it passes every test that is given: --key, --key-contains, --key-regex,
    --value-contains, --value-regex, --header, --json-path, --tombstones, --where, --min-timestamp,
    --max-timestamp. TEXT after PATH is --value-contains TEXT. With --key, the partition where
    Kafka's default partitioner puts the key is searched first. Matches are printed as they are
    found, partition by partition, in offset order. Standard error names damaged ranges, which could
    not be searched; its last lines say how much was searched and how much was not.

    A match is printed as topic and partition, offset, timestamp, key and value with tabs between
    them; keys and values are printed as by cat --format text. In a terminal, matches are lines as
    in cat --format pretty, in columns, and the text that was found is highlighted.

    A JSON path is $ for the whole value, then .name, ['any name'], [0], [-1] or [*] for the way
    into it: $.user.id, $.items[*].sku. =VALUE is JSON ($.user.id=7, $.ok=true, $.id="7"), or else a
    string as it stands there ($.name=Ann). Numbers are compared by value. != is any other value
    there, and < <= > >= compare numbers with numbers, and strings with strings by their characters:
    $.amount>=100, $.at<2026-11-01. Quote it for the shell.

    With --value-format or --key-format, values or keys are decoded by their schemas, and printed as
    JSON; the other tests are of their bytes. --where tests their fields: value.user.id,
    value."odd name", or value itself where it has no fields. Comparisons are = != < <= > >=,
    IS [NOT] NULL, [NOT] IN (...) and [NOT] BETWEEN ... AND ..., combined by AND, OR, NOT and
    parentheses. Constants are numbers, TRUE, FALSE, and text in single quotes, as are dates and
    times in ISO 8601. Null passes IS NULL alone. A record that cannot be decoded is left out and
    named on standard error.

    TIME is an ISO date or time (2026-11-01, 2026-11-01T12:30:00Z; UTC unless it names a zone), how
    long before now (-30s, -15m, -2h, -7d, -4w), or milliseconds since 1970-01-01 UTC.

    One thread evaluates a regular expression. If it backtracks, and takes more than 60 s of
    processor time for some megabytes, the search ends with status 2.

    Exit status: 0 the search is done, whether something matched or not, 1 something is damaged or
    cannot be decoded, and was not searched, 2 wrong usage or a path that cannot be read.
    """
    chosen, text, json_paths = _plain_text(chosen)
    tests["value_contains"] = (*tests["value_contains"], *text)
    tests["json_path"] = (*tests["json_path"], *json_paths)
    if format_text is not None and (as_json or only_count):
        raise click.UsageError("-f is neither for --json nor for --count")
    tests["key"] = tests["key"] or None
    if tests["partitioner"] is not None and (tests["key"] is None or chosen.partitions):
        msg = "--partitioner says which partition a --key is in: give --key, and no --partition"
        raise click.UsageError(msg)
    if tests["partitioner"] is not None and tests["invert"]:
        msg = "--partitioner says which partition a --key is in, and --not looks for others"
        raise click.UsageError(msg)
    _check_typed(typed, tests, where)
    ways = {"ignore_case", "invert", "trust_batch_timestamps"}
    if where is None and all(
        each in (None, (), False) for name, each in tests.items() if name not in ways
    ):
        raise click.UsageError(
            "give what to search for: TEXT after PATH, or --key, --value-contains, --value-regex, "
            "--key-contains, --key-regex, --header, --json-path, --tombstones, --where, "
            "--min-timestamp or --max-timestamp; pylog cat prints all records"
        )
    lines = _format(format_text, tests, typed, only_count=only_count, as_json=as_json)
    patterns = [name for name in ("value_regex", "key_regex") if tests[name]]
    with (
        progress.ProgressBar("searching", None) as bar,
        StalledPattern(bar if progress.is_seen() else None, patterns) as stalled,
    ):
        found = pylog.search(
            chosen.directory(),
            **chosen.arguments(),
            **way.arguments() | ({"threads": 1} if patterns else {}),
            **tests,
            **typed.arguments(chosen.paths, topics="each"),
            where=where,
            columns=lines.columns,
            timestamp_unit="ms",
            limit=limit,
            progress=stalled.show if patterns or progress.is_seen() else None,
        )
        output = RecordOutput(lines)
        for batch in found:
            stalled.note_progress()
            if not only_count:
                with bar.hidden():
                    output.write(batch)
                    output.flush()
    if where is not None and found.without_schema:
        names = ", ".join(sorted(found.without_schema))
        tell("note", f"no schema, so that --where finds nothing in them: {names}")
    _print_summary(found.summary, only_count=only_count, as_json=as_json)
    if text and not found.summary.matches and not found.summary.unreadable:
        tell("note", _where_else(text[0]))
    # Each has been named on stderr when it was found.
    has_findings = tell_counts(found.summary.undecodable) or found.summary.unreadable
    return exit_status.FINDINGS if has_findings else exit_status.SOUND


def _check_typed(typed: TypedValues, tests: dict[str, Any], where: str | None) -> None:
    """Refuse tests that nothing would pass."""
    if where is not None and not typed.columns:
        msg = "--where is for fields of decoded values: give --value-format auto, or --key-format"
        raise click.UsageError(msg)
    if tests["key"] and typed.key_format is not None:
        msg = "--key compares keys as they lie in the log: use --where, or leave --key-format out"
        raise click.UsageError(msg)
    if tests["json_path"] and typed.value_format is not None:
        msg = (
            "--json-path reads values that are JSON text: use --where, or leave --value-format out"
        )
        raise click.UsageError(msg)


_OF_A_PATH = re.compile(r"/|^[\w.-]+:\d+$|^\w+:/", re.ASCII)  # also a broker's address, a URI
_COMPARISON = re.compile(
    r"""([A-Za-z_][\w.]*) ?={1,2} ?['"]?([^='"]+)['"]?|([A-Za-z_][\w.]*):([^=].*)"""
)


def _plain_text(
    chosen: ChosenRecords,
) -> tuple[ChosenRecords, tuple[str, ...], tuple[str, ...]]:
    """Take a PATH that does not exist beside one that does for what to search for.

    That is text in values or, if it begins with $, a JSON path.
    """
    is_text = [
        path.startswith("$") or (not _OF_A_PATH.search(path) and not os.path.lexists(path))
        for path in chosen.paths
    ]
    if all(is_text) or not any(is_text):
        return chosen, (), ()
    words = tuple(itertools.compress(chosen.paths, is_text))
    for each in words:
        way = "--json-path" if each.startswith("$") else "--value-contains"
        tell("note", f"searching values for {each!r}, as {way} does")
    paths = tuple(path for path in chosen.paths if path not in words)
    json_paths = tuple(each for each in words if each.startswith("$"))
    text = tuple(each for each in words if not each.startswith("$"))
    return replace(chosen, paths=paths), text, json_paths


def _where_else(text: str) -> str:
    """Return how to look elsewhere for a text that no value has."""
    if match := _COMPARISON.fullmatch(text):
        path = f"$.{match[1] or match[3]}={match[2] or match[4]}"
        return f"no value has this text; --json-path '{path}' looks into JSON"
    return f"no value has this text; --key-contains {shlex.quote(text)} looks into keys"


def _format(
    format_text: str | None,
    tests: dict[str, Any],
    typed: TypedValues,
    *,
    only_count: bool,
    as_json: bool,
) -> pylog.jobs.LineFormat:
    if only_count:
        return pylog.jobs.LineFormat.located_text()._replace(columns=("offset",))
    if as_json and typed.columns:
        return pylog.jobs.LineFormat.typed_json(typed.columns)
    if as_json:
        return pylog.jobs.LineFormat.json("text")
    lines = lines_of_format(format_text) if format_text is not None else _text_format(tests)
    return lines.with_json_values() if typed.columns else lines


def _text_format(tests: dict[str, Any]) -> pylog.jobs.LineFormat:
    traits = OutputTraits.of(sys.stdout)
    if not traits.is_terminal:
        return pylog.jobs.LineFormat.located_text()
    return RecordView(traits, is_aligned=True, found_by=filter_of(tests)).line_format()


def filter_of(tests: dict[str, Any]) -> pylog.RecordFilter:
    """Return the filter that the tests of keys, values and headers make."""
    of_times = {"partitioner", "min_timestamp", "max_timestamp", "trust_batch_timestamps"}
    return pylog.RecordFilter.matching(
        **{name: each for name, each in tests.items() if name not in of_times}
    )


def _print_summary(
    summary: pylog.results.SearchSummary, *, only_count: bool, as_json: bool
) -> None:
    if as_json:
        # A line among lines, but with --count all that there is.
        write_json({"summary": summary.document()}, is_line=not only_count)
    else:
        if only_count:
            sys.stdout.write(f"{summary.matches}\n")
        sys.stdout.flush()
        sys.stderr.writelines(
            f"pylog: {pylog.jobs.printable(line)}\n" for line in summary_lines(summary)
        )


def summary_lines(summary: SearchSummary) -> Iterator[str]:
    """Yield what was found, how much was looked through, and how much could not be."""
    where = counted(summary.partitions, "partition")
    sets = summary.uncounted_batches
    wrapped = f" and {counted(sets, 'compressed message set')} of v0 or v1" if sets else ""
    of_all = "" if summary.is_complete else f" of {format_bytes(summary.total_bytes)}"
    yield (
        f"{counted(summary.matches, 'match', 'matches')} in "
        f"{counted(summary.scanned_records, 'record')}{wrapped} of {where}, "
        f"{format_bytes(summary.scanned_bytes)}{of_all} searched"
        f"{'' if summary.is_complete else '; stopped at the limit'}"
    )
    for topic, partitions, count in summary.key_partitions:
        yield (
            f"note: only partition {', '.join(map(str, partitions))} of {count} of topic {topic} "
            "was searched, where --partitioner puts the key; records from before partitions were "
            "added may be in others"
        )
    for absent in summary.absent[:_SHOWN_ABSENT]:
        yield f"note: {absent}"
    if summary.unreadable:
        size_bytes = sum(each.end_position - each.position for each in summary.unreadable)
        yield (
            f"{counted(len(summary.unreadable), 'range')} ({format_bytes(size_bytes)}) "
            "could not be searched, see above"
        )


_SHOWN_ABSENT = 5
MOST_SECONDS = 60.0
"""Of processor time, for the records of one window of a file: some megabytes, decompressed more."""


class StalledPattern:
    """A context that raises `TimeoutError` where a search gets no further; see `note_progress`.

    Outside of the main thread it changes nothing.
    """

    def __init__(self, bar: ProgressBar | None, patterns: Sequence[str]) -> None:
        self._bar = bar
        self._patterns = patterns  # parameters that are regular expressions
        is_main = threading.current_thread() is threading.main_thread()
        self._is_watched = bool(patterns) and is_main
        self._before: signal.Handlers | signal._HANDLER = signal.SIG_DFL

    def __enter__(self) -> Self:
        if self._is_watched:
            self._before = signal.getsignal(signal.SIGVTALRM)
            signal.signal(signal.SIGVTALRM, self._give_up)
            self.note_progress()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._is_watched:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, self._before)

    def show(self, done_bytes: int, total_bytes: int) -> None:
        """Note that a window has been looked through, and show how far the search has come."""
        self.note_progress()
        if self._bar is not None:
            self._bar.show(done_bytes, total_bytes)

    def note_progress(self) -> None:
        """Say that a window has been looked through, or a match found: the time begins anew."""
        if self._is_watched:
            signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)

    def _give_up(self, number: int, frame: FrameType | None) -> NoReturn:
        names = " or ".join(f"--{each.replace('_', '-')}" for each in self._patterns)
        raise TimeoutError(
            f"{names} has been at the same records for {MOST_SECONDS:.0f} s of processor time, so "
            "the pattern backtracks: have no repetition inside of another one ((a+)+), or search "
            "for plain text by --value-contains"
        )
