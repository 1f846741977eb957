"""What the page says of operators' tools."""

from collections.abc import Iterator

from tests.benchmarks.markdown import megabytes, millions, section, table
from tests.benchmarks.results import Results


def tool_sections(results: Results) -> Iterator[str]:
    if results.statistics:
        yield from section("Statistics, one core")
        statistics = (
            (f.reader, f"{f.log_bytes / 1e6:.0f}", megabytes(f), millions(f))
            for f in results.statistics
        )
        head = ("data set, what is read", "MB of log", "MB/s of log", "M records/s")
        yield from table(head, statistics)
    if results.examined:
        yield from section("`pylog doctor`, one thread")
        examined = (
            (f.reader, f"{f.log_bytes / 1e6:.0f}", megabytes(f), millions(f))
            for f in results.examined
        )
        yield from table(("data set", "MB of log", "MB/s of log", "M records/s"), examined)
    if results.dumping:
        yield from section("Dumping 500 MB of records of 100 B")
        dumped = (
            (f.reader, f"{f.best_seconds:.2f} / {f.median_seconds:.2f}") for f in results.dumping
        )
        yield from table(("command", "seconds, best / median"), dumped)
    if results.searches:
        yield from section("Search for a value that is nowhere, one thread")
        searched = (
            (f.reader, megabytes(f), f"{f.best_cpu_us_per_record:.3f}") for f in results.searches
        )
        yield from table(("reader: data set", "MB/s of log", "CPU µs/record"), searched)
