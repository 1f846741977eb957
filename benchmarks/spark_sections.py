"""What the page says of Spark."""

from collections.abc import Iterator, Sequence
from statistics import median

from benchmarks import spark_scan, spark_write
from benchmarks.pair_figure import PairFigure
from benchmarks.ratio import faster
from benchmarks.results import Results
from benchmarks.spark_write import WriteFigure
from benchmarks.tables import Table, millions, ratio_cell, table


def spark_table(results: Results) -> Table:
    head = ("value bytes", "rows", "source", "M rows/s", "pylog / it")
    rows = (
        (
            result.data_set.value_bytes,
            figure.records,
            figure.reader,
            millions(figure),
            None
            if name == spark_scan.OURS
            else ratio_cell(faster(result.figures[spark_scan.OURS], figure)),
        )
        for result in results.spark
        for name, figure in result.figures.items()
    )
    sizes = ", ".join(f"{r.batch_rows} ({r.data_set.value_bytes} B)" for r in results.spark)
    note = (
        f"Full scan into the `noop` sink, {results.spark[0].settings}; four topic partitions, four "
        f"Parquet files of the same rows (pyarrow, snappy). Prebuilt: one batch of as many rows as "
        f"pylog's batches have, again and again: {sizes}; or 256 MB of such batches in each "
        "worker, so that memory is read, as pylog has to."
    )
    return table("Spark scans", head, rows, note)


def write_table(figures: Sequence[WriteFigure]) -> Table:
    head = (
        *("value bytes", "written to", "rows"),
        *("seconds, median", "M rows/s", "MB/s of values"),
        *("processor seconds of Spark", "of the broker", "pylog / it"),
    )
    ours = {each.value_bytes: each for each in figures if each.way == spark_write.OURS}
    rows = (
        (
            *(each.value_bytes, each.way, each.rows),
            round(each.median_seconds, 2),
            round(each.rows / each.median_seconds / 1e6, 2),
            round(each.rows * each.value_bytes / each.median_seconds / 1e6),
            round(median(run.cpu_seconds for run in each.runs), 2),
            round(median(run.broker_cpu_seconds for run in each.runs), 2),
            None
            if each.way == spark_write.OURS
            else round(ours[each.value_bytes].times_as_fast_as(each), 2),
        )
        for each in figures
    )
    note = (
        f"{spark_scan.MASTER}, four Spark partitions with a key of 8 B and a value, computed by "
        "each write anew; four partitions of a new topic, the sink's producers with their "
        "defaults (acks=all). pylog forces its files to the disk, the others do not."
    )
    return table("A DataFrame written by Spark", head, rows, note)


def pair_sections(results: Results) -> Iterator[Table]:
    for title, pairs in (
        ("What is small, Spark, noop sink", results.small),
        ("Compaction by Spark, two cores", results.spark_cleaning),
        ("Spark's kafka source with a local broker, noop sink", results.kafka_source),
        ("Typed values in Spark, noop sink", results.typed),
    ):
        if pairs:
            yield _pairs(title, pairs)


def _pairs(title: str, figures: Sequence[PairFigure]) -> Table:
    head = (
        *("read", "seconds, median", "in workers"),
        *("held against", "its seconds, median", "in its workers"),
    )
    rows = (
        (
            f.name,
            round(median(f.seconds), 3),
            round(median(f.worker_seconds), 3),
            f.peer,
            round(median(f.peer_seconds), 3),
            round(median(f.peer_worker_seconds), 3),
        )
        for f in figures
    )
    return table(title, head, rows, "In workers: processor time of Spark's Python processes.")
