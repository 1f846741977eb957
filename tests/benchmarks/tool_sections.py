"""What the page says of operators' tools."""

from collections.abc import Iterator

from tests.benchmarks.markdown import megabytes, seconds, section, speed_section, table
from tests.benchmarks.results import Results


def tool_sections(results: Results) -> Iterator[str]:
    yield from speed_section("Statistics, one core", "data set, what is read", results.statistics)
    yield from speed_section("`pylog doctor`, one thread", "data set", results.examined)
    if results.dumping:
        yield from section("Dumping 500 MB of records of 100 B")
        dumped = ((f.reader, seconds(f)) for f in results.dumping)
        yield from table(("command", "seconds, best / median"), dumped)
    if results.searches:
        yield from section("Search for a value that is nowhere, one thread")
        searched = (
            (f.reader, megabytes(f), f"{f.best_cpu_us_per_record:.3f}") for f in results.searches
        )
        yield from table(("reader: data set", "MB/s of log", "CPU µs/record"), searched)
