"""What the page says of owned logs: appends, compaction, commits; and of threads."""

from collections.abc import Iterator

from benchmarks import cleaning, owned_logs
from benchmarks.ratio import faster
from benchmarks.results import Results
from benchmarks.tables import Table, megabytes, millions, ratio_cell, table


def own_log_tables(results: Results) -> Iterator[Table]:
    yield table(
        "Owned logs, one core",
        ("value bytes", "batch bytes", "what", "M records/s", "MB/s", "of encoding"),
        (
            (
                result.value_bytes,
                result.batch_bytes,
                name,
                millions(figure),
                megabytes(figure),
                None if name == owned_logs.ENCODE else ratio_cell(faster(figure, encoded)),
            )
            for result in results.own.appends
            for encoded in [result.figures[owned_logs.ENCODE]]
            for name, figure in result.figures.items()
        ),
        "Appending begins with batches that are ready: every checksum and record is checked, "
        "offsets and index entries are written, nothing is forced to disk. "
        "append_batches_as_leader is given all batches in one buffer.",
    )
    yield table(
        "Recovery of owned logs, one core",
        ("recovery after an unclean stop", "MB/s of log"),
        ((figure.reader, megabytes(figure)) for figure in results.own.recoveries),
    )


def cleaning_section(results: Results) -> Iterator[Table]:
    if not results.cleaning:
        return
    head = (
        *("codec", "records", "live", "cleaner"),
        *("M records/s", "MB/s of log", "CPU µs/record", "peak MB"),
    )
    rows = (
        (
            *(result.codec, figure.records, result.live_records, name),
            *(millions(figure), megabytes(figure), round(figure.best_cpu_us_per_record, 3)),
            round(result.peak_mb) if name == cleaning.OURS else None,
        )
        for result in results.cleaning
        for name, figure in result.figures.items()
    )
    title = "Compaction of a partition, everything dirty, 20 records of 200 B a key"
    yield table(title, head, rows)


def thread_and_commit_sections(results: Results) -> Iterator[Table]:
    if results.threads.two:
        rows = (
            (codec, megabytes(results.threads.one[codec]), megabytes(two))
            for codec, two in results.threads.two.items()
        )
        head = ("codec", "MB/s of log, one thread", "two threads")
        yield table("Two threads, records of 1000 B", head, rows)
    if results.commits:
        committed = (
            (
                f.batch_bytes,
                round(f.job_bytes / 1e6),
                f.files,
                f.batches,
                sorted(round(run.seconds, 2) for run in f.runs),
            )
            for f in results.commits
        )
        columns = (
            "bytes of a batch",
            "MB of the job",
            "files",
            "batches",
            "seconds of each commit",
        )
        yield table("Commit of a job that is staged", columns, committed)
