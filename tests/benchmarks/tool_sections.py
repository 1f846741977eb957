"""What the page says of operators' tools."""

from collections.abc import Iterator

from tests.benchmarks.results import Results
from tests.benchmarks.tables import Table, megabytes, seconds, speeds, table


def tool_sections(results: Results) -> Iterator[Table]:
    yield from speeds("Statistics, one core", "data set, what is read", results.statistics)
    yield from speeds("`pylog doctor`, one thread", "data set", results.examined)
    if results.dumping:
        dumped = ((f.reader, seconds(f)) for f in results.dumping)
        yield table("Dumping 500 MB of records of 100 B", ("command", "seconds"), dumped)
    if results.searches:
        searched = (
            (f.reader, megabytes(f), round(f.best_cpu_us_per_record, 3)) for f in results.searches
        )
        head = ("reader: data set", "MB/s of log", "CPU µs/record")
        yield table("Search for a value that is nowhere, one thread", head, searched)
