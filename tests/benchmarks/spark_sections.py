"""What the page says of Spark."""

from collections.abc import Iterator, Sequence
from statistics import median

from tests.benchmarks import spark_scan, spark_write
from tests.benchmarks.markdown import millions, ratio_text, section, table
from tests.benchmarks.pair_figure import PairFigure
from tests.benchmarks.ratio import faster
from tests.benchmarks.results import Results
from tests.benchmarks.spark_write import WriteFigure


def spark_table(results: Results) -> Iterator[str]:
    head = ("value bytes", "rows", "source", "M rows/s", "pylog / it")
    rows = (
        (
            str(result.data_set.value_bytes),
            f"{figure.records:,}",
            figure.reader,
            millions(figure),
            ""
            if name == spark_scan.OURS
            else ratio_text(faster(result.figures[spark_scan.OURS], figure)),
        )
        for result in results.spark
        for name, figure in result.figures.items()
    )
    yield from table(head, rows, left=3)
    sizes = ", ".join(f"{r.batch_rows} ({r.data_set.value_bytes} B)" for r in results.spark)
    yield ""
    yield (
        f"Full scan into the `noop` sink, {results.spark[0].settings}; four topic partitions, four "
        f"Parquet files of the same rows (pyarrow, snappy). Prebuilt: one batch of as many rows as "
        f"pylog's batches have, again and again: {sizes}; or 256 MB of such batches in each "
        "worker, so that memory is read, as pylog has to."
    )


def write_table(figures: Sequence[WriteFigure]) -> Iterator[str]:
    head = (
        *("value bytes", "written to", "rows"),
        *("seconds, median", "M rows/s", "MB/s of values"),
        *("processor seconds of Spark", "of the broker", "pylog / it"),
    )
    ours = {each.value_bytes: each for each in figures if each.way == spark_write.OURS}
    rows = (
        (
            *(str(each.value_bytes), each.way, f"{each.rows:,}"),
            f"{each.median_seconds:.2f}",
            f"{each.rows / each.median_seconds / 1e6:.2f}",
            f"{each.rows * each.value_bytes / each.median_seconds / 1e6:.0f}",
            f"{median(run.cpu_seconds for run in each.runs):.2f}",
            f"{median(run.broker_cpu_seconds for run in each.runs):.2f}",
            ""
            if each.way == spark_write.OURS
            else f"{ours[each.value_bytes].times_as_fast_as(each):.2f}",
        )
        for each in figures
    )
    yield from table(head, rows, left=2)
    yield ""
    yield (
        f"{spark_scan.MASTER}, four Spark partitions with a key of 8 B and a value, computed by "
        "each write anew; four partitions of a new topic, the sink's producers with their "
        "defaults (acks=all). pylog forces its files to the disk, the others do not."
    )


def pair_sections(results: Results) -> Iterator[str]:
    for title, pairs in (
        ("What is small, Spark, noop sink", results.small),
        ("Compaction by Spark, two cores", results.spark_cleaning),
        ("Spark's kafka source with a local broker, noop sink", results.kafka_source),
    ):
        if pairs:
            yield from section(title)
            yield from _pairs(pairs)


def _pairs(figures: Sequence[PairFigure]) -> Iterator[str]:
    times = ("seconds, median", "in workers")
    head = ("read", *times, "held against", *times)
    rows = (
        (
            f.name,
            f"{median(f.seconds):.3f}",
            f"{median(f.worker_seconds):.3f}",
            f.peer,
            f"{median(f.peer_seconds):.3f}",
            f"{median(f.peer_worker_seconds):.3f}",
        )
        for f in figures
    )
    yield from table(head, rows)
    yield ""
    yield "In workers: processor time of Spark's Python processes."
