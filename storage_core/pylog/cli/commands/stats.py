"""``pylog stats``: what logs are made of."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

import pylog
from pylog.cli import exit_status, options, progress
from pylog.cli.options import command
from pylog.cli.output import disk_text, known, wrapped, write_json
from pylog.cli.style import BOLD, GREEN, OutputTraits
from pylog.cli.table import (
    aligned_columns,
    bar,
    can_show_blocks,
    columns_chart,
    ensure_can_be_written,
    write_page,
)
from pylog.text.words import counted, format_bytes, minute_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pylog.results import LogStatistics, TimeSteps

    Row = Mapping[str, Any]


_WIDTH_ELSEWHERE = 100
_MOST_WIDTH = 140


@command(
    "stats",
    "pylog stats /mnt/kafka-logs",
    "pylog stats /mnt/kafka-logs --topic orders --sample",
    "pylog stats /mnt/kafka-logs --full --html kafka-logs.html",
)
@options.paths
@options.topics("Only these topics; may be given several times. Default: all, internal ones too.")
@options.partitions()
@options.of_several_disks
@options.flag(
    "--sample",
    help="Read some records, too: the most frequent keys, the largest records, and what other "
    "codecs and batch sizes would save.",
)
@options.flag(
    "--full",
    help="Read all records: keys and large records are counted over all of them, and the live part "
    "of compacted topics is shown. Savings come from a sample as with --sample.",
)
@options.number(
    "--sample-bytes",
    at_least=1,
    metavar="BYTES",
    default=64 << 20,
    help="Bytes of the .log files to read for the sample. Topics that are smaller than their share "
    "are read as a whole.",
)
@options.number(
    "--top",
    at_least=1,
    default=10,
    help="How many topics are shown one by one, and how many keys and large records of each.",
)
@options.html("Write a page with charts to FILE")
@options.file(
    "--timeline",
    help="Write another page to FILE, which shows one topic (--topic) along its offsets: records, "
    "bytes, missing offsets, transactions and leader epochs.",
)
@options.color
@options.json_output(
    "Print one JSON document with all tables, sizes in bytes and timestamps in milliseconds."
)
@options.threads("partitions are read side by side")
def stats(
    paths: tuple[str, ...],
    *,
    topics: tuple[str, ...],
    sample: bool,
    full: bool,
    top: int,
    html: str | None,
    timeline: str | None,
    as_json: bool,
    **of_library: Any,  # noqa: ANN401 - options that `pylog.stats` has, too
) -> int:
    """Show what logs are made of: sizes, batches, codecs, keys, times.

    By default only batch headers are read. They tell size and records by topic, partition and
    segment; how full batches are; which codecs they have; when records came, by the largest
    timestamp of their batch; how even partitions are; and timestamps that are out of order or in
    the future.

    --sample reads some records, at random places. What it says about all records has bounds: the
    true value lies within them in 95 % of samples. --full gives exact counts if a topic's keys fit
    into 8 MiB, otherwise certain bounds.

    Savings are measured by recompressing the sample. A batch size is before compression.

    The last lines show the size of all files in each log directory, by kind.

    A broker may be writing to the directory meanwhile. Damaged parts are skipped, and named at the
    end.

    Exit status: 0 nothing wrong was seen (only --full reads all records), 1 something is
    damaged or cannot be read, 2 wrong usage or a path that holds no log.
    """
    if sample and full:
        raise click.UsageError("give either --sample or --full, not both")
    names = options.names_in(topics, None)
    if timeline is not None and (len(paths) != 1 or len(names) != 1):
        raise click.UsageError("--timeline shows one topic of one PATH: name it with --topic")
    for file in (html, timeline):
        if file is not None:
            ensure_can_be_written(file)
    has_bar = progress.is_seen()
    with progress.ProgressBar("reading", None) as bar:
        found = pylog.stats(
            *paths,
            topics=names or None,
            read="all" if full else "sample" if sample else "headers",
            most=top,
            progress=bar.show if has_bar else None,
            **of_library,
        )
    if html is not None:
        write_page(found.html(), html)
    if timeline is not None:
        write_page(pylog.timeline(paths[0], names[0]).html(), timeline)
    if as_json:
        write_json(found.document())
    elif html is None and timeline is None:
        width = OutputTraits.of(sys.stdout).width
        for line in StatisticsText(found, top).lines():
            sys.stdout.writelines(f"{each}\n" for each in wrapped(line, width))
    return exit_status.FINDINGS if found.problems else exit_status.SOUND


_MOST_PARTITIONS = 12
_LEAST_NEEDED = ("BYTES/BATCH", "BATCHES", "PARTITIONS")
"""Columns that a table of topics does without where it is wider than the terminal."""

_MOST_SAVINGS = 3  # with batches as they are, and with others
_KEY_CHARACTERS = 32
_LEAST_BAR, _MOST_BAR = 10, 60
_INDENT = "  "


class StatisticsText:
    """Lines about `LogStatistics`, as standard output has room for."""

    def __init__(self, found: LogStatistics, most_topics: int) -> None:
        self._found = found
        self._document = found.document()
        self._most_topics = most_topics
        self._styled = OutputTraits.of(sys.stdout).styled
        width = OutputTraits.of(sys.stdout).width
        self._width = _WIDTH_ELSEWHERE if width is None else min(_MOST_WIDTH, width)
        self._blocks = can_show_blocks(sys.stdout.encoding)

    def lines(self) -> Iterator[str]:
        """Yield all lines."""
        topics = sorted(self._document["topics"], key=lambda each: -each["sizeInBytes"])
        yield from self._topics(topics)
        for topic in topics[: self._most_topics]:
            if topic["batches"]:
                yield ""
                yield self._styled(pylog.jobs.printable(topic["topic"]), BOLD)
                yield from self._topic(topic)
        yield ""
        yield from self._closing(topics)

    def _topics(self, topics: Sequence[Row]) -> Iterator[str]:
        columns = {
            "TOPIC": [pylog.jobs.printable(each["topic"]) for each in topics],
            "PARTITIONS": [str(each["partitions"]) for each in topics],
            "SIZE": [format_bytes(each["sizeInBytes"]) for each in topics],
            "RECORDS": [_records(each) for each in topics],
            "BATCHES": [f"{each['batches']:,}" for each in topics],
            "RECORDS/BATCH": [
                _mean(each["records"], each["batches"] - each["uncountedBatches"])
                for each in topics
            ],
            "BYTES/BATCH": [_mean(each["bytes"], each["batches"]) for each in topics],
        }
        if any(each["liveBytes"] is not None for each in topics):
            columns["LIVE"] = [
                "-"
                if each["liveBytes"] is None
                else _percent(each["liveBytes"], each["liveBytes"] + each["deadBytes"])
                for each in topics
            ]
        yield from aligned_columns(columns, {"TOPIC"}, self._width, _LEAST_NEEDED)

    def _topic(self, topic: Row) -> Iterator[str]:
        yield from self._partitions(topic)
        yield from self._codecs(topic)
        yield from self._batch_sizes(topic)
        yield from self._times(topic)
        yield from self._savings(topic)
        yield from self._hot_keys(topic)
        yield from self._largest_records(topic)

    def _rows(self, name: str, topic: Row) -> list[Row]:
        return [each for each in self._document[name] if each["topic"] == topic["topic"]]

    def _partitions(self, topic: Row) -> Iterator[str]:
        rows = sorted(self._rows("partitions", topic), key=lambda each: -each["sizeInBytes"])
        if len(rows) < 2:
            return
        yield (f"{_INDENT}partitions by size (the largest has {topic['skew']:.2f} times the mean)")
        shown = rows[:_MOST_PARTITIONS]
        yield from self._bars(
            [str(each["partition"]) for each in shown],
            [each["sizeInBytes"] for each in shown],
            [format_bytes(each["sizeInBytes"]) for each in shown],
        )
        if len(rows) > len(shown):
            yield f"{_INDENT * 2}and {len(rows) - len(shown)} smaller ones"

    def _codecs(self, topic: Row) -> Iterator[str]:
        rows = self._rows("codecs", topic)
        yield f"{_INDENT}bytes by codec"
        yield from self._bars(
            [each["codec"] for each in rows],
            [each["bytes"] for each in rows],
            [
                f"{format_bytes(each['bytes'])}, {_percent(each['bytes'], topic['bytes'])}"
                for each in rows
            ],
        )

    def _batch_sizes(self, topic: Row) -> Iterator[str]:
        rows = self._rows("batchSizes", topic)
        for measure, title, name in (
            ("bytes", "bytes by batch size", format_bytes),
            ("records", "records per batch", str),
        ):
            some = [each for each in rows if each["measure"] == measure]
            if not some:
                continue
            weight = "bytes" if measure == "bytes" else "records"
            total = sum(each[weight] for each in some)
            yield f"{_INDENT}{title}"
            yield from self._bars(
                [_range(each["start"], each["end"], name) for each in some],
                [each[weight] for each in some],
                [f"{_percent(each[weight], total)}, {_batches(each['batches'])}" for each in some],
            )

    def _times(self, topic: Row) -> Iterator[str]:
        rows = self._rows("times", topic)
        timed = [each for each in rows if each["start"] is not None]
        steps = self._found.time_steps(topic["topic"], self._width - len(_INDENT) * 2)
        if steps is not None:
            yield f"{_INDENT}bytes by the largest timestamp of their batch (UTC)"
            chart, *about = time_chart(steps, blocks=self._blocks)
            for line in (self._styled(chart, GREEN), *about):
                yield f"{_INDENT * 2}{line}"
        spanning = sum(each["spanningBytes"] for each in timed)
        if spanning:
            share = _percent(spanning, topic["bytes"])
            earlier = "of the bytes are in batches that began in an earlier interval"
            yield f"{_INDENT * 2}{share} {earlier}"
        for each in rows:
            if each["start"] is None:
                yield (
                    f"{_INDENT * 2}{_batches(each['batches'])} without a "
                    f"timestamp: {format_bytes(each['bytes'])}"
                )
        if topic["lateBatches"]:
            batches = counted(topic["lateBatches"], "batch has", "batches have")
            yield (
                f"{_INDENT * 2}{batches} an earlier timestamp than one before, by up to "
                f"{_duration(topic['lateByMs'])}"
            )
        if topic["futureBatches"]:
            batches = counted(topic["futureBatches"], "batch has", "batches have")
            yield f"{_INDENT * 2}{batches} a timestamp in the future"
        for unit, count in topic["otherTimestampUnits"].items():
            batches = counted(count, "batch has", "batches have")
            yield f"{_INDENT * 2}{batches} a timestamp that is probably in {unit}, not milliseconds"

    def _savings(self, topic: Row) -> Iterator[str]:
        rows = self._rows("recompression", topic)
        if not rows:
            return
        sampled = format_bytes(rows[0]["sampledBytes"])
        yield f"{_INDENT}size with other codecs and batch sizes ({sampled} were compressed again)"
        by_ratio = sorted(rows, key=lambda each: each["ratio"])
        best = [
            *[each for each in by_ratio if each["batchSize"] is None][:_MOST_SAVINGS],
            *[each for each in by_ratio if each["batchSize"] is not None][:_MOST_SAVINGS],
        ]
        stored = {"codec": "as it is", "level": None, "batchSize": None}
        labels = [_variant(each) for each in best]
        yield from self._bars(
            [_variant(stored), *labels],
            [topic["bytes"], *(each["estimatedBytes"] for each in best)],
            [
                format_bytes(topic["bytes"]),
                *(f"{format_bytes(each['estimatedBytes'])}, {_change(each)}" for each in best),
            ],
        )

    def _hot_keys(self, topic: Row) -> Iterator[str]:
        rows = self._rows("hotKeys", topic)
        if not rows:
            return
        how = "by a sample, 95 % bounds" if rows[0]["isSampled"] else "of all records"
        yield f"{_INDENT}most frequent keys, {how}"
        columns = {
            "KEY": [_key(each) for each in rows],
            "OF RECORDS": [_share(each["ofRecords"]) for each in rows],
            "OF BYTES": [_share(each["ofBytes"]) for each in rows],
            "PARTITION": [known(each["partition"]) for each in rows],
        }
        yield from (f"{_INDENT * 2}{line}" for line in aligned_columns(columns, {"KEY"}))

    def _largest_records(self, topic: Row) -> Iterator[str]:
        rows = self._rows("largestRecords", topic)
        if not rows:
            return
        how = " of a sample" if rows[0]["isSampled"] else ""
        yield f"{_INDENT}largest records{how}, before compression"
        columns = {
            "SIZE": [format_bytes(each["recordBytes"]) for each in rows],
            "PARTITION": [str(each["partition"]) for each in rows],
            "OFFSET": [str(each["offset"]) for each in rows],
            "KEY": [_key(each) for each in rows],
        }
        yield from (f"{_INDENT * 2}{line}" for line in aligned_columns(columns, {"KEY"}))

    def _bars(
        self, labels: Sequence[str], values: Sequence[float], notes: Sequence[str]
    ) -> Iterator[str]:
        """Yield a line for each value: label, bar, note. The largest value has the longest bar."""
        label_width = max(map(len, labels))
        note_width = max(map(len, notes))
        rest = self._width - 2 * len(_INDENT) - label_width - note_width - 2
        width = min(_MOST_BAR, max(_LEAST_BAR, rest))
        highest = max(values) or 1
        for label, value, note in zip(labels, values, notes, strict=True):
            drawn = self._styled(bar(value / highest, width, blocks=self._blocks), GREEN)
            yield f"{_INDENT * 2}{label.rjust(label_width)} {drawn} {note}".rstrip()

    def _closing(self, topics: Sequence[Row]) -> Iterator[str]:
        more = sum(1 for each in topics[self._most_topics :] if each["batches"])
        if more:
            topics_are = counted(more, "smaller topic is", "smaller topics are")
            yield f"{topics_are} only in the table (--top shows more of them)"
        by_path: dict[str, dict[str, int]] = {}
        for row in self._document["disk"]:
            by_path.setdefault(row["path"], {})[row["kind"]] = row["sizeInBytes"]
        for path, kinds in by_path.items():
            yield f"{pylog.jobs.printable(path)}: {disk_text(kinds)}"
        for problem in self._document["problems"]:
            yield pylog.jobs.printable(problem)
        summary = self._document["summary"]
        parts = [
            counted(summary["topics"], "topic"),
            counted(summary["partitions"], "partition"),
            counted(summary["segments"], "segment"),
            format_bytes(summary["sizeInBytes"]),
            f"{format_bytes(summary['diskBytes'])} on disk",
        ]
        if self._document["problems"]:
            parts.append(counted(len(self._document["problems"]), "problem"))
        if self._document["read"] == "headers":
            parts.append("only headers were read (--sample: keys, savings; --full: checksums too)")
        yield ", ".join(parts)


def _records(row: Row) -> str:
    at_least = ">=" if row["uncountedBatches"] else ""
    return f"{at_least}{row['records']:,}"


def _batches(number: int) -> str:
    return counted(number, "batch", "batches", digits=",")


def _mean(part: int, whole: int) -> str:
    if not whole:
        return "-"
    mean = part / whole
    return f"{mean:.1f}" if mean < 100 else f"{mean:,.0f}"


def _percent(part: float, whole: float) -> str:
    return _shown_share(part / whole if whole else 0.0)


def _shown_share(share: float) -> str:
    percent = 100 * share
    if 0 < percent < 0.1:
        return f"{percent:.2g} %"
    return f"{percent:.1f} %" if percent < 99.95 else f"{percent:.0f} %"


def _share(share: Mapping[str, float]) -> str:
    shown = _shown_share(share["share"])
    low, high = _shown_share(share["low"]), _shown_share(share["high"])
    if low == high:
        return shown
    return f"{shown} ({low.removesuffix(' %')} to {high.removesuffix(' %')})"


def _range(start: int, end: int, name: Callable[[int], str]) -> str:
    return name(start) if end - start <= 1 else f"{name(start)} to {name(end - 1)}"


def _variant(row: Row) -> str:
    level = "" if row["level"] is None else f" {row['level']}"
    size = "" if row["batchSize"] is None else f", batches of {format_bytes(row['batchSize'])}"
    return f"{row['codec']}{level}{size}"


def _change(row: Row) -> str:
    change = 100 * (row["ratio"] - 1)
    return f"{change:+.0f} %" if abs(change) >= 0.5 else "the same"


def _key(row: Row) -> str:
    key = row["key"]
    if row.get("offset") is None:
        return "(no key)"
    if key is None:
        return "(no key, or deleted)"
    if key == "":
        return '""'
    text = f"base64:{key['base64']}" if isinstance(key, dict) else pylog.jobs.printable(key)
    return text if len(text) <= _KEY_CHARACTERS else f"{text[: _KEY_CHARACTERS - 3]}..."


def _duration(milliseconds: int) -> str:
    for unit, length in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)):
        if milliseconds >= length:
            return f"{milliseconds / length:.1f} {unit}"
    return f"{milliseconds} ms"


_MINUTE_MS = 60_000


def time_chart(steps: TimeSteps, *, blocks: bool = True) -> Iterator[str]:
    """Yield three lines: a character for each step of time, and what they stand for."""
    yield columns_chart(steps.size_bytes, blocks=blocks)
    highest = format_bytes(max(steps.size_bytes))
    what = f"each character is {_length(steps.step_ms)}, the highest one {highest}"
    yield f"{minute_text(steps.start_ms)} to {minute_text(steps.end_ms)}"
    yield what


def _length(step_ms: int) -> str:
    minutes = step_ms // _MINUTE_MS
    if minutes < 60:
        return "a minute" if minutes == 1 else f"{minutes} minutes"
    hours = minutes // 60
    if hours == 1:
        return "an hour"
    return f"{hours} hours" if hours < 48 else f"{hours / 24:g} days"
