"""What a run measured, as the tables of the data file."""

from collections.abc import Iterator

from benchmarks.log_sections import (
    cleaning_section,
    own_log_tables,
    thread_and_commit_sections,
)
from benchmarks.reader_sections import (
    encoding_table,
    ratio_table,
    reader_table,
    sections_of_many_segments,
    substitutes_section,
)
from benchmarks.results import Results
from benchmarks.spark_sections import pair_sections, spark_table, write_table
from benchmarks.tables import Table, seconds, speeds, table
from benchmarks.tool_sections import tool_sections


def tables_of(results: Results) -> Iterator[Table]:
    """Yield a table for each part that was measured."""
    if results.sets:
        yield reader_table(results.sets)
        yield ratio_table(results.sets)
    yield from substitutes_section(results)
    if results.encoding:
        yield encoding_table(results)
    if results.own.appends:
        yield from own_log_tables(results)
    if results.spark:
        yield spark_table(results)
    yield from speeds("Header-only count", "data set", results.counts)
    yield from _printing_and_memory(results)
    yield from cleaning_section(results)
    yield from thread_and_commit_sections(results)
    yield from sections_of_many_segments(results)
    if results.pruning:
        pruned = ((f.name, f.rows, seconds(f, 3)) for f in results.pruning)
        title = "1 % of the time of 1 GB, Spark, noop sink"
        yield table(title, ("read", "rows", "seconds"), pruned)
    yield from pair_sections(results)
    if results.writes:
        yield write_table(results.writes)
    yield from _remote_and_start_up(results)


def _printing_and_memory(results: Results) -> Iterator[Table]:
    if results.printing:
        printed = (
            (
                f.reader,
                round(f.records / f.median_seconds / 1e6, 2),
                round(f.best_cpu_us_per_record, 2),
            )
            for f in results.printing
        )
        head = ("command", "M records/s, median", "CPU µs/record")
        yield table("Lines of records of 100 B", head, printed)
    yield from tool_sections(results)
    if results.memory:
        drained = ((round(f.log_bytes / (1 << 20)), round(f.median_mb)) for f in results.memory)
        yield table("Memory", ("MiB of segment", "peak MiB of draining it"), drained)


def _remote_and_start_up(results: Results) -> Iterator[Table]:
    if results.remote:
        requested = (
            (
                *(f.name, round(f.needed_bytes / 1e6, 2), round(f.requested_bytes / 1e6, 2)),
                *(f.gets, f.heads, f.lists),
            )
            for f in results.remote
        )
        head = ("read of 3 segments of 64 MiB on S3", "MB needed", "MB requested")
        yield table("Remote", (*head, "GET", "HEAD", "LIST"), requested)
    if results.start_up:
        times = ((f.command, seconds(f)) for f in results.start_up)
        yield table("Start-up", ("command", "seconds"), times)
