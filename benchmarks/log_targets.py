"""The targets of owned logs: appends, recovery, compaction, commits of jobs."""

import statistics
from collections.abc import Iterator

from benchmarks import cleaning, owned_logs
from benchmarks.ratio import faster
from benchmarks.results import Results
from benchmarks.target import NOT_MEASURED, Target, at_least

APPEND_TIMES = 0.5
APPEND_BATCHES_TIMES = 5
RECOVERY_GB_PER_SECOND = 2.0
CLEANING_TIMES = {"none": 2.0, "lz4": 1.0, "zstd": 1.0}
CLEANING_MB = 400.0
COMMIT_SECONDS = 1.0
LEAST_JOB_BYTES = 900_000_000  # a quick run says nothing of a job of 1 GB


def own_targets(results: Results) -> Iterator[Target]:
    for result in results.own.appends:
        if result.batch_bytes == owned_logs.LARGE_BATCH_BYTES:
            yield at_least(
                f"appending {result.value_bytes} B to the page cache, batches of 1 MiB: "
                f"≥ {APPEND_TIMES:g} times the speed of encoding",
                faster(result.figures[owned_logs.APPEND], result.figures[owned_logs.ENCODE]),
                APPEND_TIMES,
            )
        else:
            batches = result.figures[owned_logs.APPEND_BATCHES]
            yield at_least(
                f"appending {result.value_bytes} B, batches of 16 KB at once: "
                f"≥ {APPEND_BATCHES_TIMES:g} times the speed of one by one",
                faster(batches, result.figures[owned_logs.APPEND]),
                APPEND_BATCHES_TIMES,
            )
    for figure in results.own.recoveries:
        rate = figure.log_bytes / figure.best_seconds / 1e9
        yield Target(
            f"{figure.reader}: ≥ {RECOVERY_GB_PER_SECOND:g} GB/s",
            f"{rate:.1f} GB/s (best)",
            rate >= RECOVERY_GB_PER_SECOND,
        )
    text = "opening 1,000 cleanly closed logs of 20 segments opens one .log each, for its end"
    opened = results.own.opened
    if opened is None:
        yield Target(text, NOT_MEASURED, None)
        return
    seconds = min(run.seconds for run in opened.runs)
    measured = f"{opened.logs_opened} opened, {seconds:.1f} s"
    yield Target(text, measured, opened.logs_opened <= opened.partitions)


def cleaning_targets(results: Results) -> Iterator[Target]:
    by_codec = {result.codec: result for result in results.cleaning}
    for codec, limit in CLEANING_TIMES.items():
        found = by_codec.get(codec)
        ratio = None
        if found is not None:
            ratio = faster(found.figures[cleaning.OURS], found.figures[cleaning.KAFKAS])
        text = f"compaction, {codec}: ≥ {limit:g} times Kafka's Cleaner"
        yield at_least(text, ratio, limit)
        if found is not None:
            text = f"memory of compaction, {codec}: ≤ {CLEANING_MB:g} MB"
            yield Target(text, f"{found.peak_mb:.0f} MB", found.peak_mb <= CLEANING_MB)


def commits_targets(results: Results) -> Iterator[Target]:
    text = f"commit of a job of 1 GB: ≤ {COMMIT_SECONDS:g} s"
    if not results.commits:
        yield Target(text, NOT_MEASURED, None)
    for figure in results.commits:
        seconds = statistics.median(run.seconds for run in figure.runs)
        measured = f"{seconds:.2f} s, {figure.job_bytes / 1e9:.2f} GB"
        batches = f"{figure.batches:,} batches of {figure.batch_bytes:,} B"
        yield Target(
            f"{text}, staged files: {figure.files}, {batches}",
            measured,
            seconds <= COMMIT_SECONDS if figure.job_bytes >= LEAST_JOB_BYTES else None,
        )
