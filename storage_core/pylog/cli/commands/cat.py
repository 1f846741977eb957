"""``pylog cat``: the records of a log directory."""

from __future__ import annotations

import sys
from time import sleep
from typing import TYPE_CHECKING

import click

import pylog
from pylog.cli import exit_status, options, progress
from pylog.cli.options import command
from pylog.cli.output import (
    RecordOutput,
    line_format,
    lines_of_format,
    read_masking,
    tell,
    tell_of_masking,
)
from pylog.cli.record_options import (
    EarlierRecords,
    advice_on_damage,
    chosen_records,
    of_times,
    way_of_reading,
)
from pylog.cli.record_view import RecordView
from pylog.cli.style import OutputTraits
from pylog.cli.value_options import tell_undecodable, tell_without_schema, typed_values
from pylog.text.words import counted

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    from pylog.cli.record_options import ChosenRecords, WayOfReading
    from pylog.cli.value_options import TypedValues
    from pylog.results import Scan


_FOR_PEOPLE = "pretty"
_FORMATTERS: tuple[pylog.DecoderName, ...] = (
    "mm2-checkpoints",
    "mm2-offset-syncs",
    "mm2-heartbeats",
    "connect",
)


@command(
    "cat",
    "pylog cat /mnt/kafka-logs --topic orders | grep user-80",
    "pylog cat /mnt/kafka-logs --topic orders --start-timestamp -2h --format text",
    "pylog cat /mnt/kafka-logs --topic orders --follow -f '%t-%p@%o %k: %s\\n'",
    "pylog cat /mnt/kafka-logs --merge --reverse --limit 20",
    "pylog cat /mnt/kafka-logs -t orders -p 3 -o -100 -c 10 -f '%T %k: %s\\n'",
    "pylog cat /mnt/kafka-logs --topic orders --value-format auto | jq .value",
    "pylog cat /mnt/kafka-logs --topic a.checkpoints.internal --formatter mm2-checkpoints",
)
@chosen_records
@typed_values
@options.own_timestamps
@click.option(
    "--key",
    "keys",
    metavar="TEXT",
    multiple=True,
    help="Only records whose key is exactly this text (in UTF-8); may be given several times.",
)
@options.number(
    "--last",
    at_least=1,
    help="Only the last N records of each partition that pass the other options.",
)
@options.number("--limit", "-c", at_least=1, help="Stop after N records in all.")
@options.mode(
    "FAILFAST: the program ends at the first damage and reports file, position and cause; "
    "what was printed before is intact. DROPMALFORMED: each damaged range is left out and reported "
    "on stderr, and everything intact is printed. PERMISSIVE: the same, since no line stands for "
    "damage here. The exit status is 1 in each case.",
    modes=[mode.value for mode in pylog.ReadMode],
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice([*options.LINE_FORMATS, _FOR_PEOPLE]),
    help="jsonl: one JSON object per line. text: key, tab, value. pretty: partition, offset, time, "
    "key, value and headers, in colours. See above. Default: pretty in a terminal, unless --values "
    "is given, and jsonl elsewhere.",
)
@click.option(
    "--values",
    type=click.Choice(pylog.jobs.VALUE_FORMATS),
    help="With jsonl: how keys, values and headers' values are printed, see above. Default: text.",
)
@click.option(
    "--formatter",
    type=click.Choice(_FORMATTERS),
    help="Decode keys and values, and print what Kafka's formatter prints: of checkpoints, offset "
    "syncs or heartbeats of MirrorMaker 2. connect: offsets, configurations or status of Kafka "
    "Connect, key, tab, value as JSON. A record that is none of these is an error, and left out "
    "with --mode DROPMALFORMED.",
)
@options.mask
@options.color
@line_format
@options.flag(
    "--merge",
    help="Print one timeline of all partitions, ordered by timestamp. A record that is earlier "
    "than the one before it in its partition comes right after that one.",
)
@options.flag("--reverse", help="With --merge: the latest records first.")
@options.flag(
    "--follow",
    help="Then wait for new records, also of new partitions, and print them, until Ctrl-C.",
)
@way_of_reading
def cat(
    chosen: ChosenRecords,
    typed: TypedValues,
    way: WayOfReading,
    *,
    min_timestamp: int | None,
    max_timestamp: int | None,
    keys: tuple[str, ...],
    last: int | None,
    limit: int | None,
    mode: str,
    output_format: str | None,
    values: str | None,
    formatter: pylog.DecoderName | None,
    mask: str | None,
    format_text: str | None,
    merge: bool,
    reverse: bool,
    follow: bool,
) -> int:
    r"""Print records, as JSON lines or as text.

    Records come partition by partition, in offset order, as Kafka's own consumer returns them.
    Control records and records below the log start offset are not printed.

    TIME is an ISO date or time (2026-11-01, 2026-11-01T12:30:00Z; UTC unless it names a zone), how
    long before now (-30s, -15m, -2h, -7d, -4w), or milliseconds since 1970-01-01 UTC. As in Kafka,
    it is used to look up an offset and does not filter: where timestamps are out of order, the
    range may hold earlier and later ones. --min-timestamp and --max-timestamp filter.

    jsonl has the keys topic, partition, offset, timestamp (ms), timestampType (-1 none, 0
    CreateTime, 1 LogAppendTime), leaderEpoch (or null), values ("text"), key, value (or null) and
    headers ([[name, value or null], ...]). Keys and values are text; bytes that are not UTF-8 are
    {"base64": ...}. With --values base64, "values" is "base64", and all of them are base64.

    With --value-format or --key-format, "values" is "typed", and values or keys are JSON by their
    schemas: decimals and 64-bit integers with all digits, times in ISO 8601, bytes in base64,
    unions by their value; NaN and infinities are strings. The schemas are those of the registry's
    topic in the same directory, or those given. What cannot be decoded is an error (FAILFAST), left
    out (DROPMALFORMED), or null, with the reason and the bytes in "undecodable" (PERMISSIVE).

    text reads keys and values as UTF-8. A null is \N, and an empty one is empty. Bytes that are not
    UTF-8, control characters and those that change the direction of text are escaped (\t \n \r
    \x1b \u202e), and a backslash is doubled.

    pretty is one coloured line per record, meant for reading, not parsing: orders-0@57 12:30:05.123
    user-42 {"a":1} [trace=7]. Times are UTC; in a narrow terminal the date has a line of its own.
    Escapes are as in text, a backslash is not doubled, null is ∅, and empty is "".

    Exit status: 0 nothing wrong was seen, 1 damage was found, 2 wrong usage or a path that cannot
    be read.
    """
    others = (*typed.columns, output_format, values, format_text, mask)
    left_out: list[pylog.errors.UndecodableValueError] = []
    lines = _decoded_format(formatter, others, None if mode == "FAILFAST" else left_out)
    lines = lines or _typed_format(typed, output_format, values, format_text, mask, mode)
    lines = lines or _format(output_format, values, format_text)
    masking = read_masking(mask)
    if keys and typed.key_format is not None:
        msg = "--key compares keys as they lie in the log: leave --key-format out"
        raise click.UsageError(msg)
    where = _filter(keys, min_timestamp, max_timestamp)
    if reverse and not merge:
        raise click.UsageError("--reverse is for --merge")
    if follow:
        if merge or last is not None or chosen.end != "latest":
            msg = "--follow has no end: leave out --merge, --last, --end-offset, --end-timestamp"
            raise click.UsageError(msg)
        with advice_on_damage(mode):
            return follow_records(
                *(chosen, way, lines, typed.arguments(chosen.paths, topics="each", follows=True)),
                mode=_effective(mode, typed),
                where=where,
                limit=limit,
                masking=masking,
                left_out=left_out,
            )
    columns = _columns(lines, masking)
    if progress.is_wanted() and not merge:
        columns = tuple(dict.fromkeys([*columns, *pylog.jobs.PlannedBytes.COLUMNS]))
    scan = chosen.scan(
        way,
        columns=columns,
        mode=_effective(mode, typed),
        timestamp_unit="ms",
        where=where,
        limit=None if merge else limit,
        **typed.arguments(chosen.paths, topics="each"),
    )
    tell_without_schema(scan)
    earlier = EarlierRecords(chosen)
    with advice_on_damage(mode):
        if last is not None:
            scan = scan.last(last)
        if merge:
            output = RecordOutput(lines, masking)
            row_count = _print_merged(scan, output, limit, earlier, reverse=reverse)
        else:
            row_count = _print(scan, RecordOutput(lines, masking), earlier)
    tell_of_masking(masking)
    if not row_count and (where is not None or chosen.is_restricted):
        tell("note", nothing_matched(scan))
    if note := earlier.note():
        tell("note", note)
    tell("error", *map(str, left_out))
    # Others have been named on stderr when they were found.
    has_findings = tell_undecodable(scan) or scan.damage or left_out
    return exit_status.FINDINGS if has_findings else exit_status.SOUND


def _decoded_format(
    formatter: pylog.DecoderName | None,
    others: tuple[str | None, ...],
    left_out: list[pylog.errors.UndecodableValueError] | None,
) -> pylog.jobs.LineFormat | None:
    if formatter is None:
        return None
    if any(each is not None for each in others):
        msg = "--formatter says what is printed: leave out --format, -f, --values, --mask, and "
        raise click.UsageError(msg + "--value-format and --key-format")
    is_printable = OutputTraits.of(sys.stdout).is_terminal
    return pylog.jobs.LineFormat.decoded(formatter, is_printable=is_printable, left_out=left_out)


def _typed_format(
    typed: TypedValues,
    output_format: str | None,
    values: str | None,
    format_text: str | None,
    mask: str | None,
    mode: str,
) -> pylog.jobs.LineFormat | None:
    if not typed.columns:
        return None
    if format_text is not None or output_format not in (None, "jsonl") or values is not None:
        msg = "--value-format and --key-format are for --format jsonl, without --values"
        raise click.UsageError(msg)
    if mask is not None:
        raise click.UsageError("--mask replaces parts of bytes: leave --value-format out")
    shows = mode == pylog.ReadMode.PERMISSIVE
    return pylog.jobs.LineFormat.typed_json(typed.columns, shows_undecodable=shows)


def _format(
    output_format: str | None, values: str | None, format_text: str | None
) -> pylog.jobs.LineFormat:
    if format_text is not None:
        if output_format is not None or values is not None:
            raise click.UsageError("-f is a format of its own; leave --format and --values out")
        return lines_of_format(format_text)
    if output_format == "text":
        if values is not None:
            raise click.UsageError("--values is for --format jsonl; text has always text")
        return pylog.jobs.LineFormat.text()
    traits = OutputTraits.of(sys.stdout)
    if output_format == _FOR_PEOPLE and values is not None:
        raise click.UsageError("--values is for --format jsonl; pretty has text where it can")
    if output_format is None and values is None and traits.is_terminal:
        output_format = _FOR_PEOPLE
    if output_format == _FOR_PEOPLE:
        return RecordView(traits).line_format()
    return pylog.jobs.LineFormat.json(values or pylog.jobs.VALUE_FORMATS[0])


def _effective(
    mode: str, typed: TypedValues | None = None
) -> Literal["FAILFAST", "DROPMALFORMED", "PERMISSIVE"]:
    """Return the mode to read in: no line stands for a damaged range, as a row does in Spark.

    A line does for a record whose value cannot be decoded.
    """
    if mode == "PERMISSIVE" and typed is not None and typed.columns:
        return "PERMISSIVE"
    return "FAILFAST" if mode == "FAILFAST" else "DROPMALFORMED"


def _filter(
    keys: tuple[str, ...], min_timestamp: int | None, max_timestamp: int | None
) -> pylog.RecordFilter | None:
    where = of_times(min_timestamp, max_timestamp)
    if not keys:
        return where
    # An argument that is not UTF-8 is taken as the bytes that it was.
    wanted = frozenset(key.encode("utf-8", "surrogateescape") for key in keys)
    of_keys = pylog.RecordFilter(keys=wanted)
    return of_keys if where is None else of_keys & where


def _columns(
    lines: pylog.jobs.LineFormat, masking: pylog.results.RecordMasking | None
) -> tuple[str, ...]:
    """Return the columns that are read: rules for some topics need to know the topic."""
    needs_topic = masking is not None and masking.names_topics
    return tuple(dict.fromkeys([*lines.columns, *(["topic"] if needs_topic else [])]))


def _print(scan: pylog.results.Scan, output: RecordOutput, earlier: EarlierRecords) -> int:
    """Print a scan's records, with a progress bar where one is wanted; return how many."""
    has_bar = progress.is_wanted()
    planned = pylog.jobs.PlannedBytes(scan.plan())
    with progress.ProgressBar("reading", planned.total) as bar:
        for batch in scan.to_batches():
            output.write(batch)
            earlier.add(batch)
            if has_bar:
                bar.show(planned.before_end_of(batch))
    return output.records


def _print_merged(
    scan: pylog.results.Scan,
    output: RecordOutput,
    limit: int | None,
    earlier: EarlierRecords,
    *,
    reverse: bool,
) -> int:
    with progress.ProgressBar("merging", None) as bar:
        show = bar.show if progress.is_wanted() else None
        merged = pylog.merge_by_timestamp(scan, reverse=reverse, limit=limit, progress=show)
        for batch in merged:
            output.write(batch)
            earlier.add(batch)
    return output.records


LOOK_EVERY_SECONDS = 0.25
"""A look at partitions in which nothing has changed costs a few system calls for each."""


def follow_records(
    chosen: ChosenRecords,
    way: WayOfReading,
    lines: pylog.jobs.LineFormat,
    formats: Mapping[str, Any],
    *,
    mode: Literal["FAILFAST", "DROPMALFORMED", "PERMISSIVE"],
    where: pylog.RecordFilter | None,
    limit: int | None,
    masking: pylog.results.RecordMasking | None,
    left_out: list[pylog.errors.UndecodableValueError],
) -> int:
    """Print records as they come, without an end or up to ``limit``; return the exit status.

    What ``lines`` adds to ``left_out`` is told and taken out at once: there may be no end.
    """
    names = chosen.names
    followed = pylog.follow(
        *chosen.paths,
        topics=names or None,
        pattern=chosen.pattern,
        isolation=chosen.isolation,
        mode=mode,
        include_stray=chosen.include_stray,
        replica=chosen.replica,
        use_indexes=not way.ignore_indexes,
    )
    records = pylog.results.FollowedRecords(
        followed,
        start=chosen.start,
        partitions=chosen.partitions,
        columns=_columns(lines, masking),
        mode=mode,
        timestamp_unit="ms",
        where=where,
        limit=limit,
        isolation=chosen.isolation,
        **formats,
        **way.arguments(),
    )
    output = RecordOutput(lines, masking)
    is_first_look, has_left_out = True, False
    while True:
        for batch in records.poll():
            output.write(batch)
            has_left_out |= bool(left_out)
            tell("error", *map(str, left_out))
            left_out.clear()
        if output.records == limit:
            break
        # Whoever reads the output sees what is there, however long nothing follows.
        output.flush()
        if is_first_look and not records.partitions:
            tell("note", "nothing to print is there yet; waiting for it")
        is_first_look = False
        sleep(LOOK_EVERY_SECONDS)
    # Each has been named on stderr when it was found.
    has_findings = records.damage or records.undecodable or has_left_out
    return exit_status.FINDINGS if has_findings else exit_status.SOUND


def nothing_matched(scan: Scan) -> str:
    """Return the sentence that tells an empty range from one in which nothing matched."""
    where = counted(len(scan.partitions), "partition")
    absent = scan.absent_offsets()
    if absent:
        more = f"; and {counted(len(absent) - 1, 'more partition')}" if len(absent) > 1 else ""
        return f"no record matches: {absent[0]}{more}"
    offsets = sum(task.end_offset - task.start_offset for task in scan.plan())
    if not offsets:
        return f"no record matches: the range that was asked for is empty ({where})"
    return f"no record matches: {counted(offsets, 'offset')} of {where} were looked at"
