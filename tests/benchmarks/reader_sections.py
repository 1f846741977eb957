"""What the page says of reading and encoding, without Spark."""

from collections.abc import Iterator

from tests.benchmarks import encoding
from tests.benchmarks.markdown import megabytes, millions, ratio_text, seconds, section, table
from tests.benchmarks.ratio import faster, over_floor
from tests.benchmarks.reading import AIOKAFKA, JAVA, OURS, OURS_UNCOMPRESSED, SetResult
from tests.benchmarks.results import Results


def _set_cells(result: SetResult) -> tuple[str, str, str]:
    data_set = result.data_set
    return str(data_set.value_bytes), f"v{data_set.magic}", data_set.codec


def reader_table(sets: list[SetResult]) -> Iterator[str]:
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
            f"{figure.best_cpu_us_per_record:.3f}",
        )
        for result in sets
        for peer, figure in result.figures.items()
        if peer != OURS_UNCOMPRESSED
    )
    yield from table(head, rows, left=4)


def ratio_table(sets: list[SetResult]) -> Iterator[str]:
    head = (
        *("value bytes", "format", "codec"),
        "pylog / Java",
        "pylog / aiokafka",
        "our time / (codec alone + our uncompressed decode)",
    )

    def against(result: SetResult, peer: str) -> str:
        found = result.figures.get(peer)
        return ratio_text(faster(result.figures[OURS], found) if found else None)

    rows = (
        (
            *_set_cells(result),
            against(result, JAVA),
            against(result, AIOKAFKA),
            ratio_text(over_floor(result)),
        )
        for result in sets
    )
    yield from table(head, rows, left=3)


def encoding_table(results: Results) -> Iterator[str]:
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
            str(result.value_bytes),
            figure.reader,
            millions(figure),
            megabytes(figure),
            f"{figure.best_cpu_us_per_record:.3f}",
            ""
            if name == encoding.OURS
            else ratio_text(faster(result.figures[encoding.OURS], figure)),
        )
        for result in results.encoding
        for name, figure in result.figures.items()
    )
    yield from table(head, rows, left=2)
    yield ""
    yield (
        f"The same records, in memory at the start, into the same batches of "
        f"{encoding.BATCH_BYTES:,} bytes, uncompressed, checksums included; the bytes of both are "
        f"equal."
    )


def substitutes_section(results: Results) -> Iterator[str]:
    found = results.substitutes
    if not found.arrow:
        return
    yield from section("Arrow's codecs in the place of their libraries, records of 1000 B")
    rows = (
        (
            *(work, codec),
            f"{libraries.best_cpu_us_per_record:.2f}",
            f"{arrow.best_cpu_us_per_record:.2f}",
            f"{arrow.best_cpu_us_per_record / libraries.best_cpu_us_per_record:.1f}",
            ratio_text(faster(libraries, arrow)),
        )
        for (work, codec), arrow in found.arrow.items()
        for libraries in [found.libraries[work, codec]]
    )
    head = (
        *("what", "codec", "CPU µs/record with the libraries", "with Arrow"),
        *("times as much", "records/s, libraries / Arrow"),
    )
    yield from table(head, rows, left=2)


def sections_of_many_segments(results: Results) -> Iterator[str]:
    if results.look_ups:
        yield from section("Look-ups in 1,024 sparse segments of 1 GiB")
        looked = (
            (f.name, f"{f.read_bytes / 1e3:.1f}", str(f.logs_opened), str(f.files_opened))
            for f in results.look_ups
        )
        yield from table(("look-up", "kB read", "segments opened", "files opened"), looked)
    if results.planning:
        yield from section("Planning")
        planned = ((f"{f.partitions:,}", seconds(f)) for f in results.planning)
        yield from table(("partitions of 50 segments", "seconds, best / median"), planned, left=0)
    if results.following:
        yield from section("A stream's trigger, 1,000 partitions of 50 segments")
        followed = ((f.name, seconds(f, 3)) for f in results.following)
        yield from table(("trigger", "driver's seconds, best / median"), followed)
