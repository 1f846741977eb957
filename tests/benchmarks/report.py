"""The results as Markdown: targets first, then the tables they come from."""

from collections.abc import Iterator

from tests.benchmarks.data_sets import QUICK_DIVISOR
from tests.benchmarks.log_sections import (
    cleaning_section,
    own_log_tables,
    thread_and_commit_sections,
)
from tests.benchmarks.markdown import seconds, section, speed_section, table
from tests.benchmarks.reader_sections import (
    encoding_table,
    ratio_table,
    reader_table,
    sections_of_many_segments,
    substitutes_section,
)
from tests.benchmarks.results import Results
from tests.benchmarks.spark_sections import (
    pair_sections,
    spark_table,
    write_table,
)
from tests.benchmarks.targets import targets
from tests.benchmarks.tool_sections import (
    tool_sections,
)

_MET = {True: "yes", False: "**no**", None: "-"}


_HOW = f"""\
Every reader checks the CRC of every batch and reads every field of every record on one core, the
files in the page cache. Readers of a data set take turns, after each was checked against the sums
of what was written and warmed up; `best / median` are over the rounds. MB/s (10^6) is of `.log`
files: compressed bytes for compressed sets. *pylog* ends with Arrow record batches and starts at
the file; *aiokafka* and *kafka-python* parse bytes already in memory, of a leading sample;
*codec alone* is the fastest of the libraries at hand on batches found beforehand, no CRC;
*Kafka's Java FileRecords* is `ensureValid` and key and value of each record copied to `byte[]`,
one thread of a JVM warm for that data set. CPU is of the whole process: with helper threads (the
JVM's compiler and collector) it exceeds the wall time. Records: 8-byte keys, JSON text as value,
CreateTime; batches hold 16 KB of records uncompressed, 64 KB (before compression) compressed; in
v0 and v1 single messages, or wrappers of 64 KB of values, whose messages' checksums *pylog* checks,
too.
`--quick` uses 1/{QUICK_DIVISOR} of the data: its figures are for trying the program out."""


def _others(results: Results) -> Iterator[str]:
    yield from speed_section("Header-only count", "data set", results.counts)
    if results.printing:
        yield from section("Lines of records of 100 B")
        printed = (
            (
                f.reader,
                f"{f.records / f.median_seconds / 1e6:.2f}",
                f"{f.best_cpu_us_per_record:.2f}",
            )
            for f in results.printing
        )
        yield from table(("command", "M records/s, median", "processor µs a record"), printed)
    yield from tool_sections(results)
    if results.memory:
        yield from section("Memory")
        rows_of_memory = (
            (f"{f.log_bytes / (1 << 20):.0f}", f"{f.median_mb:.0f}") for f in results.memory
        )
        yield from table(("MiB of segment", "peak MiB of draining it"), rows_of_memory, left=0)
    yield from cleaning_section(results)
    yield from thread_and_commit_sections(results)
    yield from sections_of_many_segments(results)
    if results.pruning:
        yield from section("1 % of the time of 1 GB, Spark, noop sink")
        pruned = ((f.name, f"{f.rows:,}", seconds(f, 3)) for f in results.pruning)
        yield from table(("read", "rows", "seconds, best / median"), pruned)
    yield from pair_sections(results)
    if results.writes:
        yield from section("A DataFrame written by Spark")
        yield from write_table(results.writes)
    if results.remote:
        yield from section("Remote")
        rows_of_remote = (
            (
                f.name,
                f"{f.needed_bytes / 1e6:.2f}",
                f"{f.requested_bytes / 1e6:.2f}",
                f"{f.gets} + {f.heads} + {f.lists}",
            )
            for f in results.remote
        )
        head = ("read of 3 segments of 64 MiB on S3", "MB needed", "requested", "GET + HEAD + LIST")
        yield from table(head, rows_of_remote)
    if results.start_up:
        yield from section("Start-up")
        times = ((f.command, seconds(f)) for f in results.start_up)
        yield from table(("command", "seconds, best / median"), times)


def _lines(results: Results, machine: list[str], command: str) -> Iterator[str]:
    yield from ("# Benchmarks", "", f"Written by `{command}` on", "")
    yield from machine
    yield from ("", _HOW)
    if results.notes:
        yield from ("", "Left out:", "", *(f"- {note}" for note in results.notes))
    yield from section("Targets")
    lines = ((t.text, t.measured, _MET[t.met]) for t in targets(results))
    yield from table(("target", "measured", "met?"), lines, left=3)
    yield from ("", "Ratios: median of the rounds, which decides, and the ratio of the bests.")
    if results.sets:
        yield from section("Readers, one core")
        yield from reader_table(results.sets)
        yield from section("Ratios")
        yield from ratio_table(results.sets)
    yield from substitutes_section(results)
    if results.encoding:
        yield from section("Arrow to batches, one core")
        yield from encoding_table(results)
    if results.own.appends:
        yield from section("Owned logs, one core")
        yield from own_log_tables(results)
    if results.spark:
        yield from section("Spark")
        yield from spark_table(results)
    yield from _others(results)


def report(results: Results, machine: list[str], command: str) -> str:
    """Return the whole page."""
    return "\n".join(_lines(results, machine, command)) + "\n"
