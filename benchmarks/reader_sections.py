"""What the page says of reading and encoding, without Spark."""

from collections.abc import Iterator

from benchmarks import encoding
from benchmarks.ratio import faster, over_floor
from benchmarks.reading import AIOKAFKA, JAVA, OURS, OURS_UNCOMPRESSED, SetResult
from benchmarks.results import Results
from benchmarks.tables import Cell, Table, megabytes, millions, ratio_cell, seconds, table


def _set_cells(result: SetResult) -> tuple[Cell, Cell, Cell]:
    data_set = result.data_set
    return data_set.value_bytes, f"v{data_set.magic}", data_set.codec


def reader_table(sets: list[SetResult]) -> Table:
    head = (
        *("value bytes", "format", "codec", "reader"),
        *("M records/s", "MB/s of log", "CPU µs/record"),
    )
    rows = (
        (
            *_set_cells(result),
            figure.reader,
            millions(figure),
            megabytes(figure),
            round(figure.best_cpu_us_per_record, 3),
        )
        for result in sets
        for peer, figure in result.figures.items()
        if peer != OURS_UNCOMPRESSED
    )
    return table("Readers, one core", head, rows)


def ratio_table(sets: list[SetResult]) -> Table:
    head = (
        *("value bytes", "format", "codec"),
        "pylog / Java",
        "pylog / aiokafka",
        "our time / (codec alone + our uncompressed decode)",
    )

    def against(result: SetResult, peer: str) -> Cell:
        found = result.figures.get(peer)
        return ratio_cell(faster(result.figures[OURS], found) if found else None)

    rows = (
        (
            *_set_cells(result),
            against(result, JAVA),
            against(result, AIOKAFKA),
            ratio_cell(over_floor(result)),
        )
        for result in sets
    )
    return table("Ratios of readers", head, rows)


def encoding_table(results: Results) -> Table:
    head = (
        "value bytes",
        "writer",
        "M records/s",
        "MB/s of batches",
        "CPU µs/record",
        "pylog / it",
    )
    rows = (
        (
            result.value_bytes,
            figure.reader,
            millions(figure),
            megabytes(figure),
            round(figure.best_cpu_us_per_record, 3),
            None
            if name == encoding.OURS
            else ratio_cell(faster(result.figures[encoding.OURS], figure)),
        )
        for result in results.encoding
        for name, figure in result.figures.items()
    )
    note = (
        f"The same records, in memory at the start, into the same batches of "
        f"{encoding.BATCH_BYTES:,} bytes, uncompressed, checksums included; the bytes of both are "
        f"equal."
    )
    return table("Arrow to batches, one core", head, rows, note)


def substitutes_section(results: Results) -> Iterator[Table]:
    found = results.substitutes
    if not found.arrow:
        return
    rows = (
        (
            *(work, codec),
            round(libraries.best_cpu_us_per_record, 2),
            round(arrow.best_cpu_us_per_record, 2),
            round(arrow.best_cpu_us_per_record / libraries.best_cpu_us_per_record, 1),
            ratio_cell(faster(libraries, arrow)),
        )
        for (work, codec), arrow in found.arrow.items()
        for libraries in [found.libraries[work, codec]]
    )
    head = (
        *("what", "codec", "CPU µs/record with the libraries", "with Arrow"),
        *("times as much", "records/s, libraries / Arrow"),
    )
    yield table("Arrow's codecs in the place of their libraries, records of 1000 B", head, rows)


def sections_of_many_segments(results: Results) -> Iterator[Table]:
    if results.look_ups:
        looked = (
            (f.name, round(f.read_bytes / 1e3, 1), f.logs_opened, f.files_opened)
            for f in results.look_ups
        )
        head = ("look-up", "kB read", "segments opened", "files opened")
        yield table("Look-ups in 1,024 sparse segments of 1 GiB", head, looked)
    if results.planning:
        planned = ((f.partitions, seconds(f)) for f in results.planning)
        yield table("Planning", ("partitions of 50 segments", "seconds"), planned)
    if results.following:
        followed = ((f.name, seconds(f, 3)) for f in results.following)
        title = "A stream's trigger, 1,000 partitions of 50 segments"
        yield table(title, ("trigger", "driver's seconds"), followed)
