"""What is published of a run: the benchmark page, its charts, every table, the README's table.

Everything is made from the data file, so that no page can disagree with it.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.charts import THEMES, Bar, Chart, Group, draw
from benchmarks.figures import PUBLISHED, Figures, Value, is_loaded
from benchmarks.machine import machine_lines

PAGE = "docs/benchmarks.md"
RAW_PAGE = "docs/benchmark-tables.md"
README = "README.md"
BEGIN, END = "<!-- figures: made from docs/benchmarks.json -->", "<!-- end of figures -->"
"""What the README's table stands between."""

_READERS = "Readers, one core"
_DUMPING = "Dumping 500 MB of records of 100 B"
_KAFKA_SOURCE = "Spark's kafka source with a local broker, noop sink"
_COMPACTION = "Compaction of a partition, everything dirty, 20 records of 200 B a key"
_SPEED = "M records/s"
_CODECS = ("none", "lz4", "snappy", "gzip", "zstd")
_LIMIT = re.compile(r"([≥≤]) ([\d.]+)")
_MET = {True: "yes", False: "**no**", None: "-"}
_KAFKA = "Kafka's own code"

_PROFILES = Path(__file__).with_name("profiles.md")
_HOW = """\
Every reader checks the CRC of every batch and reads every field of every record, on one core, with
the files in the page cache. Readers take turns, so a busy moment slows them all; each was first
checked against the sums of what was written, and warmed up. MB is 10^6 bytes of `.log` files,
compressed where the records are.

- *pylog* reads the file and ends with Arrow record batches.
- *aiokafka* and *kafka-python* parse a leading sample that is already in memory.
- *Kafka's Java FileRecords* calls `ensureValid` and copies each key and value, in a warm JVM.
- *codec alone* is the fastest decompression library on the same batches, without checksums.

Records have 8-byte keys and JSON text as values. Batches hold 16 KB of records, or 64 KB before
compression. Formats v0 and v1 have single messages, or wrappers of 64 KB."""


_MEASURE = """\
`make bench` takes hours and writes `build/bench.json`. To try it on a twentieth of the data, use
`python -m benchmarks --quick`. `make bench BENCH=--publish` renews this page: it refuses to
start on a busy machine, and publishes only runs in which every target was measured."""


class _Row(NamedTuple):
    """A line of the README's table; ``ratio`` is the target that says how many times as fast."""

    work: str
    ours: str
    theirs: str
    time: str
    ratio: str


def readme_table(figures: Figures) -> str:
    """Return the README's table of speed, with the machine below it."""
    lines = ["| task | pylog | alternative | its time | speed-up |", "|---|---|---|--:|--:|"]
    lines += ["| " + " | ".join(row) + " |" for row in _readme_rows(figures)]
    machine = figures.document["machine"]
    medians = (
        f"Medians on {machine['cores']} cores of an {machine['processor']}, "
        f"{machine['memory_gib']} GiB, {figures.document['date']}, files in the page cache."
    )
    lines += ["", medians]
    return "\n".join(lines)


def _readme_rows(figures: Figures) -> Iterator[_Row]:
    dump, peer = "pylog dump --print-data-log", "kafka-dump-log --print-data-log"
    yield _Row(
        "print 4 million 100-byte records",
        f"`{dump}`, {figures.median(_DUMPING, 'seconds', dump):.2f} s",
        f"`{peer}`",
        f"{figures.median(_DUMPING, 'seconds', peer):.2f} s",
        f"{_times(figures, f'`{dump}`, 100 B: '):.1f}",
    )
    for work, read, ours in (
        (
            "read 5 million 100-byte records in Spark",
            "full scan, 100 B, with Unix sockets",
            "format",
        ),
        ("filter 1 % of 8.2 million by timestamp", "1 % of the time of 1 GB by predicate", "table"),
    ):
        name = '`format("pylog")`' if ours == "format" else "`pyspark_pylog.table`"
        yield _Row(
            work,
            f"{name}, {figures.median(_KAFKA_SOURCE, 'seconds, median', read):.2f} s",
            '`format("kafka")`, local broker',
            f"{figures.median(_KAFKA_SOURCE, 'its seconds, median', read):.2f} s",
            f"{_times(figures, f'{read}: '):.1f}",
        )
    ours_speed = figures.median(_READERS, _SPEED, 100, "v2", "none", "pylog")
    theirs = figures.median(_READERS, _SPEED, 100, "v2", "none", "kafka-python")
    yield _Row(
        "decode 100-byte records on one core",
        f"`pylog.scan`, {ours_speed:.1f} million/s",
        "kafka-python, in memory",
        f"{theirs:.2f} million/s",
        f"{ours_speed / theirs:.0f}",
    )


def _times(figures: Figures, target: str) -> float:
    """Return the ratio that a run says of the one target whose text starts so."""
    found = [each for each in figures.document["targets"] if each["text"].startswith(target)]
    return float(found[0]["measured"].split(" ")[0])


def charts(figures: Figures) -> list[Chart]:
    """Return the three charts of the page."""
    readers = {
        "pylog": "pylog",
        "Kafka's Java FileRecords": "Kafka's Java classes",
        "aiokafka (Cython)": "aiokafka",
    }
    decoding = [
        Group(
            codec,
            [
                Bar(label, figures.median(_READERS, _SPEED, 100, "v2", codec, reader))
                for reader, label in readers.items()
            ],
        )
        for codec in _CODECS
    ]
    reads = (
        "full scan, 100 B, with Unix sockets",
        "full scan, 1000 B, with Unix sockets",
        "one offset of 1 GB",
        "1 % of the time of 1 GB by options",
        "1 % of the time of 1 GB by predicate",
    )
    spark = [
        Group(
            read.removesuffix(", with Unix sockets"),
            [
                Bar('format("pylog")', figures.median(_KAFKA_SOURCE, "seconds, median", read)),
                Bar('format("kafka")', figures.median(_KAFKA_SOURCE, "its seconds, median", read)),
            ],
        )
        for read in reads
    ]
    return [
        Chart("decoding", "Decoding records of 100 B on one core", "million records/s", decoding),
        Chart("spark", "Spark reads the same records", "seconds", spark),
        Chart("tools", "The same work on one core", "seconds for 500 MB", _tools(figures)),
    ]


def _tools(figures: Figures) -> list[Group]:
    dump = [
        Group(
            "print every record",
            [
                Bar("pylog", figures.median(_DUMPING, "seconds", "pylog dump --print-data-log")),
                Bar(_KAFKA, figures.median(_DUMPING, "seconds", "kafka-dump-log --print-data-log")),
            ],
        )
    ]
    for codec in ("none", "lz4", "zstd"):
        speeds = [
            figures.median(_COMPACTION, "MB/s of log", codec, cleaner)
            for cleaner in ("pylog's Cleaner", "Kafka's Cleaner")
        ]
        bars = [Bar(who, 500 / speed) for who, speed in zip(("pylog", _KAFKA), speeds, strict=True)]
        dump.append(Group(f"compact, {codec}", bars))
    return dump


def page(figures: Figures) -> str:
    """Return the summary: charts, what was missed, how and where it was measured."""
    document = figures.document
    targets = document["targets"]
    missed = [each for each in targets if each["met"] is False]
    met = sum(each["met"] is True for each in targets)
    summary = (
        f"pylog meets {met} of its {len(targets)} targets, and misses these {len(missed)}. "
        "[Every target and every table](benchmark-tables.md) of the run has a page, and so have "
        "[the data](benchmarks.json)."
    )
    lines = ["# Benchmarks", "", "The same work, by pylog and by what people use instead:", ""]
    lines += [readme_table(figures), ""]
    for chart in charts(figures):
        lines += [*_picture(chart), ""]
    missed_rows = [[each["text"], _missed(each)] for each in missed]
    lines += [
        "## Missed targets",
        "",
        summary,
        "",
        *_table(["target", "measured"], missed_rows),
        "",
    ]
    lines += [*_PROFILES.read_text("utf-8").splitlines(), ""]
    lines += ["## How it was measured", "", _HOW, "", "## Machine", ""]
    lines += [*_where(figures), "", "## Measure your machine", ""]
    lines.append(_MEASURE)
    return "\n".join(lines) + "\n"


def _picture(chart: Chart) -> Iterator[str]:
    yield "<picture>"
    yield (f'  <source media="(prefers-color-scheme: dark)" srcset="bench-{chart.name}-dark.svg">')
    yield f'  <img alt="{chart.title}, {chart.unit}" src="bench-{chart.name}-light.svg">'
    yield "</picture>"


def _missed(target: dict[str, Any]) -> str:
    """Return what was measured, where that, rounded, is not the limit itself."""
    limit = _LIMIT.search(target["text"])
    measured = str(target["measured"])
    if limit is None or float(measured.split(maxsplit=1)[0].lstrip("+")) != float(limit[2]):
        return measured
    return f"just {'below' if limit[1] == '≥' else 'above'} {limit[2]}"


def _targets(targets: Sequence[dict[str, Any]]) -> list[list[Value]]:
    return [[each["text"], each["measured"], _MET[each["met"]]] for each in targets]


def _where(figures: Figures) -> Iterator[str]:
    document = figures.document
    load = document["load_average"]
    before, after = (" / ".join(map(str, load[each])) for each in ("before", "after"))
    yield from machine_lines(document["machine"])
    yield f"- measured on {document['date']} by `{document['command']}`"
    yield f"- load average (1 / 5 minutes) {before} before, {after} after"
    if is_loaded(document["machine"], load["before"]):
        yield ""
        yield (
            "The machine was busy before this run started. A run like it can no longer be "
            "published; these figures stay until a quiet run replaces them."
        )


def raw_page(figures: Figures) -> str:
    """Return the page of every target and every table."""
    head = (
        f"Every figure of the run of {figures.document['date']}; [the summary](benchmarks.md) says "
        "how it was measured. A cell `x / y` is the best and the median of the rounds, which "
        "decides."
    )
    lines = ["# Benchmark tables", "", head, "", *_where(figures)]
    if figures.document["left_out"]:
        lines += ["", "Left out:", ""]
        lines += [f"- {note}" for note in dict.fromkeys(figures.document["left_out"])]
    lines += ["", "## Targets", ""]
    lines += _table(["target", "measured", "met?"], _targets(figures.document["targets"]))
    for table in figures.document["tables"]:
        lines += ["", f"## {table['title']}", "", *_table(table["columns"], table["rows"])]
        if table["note"]:
            lines += ["", table["note"]]
    return "\n".join(lines) + "\n"


def _table(columns: Sequence[str], body: Sequence[Sequence[Value]]) -> Iterator[str]:
    numbers = [_numbers(row[column] for row in body) for column in range(len(columns))]
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "|".join("--:" if digits is not None else "---" for digits in numbers) + "|"
    for row in body:
        cells = (_cell(value, digits) for value, digits in zip(row, numbers, strict=True))
        yield "| " + " | ".join(cells) + " |"


def _numbers(values: Iterator[Value]) -> int | None:
    """Return the most decimals of a column of numbers, or None for a column with text."""
    most = 0
    for value in values:
        if isinstance(value, str):
            return None
        for number in value if isinstance(value, list) else [value]:
            if isinstance(number, float):
                most = max(most, len(repr(number).partition(".")[2]))
    return most


def _cell(value: Value, digits: int | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return re.sub(r"(?<!\\)\|", r"\\|", value)
    shown = value if isinstance(value, list) else [value]
    return " / ".join(f"{number:,.{digits or 0}f}" for number in shown)


def published_files(root: Path) -> dict[str, str]:
    """Return what is made from the published data: a file's text by its path."""
    figures = Figures.read(root / PUBLISHED)
    readme = (root / README).read_text(encoding="utf-8")
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        msg = f"{README} lacks the line {BEGIN!r} or {END!r}"
        raise ValueError(msg)
    return {
        PAGE: page(figures),
        RAW_PAGE: raw_page(figures),
        README: f"{before}{BEGIN}\n\n{readme_table(figures)}\n\n{END}{after}",
        **{
            f"docs/bench-{chart.name}-{name}.svg": draw(chart, theme)
            for chart in charts(figures)
            for name, theme in THEMES.items()
        },
    }
