"""What the page says of operators' tools."""

from collections.abc import Iterator

from benchmarks.results import Results
from benchmarks.serving import ReadFigure
from benchmarks.tables import Table, megabytes, seconds, speeds, table


def tool_sections(results: Results) -> Iterator[Table]:
    yield from speeds("Statistics, one core", "data set, what is read", results.statistics)
    yield from speeds("`pylog doctor`, one thread", "data set", results.examined)
    if results.dumping:
        dumped = ((f.reader, seconds(f)) for f in results.dumping)
        yield table("Dumping 500 MB of records of 100 B", ("command", "seconds"), dumped)
    yield from _serving(results)
    if results.searches:
        searched = (
            (f.reader, megabytes(f), round(f.best_cpu_us_per_record, 3)) for f in results.searches
        )
        head = ("reader: data set", "MB/s of log", "CPU µs/record")
        yield table("Search for a value that is nowhere, one thread", head, searched)


def _serving(results: Results) -> Iterator[Table]:
    if results.serving:
        speed = "MB/s of log", "CPU s/GB"
        first = (
            (f"{f.server}: {f.data_set}", *_read(f.first))
            for f in results.serving
            if f.first is not None
        )
        title = "Serving a log to clients: the first read since the start, by a socket"
        yield table(title, ("server: data set", *speed), first)
        later = (
            (
                f"{f.server}, {f.client}: {f.data_set}",
                *_read(f.later),
                round(f.most_memory_bytes / 1e6),
            )
            for f in results.serving
        )
        head = ("server, client: data set", *speed, "memory, MB")
        yield table("Serving a log to clients", head, later)
    if results.first_record is not None:
        record = results.first_record
        title = f"First record of a served directory of {record.partitions:,} partitions"
        rows = [
            ("one partition", round(record.seconds_of_one, 2)),
            ("all partitions", round(record.seconds_of_all, 2)),
        ]
        yield table(title, ("client of", "seconds from the start of the process"), rows)


def _read(figure: ReadFigure) -> tuple[float, float]:
    return round(figure.megabytes_per_second), round(figure.cpu_seconds_per_gb, 2)
