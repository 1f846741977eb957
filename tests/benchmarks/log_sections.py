"""What the page says of owned logs: appends, compaction, commits; and of threads."""

from collections.abc import Iterator

from tests.benchmarks import cleaning, owned_logs
from tests.benchmarks.markdown import megabytes, millions, ratio_text, section, table
from tests.benchmarks.ratio import faster
from tests.benchmarks.results import Results


def own_log_tables(results: Results) -> Iterator[str]:
    yield from table(
        ("value bytes", "batch bytes", "what", "M records/s", "MB/s", "of encoding"),
        (
            (
                str(result.value_bytes),
                f"{result.batch_bytes:,}",
                name,
                millions(figure),
                megabytes(figure),
                "" if name == owned_logs.ENCODE else ratio_text(faster(figure, encoded)),
            )
            for result in results.own.appends
            for encoded in [result.figures[owned_logs.ENCODE]]
            for name, figure in result.figures.items()
        ),
        left=3,
    )
    yield ""
    yield (
        "Appending begins with batches that are ready: every checksum and record is checked, "
        "offsets and index entries are written, nothing is forced to disk. "
        "append_batches_as_leader is given all batches in one buffer."
    )
    yield ""
    yield from table(
        ("recovery after an unclean stop", "MB/s of log"),
        ((figure.reader, megabytes(figure)) for figure in results.own.recoveries),
    )


def cleaning_section(results: Results) -> Iterator[str]:
    if not results.cleaning:
        return
    yield from section("Compaction of a partition, everything dirty, 20 records of 200 B a key")
    head = (
        *("codec", "records", "live", "cleaner"),
        *("M records/s", "MB/s of log", "CPU µs/record", "peak MB"),
    )
    rows = (
        (
            *(result.codec, f"{figure.records:,}", f"{result.live_records:,}", name),
            *(millions(figure), megabytes(figure), f"{figure.best_cpu_us_per_record:.3f}"),
            f"{result.peak_mb:.0f}" if name == cleaning.OURS else "",
        )
        for result in results.cleaning
        for name, figure in result.figures.items()
    )
    yield from table(head, rows, left=4)


def thread_and_commit_sections(results: Results) -> Iterator[str]:
    if results.threads.two:
        yield from section("Two threads, records of 1000 B")
        rows = (
            (codec, megabytes(results.threads.one[codec]), megabytes(two))
            for codec, two in results.threads.two.items()
        )
        yield from table(("codec", "MB/s of log, one thread", "two threads"), rows)
    if results.commits:
        yield from section("Commit of a job that is staged")
        committed = (
            (
                f"{f.batch_bytes:,}",
                f"{f.job_bytes / 1e6:.0f}",
                f"{f.files}",
                f"{f.batches:,}",
                " / ".join(f"{run.seconds:.2f}" for run in sorted(f.runs, key=lambda r: r.seconds)),
            )
            for f in results.commits
        )
        head = ("bytes of a batch", "MB of the job", "files", "batches", "seconds of each commit")
        yield from table(head, committed, left=0)
