"""The project's targets, and whether this run met them.

Ratios are taken round by round, of neighbours in time, and the median of the rounds decides: a
busy machine slows both sides of a round. The ratio of the best repetitions stands beside it. The
absolute speeds (header-only count, encoding) are decided by their best repetition.
"""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from tests.benchmarks import (
    cleaning,
    dumping,
    encoding,
    kafka_source,
    log_statistics,
    owned_logs,
    printing,
    searching,
    spark_cleaning,
    spark_scan,
    spark_small,
    spark_write,
    start_up,
)
from tests.benchmarks.following import NOTHING_NEW
from tests.benchmarks.measuring import Figure
from tests.benchmarks.pruning import FULL
from tests.benchmarks.reading import AIOKAFKA, CODEC_ALONE, JAVA, OURS, OURS_UNCOMPRESSED, SetResult
from tests.benchmarks.results import Results

JAVA_TIMES = {"none": 2.0, "lz4": 1.3, "snappy": 1.3, "zstd": 1.3}
AIOKAFKA_TIMES = 8.0
COMPRESSED_AT_MOST = 1.15
CYCLING_AT_LEAST = 0.95
COUNT_GB_PER_SECOND = 5.0
DOCTOR_GB_PER_SECOND = 1.0
ENCODE_RECORDS_PER_SECOND = 15e6  # at 100 B
ENCODE_BYTES_PER_SECOND = 3e9  # at 1000 B
ENCODE_JAVA_TIMES = {100: 2.0, 1000: 1.0}
APPEND_TIMES = 0.5
APPEND_BATCHES_TIMES = 5
RECOVERY_GB_PER_SECOND = 2.0
CLEANING_TIMES = {"none": 2.0, "lz4": 1.0, "zstd": 1.0}
CLEANING_MB = 400.0
SPARK_CLEANING_TIMES = 1.5
COMMIT_SECONDS = 1.0
LEAST_JOB_BYTES = 900_000_000  # a quick run says nothing of a job of 1 GB
LINES_PER_SECOND = 1e6
DUMP_TIMES = 10.0
SEARCH_GB_PER_SECOND = 1.5
MEMORY_MB = 32.0
THREADS_TIMES = 1.8
THREAD_MB = 32.0
REQUESTED_AT_MOST = 1.1
NOTHING_NEW_SECONDS = 0.5
PLANNING_SECONDS = 10.0
PLANNING_GROWTH = 2.3
PRUNING_TIMES = 20.0
PREDICATE_TIMES = 8.0
START_TIMES = 1.3
FIRST_CAT_TIMES = 5.8  # what it was when every process imported Numba
SMALL_TIMES = {
    spark_small.MANY: 10.0,
    spark_small.TASK: 1.15,
    spark_small.ONE_OFFSET: None,
    spark_small.COUNT: 0.1,
}
"""At most so many times the peer's time; None where no target is set."""

FRESH_SECONDS = 0.3
KAFKA_SOURCE_TIMES = {
    **{
        kafka_source.full_scan(value_bytes, with_sockets=with_sockets): 4.0
        for with_sockets in (True, False)
        for value_bytes in kafka_source.VALUE_SIZES
    },
    kafka_source.ONE_OFFSET: 1.0,
    kafka_source.ONE_PER_CENT: 1.0,
    kafka_source.PREDICATE: 10.0,
}
"""At least so many times as fast as Spark's own source."""

WRITE_TIMES = {
    (100, spark_write.KAFKA): 4.0,
    (1000, spark_write.KAFKA): 2.0,
    (100, spark_write.PARQUET): 0.5,
    (1000, spark_write.PARQUET): 0.5,
}
"""At least so many times as fast, by bytes of a value and peer."""

_NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of two times or rates: of the best repetitions, and the median of the rounds."""

    best: float
    median: float

    def __str__(self) -> str:
        """Median first: it is the one that decides."""
        return f"{self.median:.2f} (best {self.best:.2f})"


@dataclass(frozen=True, slots=True)
class Target:
    """One line of the table of targets; `met` is None where it was not measured."""

    text: str
    measured: str
    met: bool | None


def faster(figure: Figure, than: Figure) -> Ratio:
    """Return how many times the records a second of `than` `figure` reads."""
    scale = figure.records / than.records
    pairs = zip(than.seconds(), figure.seconds(), strict=True)
    return Ratio(
        scale * than.best_seconds / figure.best_seconds,
        scale * statistics.median(slow / fast for slow, fast in pairs),
    )


def over_floor(result: SetResult) -> Ratio | None:
    """Return our time over (codec alone + our uncompressed time), or None for such a set."""
    if CODEC_ALONE not in result.figures:
        return None
    whole = result.figures[OURS]
    codec, plain = result.figures[CODEC_ALONE], result.figures[OURS_UNCOMPRESSED]
    rounds = zip(whole.seconds(), codec.seconds(), plain.seconds(), strict=True)
    return Ratio(
        whole.best_seconds / (codec.best_seconds + plain.best_seconds),
        statistics.median(ours / (alone + decode) for ours, alone, decode in rounds),
    )


def _at_least(text: str, ratio: Ratio | None, limit: float) -> Target:
    if ratio is None:
        return Target(text, _NOT_MEASURED, None)
    return Target(text, str(ratio), ratio.median >= limit)


def _reading(results: Results) -> Iterator[Target]:
    by_set = {r.data_set.name: r.figures for r in results.sets}
    for value_bytes in (100, 1000):
        for codec, limit in JAVA_TIMES.items():
            figures = by_set.get(f"s{value_bytes}-{codec}", {})
            ratio = faster(figures[OURS], figures[JAVA]) if JAVA in figures else None
            text = f"{codec}, {value_bytes} B: ≥ {limit:g} times one thread of Kafka's Java classes"
            yield _at_least(text, ratio, limit)
    figures = by_set.get("s100-none", {})
    ratio = faster(figures[OURS], figures[AIOKAFKA]) if AIOKAFKA in figures else None
    text = f"none, 100 B: ≥ {AIOKAFKA_TIMES:g} times aiokafka"
    yield _at_least(text, ratio, AIOKAFKA_TIMES)
    for result in results.sets:
        name = result.data_set.name
        for peer, what in ((JAVA, "Kafka's Java classes"), (AIOKAFKA, "aiokafka")):
            if peer in result.figures:
                ratio = faster(result.figures[OURS], result.figures[peer])
                yield Target(f"{name}: faster than {what}", str(ratio), ratio.median > 1)
        if (ratio := over_floor(result)) is not None:
            text = (
                f"{name}: our time ≤ {COMPRESSED_AT_MOST} times (codec alone + uncompressed decode)"
            )
            yield Target(text, str(ratio), ratio.median <= COMPRESSED_AT_MOST)


def _spark(results: Results) -> Iterator[Target]:
    by_size = {result.data_set.value_bytes: result.figures for result in results.spark}
    for value_bytes in (100, 1000):
        figures = by_size.get(value_bytes)
        for peer, limit in ((spark_scan.CYCLING, CYCLING_AT_LEAST), (spark_scan.PARQUET, 1.0)):
            ratio = faster(figures[spark_scan.OURS], figures[peer]) if figures else None
            text = f"Spark scan, {value_bytes} B: ≥ {limit:g} times the rows/s of {peer}"
            yield _at_least(text, ratio, limit)


def _encoding(results: Results) -> Iterator[Target]:
    by_size = {result.value_bytes: result.figures for result in results.encoding}
    for value_bytes, limit in ENCODE_JAVA_TIMES.items():
        figures = by_size.get(value_bytes, {})
        name = f"Arrow to batches, {value_bytes} B"
        if not figures:
            yield Target(name, _NOT_MEASURED, None)
            continue
        ours = figures[encoding.OURS]
        if value_bytes == 100:
            rate, least, unit = ours.records, ENCODE_RECORDS_PER_SECOND, "M records/s"
            scale = 1e6
        else:
            rate, least, unit = ours.log_bytes, ENCODE_BYTES_PER_SECOND, "GB/s"
            scale = 1e9
        best = rate / ours.best_seconds
        yield Target(
            f"{name}: ≥ {least / scale:g} {unit}", f"{best / scale:.1f} (best)", best >= least
        )
        java = figures.get(encoding.JAVA)
        yield _at_least(
            f"{name}: ≥ {limit:g} times the records/s of {encoding.JAVA}",
            faster(ours, java) if java else None,
            limit,
        )


def _own(results: Results) -> Iterator[Target]:
    for result in results.own.appends:
        if result.batch_bytes == owned_logs.LARGE_BATCH_BYTES:
            yield _at_least(
                f"appending {result.value_bytes} B to the page cache, batches of 1 MiB: "
                f"≥ {APPEND_TIMES:g} times the speed of encoding",
                faster(result.figures[owned_logs.APPEND], result.figures[owned_logs.ENCODE]),
                APPEND_TIMES,
            )
        else:
            batches = result.figures[owned_logs.APPEND_BATCHES]
            yield _at_least(
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
    text = "opening 1,000 cleanly closed logs of 20 segments opens no .log"
    opened = results.own.opened
    if opened is None:
        yield Target(text, _NOT_MEASURED, None)
        return
    seconds = min(run.seconds for run in opened.runs)
    measured = f"{opened.logs_opened} opened, {seconds:.1f} s"
    yield Target(text, measured, opened.logs_opened == 0)


def _commits(results: Results) -> Iterator[Target]:
    text = f"commit of a job of 1 GB: ≤ {COMMIT_SECONDS:g} s"
    if not results.commits:
        yield Target(text, _NOT_MEASURED, None)
    for figure in results.commits:
        seconds = statistics.median(run.seconds for run in figure.runs)
        measured = f"{seconds:.2f} s, {figure.job_bytes / 1e9:.2f} GB"
        batches = f"{figure.batches:,} batches of {figure.batch_bytes:,} B"
        yield Target(
            f"{text}, staged files: {figure.files}, {batches}",
            measured,
            seconds <= COMMIT_SECONDS if figure.job_bytes >= LEAST_JOB_BYTES else None,
        )


def _count(results: Results) -> Iterator[Target]:
    text = f"header-only count, 16 KB batches: ≥ {COUNT_GB_PER_SECOND:g} GB/s of log"
    for figure in results.counts:
        rate = figure.log_bytes / figure.best_seconds / 1e9
        yield Target(
            f"{text} ({figure.reader})", f"{rate:.1f} GB/s (best)", rate >= COUNT_GB_PER_SECOND
        )
    if not results.counts:
        yield Target(text, _NOT_MEASURED, None)


def _statistics(results: Results) -> Iterator[Target]:
    text = f"`pylog stats` by headers, 16 KB batches: ≥ {COUNT_GB_PER_SECOND:g} GB/s of log"
    figures = [each for each in results.statistics if each.reader.endswith(log_statistics.HEADERS)]
    for figure in figures:
        rate = figure.log_bytes / figure.best_seconds / 1e9
        yield Target(
            f"{text} ({figure.reader})", f"{rate:.1f} GB/s (best)", rate >= COUNT_GB_PER_SECOND
        )
    if not figures:
        yield Target(text, _NOT_MEASURED, None)


def _doctor(results: Results) -> Iterator[Target]:
    text = f"doctor, uncompressed: ≥ {DOCTOR_GB_PER_SECOND:g} GB/s of log a core"
    for figure in results.examined:
        if "-none" not in figure.reader:
            continue  # the codec decides how fast that is
        rate = figure.log_bytes / min(run.cpu_seconds for run in figure.runs) / 1e9
        yield Target(
            f"{text} ({figure.reader})", f"{rate:.1f} GB/s (best)", rate >= DOCTOR_GB_PER_SECOND
        )
    if not results.examined:
        yield Target(text, _NOT_MEASURED, None)


def _printing(results: Results) -> Iterator[Target]:
    figures = {each.reader: each for each in results.printing}
    for command in (printing.JSON, printing.APPEND):
        text = f"`{command}`, 100 B: ≥ {LINES_PER_SECOND / 1e6:g} M records/s"
        if command not in figures:
            yield Target(text, _NOT_MEASURED, None)
            continue
        rate = figures[command].records / figures[command].median_seconds
        yield Target(text, f"{rate / 1e6:.2f} M records/s", rate >= LINES_PER_SECOND)


def _without_start(results: Results, name: str) -> Ratio:
    """Return how many times as fast as Kafka's tool ours dumps, both without their start."""
    figures = {each.reader: each for each in results.dumping}

    def seconds(tool: str) -> list[float]:
        starts = figures[dumping.STARTS[tool]].seconds()
        return [whole - start for whole, start in zip(figures[tool].seconds(), starts, strict=True)]

    ours, kafkas = seconds(name), seconds(dumping.KAFKAS)
    pairs = zip(kafkas, ours, strict=True)
    return Ratio(min(kafkas) / min(ours), statistics.median(slow / fast for slow, fast in pairs))


def _dumping(results: Results) -> Iterator[Target]:
    figures = {each.reader: each for each in results.dumping}
    for name in (dumping.OURS, dumping.OURS_JSON):
        text = f"`{name}`, 100 B: ≥ {DUMP_TIMES:g} times {dumping.KAFKAS}"
        if not figures:
            yield Target(text, _NOT_MEASURED, None)
            continue
        yield _at_least(text, faster(figures[name], figures[dumping.KAFKAS]), DUMP_TIMES)
        yield _at_least(f"{text}, without start", _without_start(results, name), DUMP_TIMES)


def _search(results: Results) -> Iterator[Target]:
    text = f"`pylog.search` for a value, uncompressed: ≥ {SEARCH_GB_PER_SECOND:g} GB/s a core"
    ours = [each for each in results.searches if each.reader.startswith(f"{searching.OURS}: ")]
    for figure in ours:
        if figure.reader.endswith("-none"):
            # Wall time of one thread is not less than the core's.
            rate = figure.log_bytes / figure.median_seconds / 1e9
            yield Target(
                f"{text} ({figure.reader.rpartition(' ')[2]})",
                f"{rate:.1f} GB/s",
                rate >= SEARCH_GB_PER_SECOND,
            )
    if not ours:
        yield Target(text, _NOT_MEASURED, None)


def _memory(results: Results) -> Iterator[Target]:
    text = f"peak memory of a 64 MB and a 1 GB segment within {MEMORY_MB:g} MB"
    if results.memory:
        small, large = results.memory
        more = large.median_mb - small.median_mb
        yield Target(text, f"{more:+.1f} MB", more <= MEMORY_MB)
    else:
        yield Target(text, _NOT_MEASURED, None)


def _cleaning(results: Results) -> Iterator[Target]:
    by_codec = {result.codec: result for result in results.cleaning}
    for codec, limit in CLEANING_TIMES.items():
        found = by_codec.get(codec)
        ratio = None
        if found is not None:
            ratio = faster(found.figures[cleaning.OURS], found.figures[cleaning.KAFKAS])
        text = f"compaction, {codec}: ≥ {limit:g} times Kafka's Cleaner"
        yield _at_least(text, ratio, limit)
        if found is not None:
            text = f"memory of compaction, {codec}: ≤ {CLEANING_MB:g} MB"
            yield Target(text, f"{found.peak_mb:.0f} MB", found.peak_mb <= CLEANING_MB)


def _spark_cleaning(results: Results) -> Iterator[Target]:
    text = f"compaction of many partitions by Spark: ≤ {SPARK_CLEANING_TIMES:g} times one process"
    if not results.spark_cleaning:
        yield Target(text, _NOT_MEASURED, None)
        return
    [many] = [each for each in results.spark_cleaning if each.name.endswith(spark_cleaning.OF_1_MB)]
    yield Target(text, f"{many.times:.2f}", many.times <= SPARK_CLEANING_TIMES)


def _threads(results: Results) -> Iterator[Target]:
    found = results.threads
    for codec, two in found.two.items():
        text = f"two threads, {codec}: ≥ {THREADS_TIMES:g} times one thread"
        yield _at_least(text, faster(two, found.one[codec]), THREADS_TIMES)
    peaks = found.peaks_mb
    for threads in sorted(peaks)[1:]:
        more = peaks[threads] - peaks[threads - 1]
        text = f"memory of thread {threads}: ≤ {THREAD_MB:g} MB more"
        yield Target(text, f"{more:+.1f} MB", more <= THREAD_MB)
    if not found.two:
        yield Target(f"two threads: ≥ {THREADS_TIMES:g} times one", _NOT_MEASURED, None)


def _remote(results: Results) -> Iterator[Target]:
    text = f"S3: bytes requested ≤ {REQUESTED_AT_MOST:g} times those needed"
    for figure in results.remote:
        measured = f"{figure.times:.3f} times"
        yield Target(f"{text} ({figure.name})", measured, figure.times <= REQUESTED_AT_MOST)
    if not results.remote:
        yield Target(text, _NOT_MEASURED, None)


def _look_ups(results: Results) -> Iterator[Target]:
    for figure in results.look_ups:
        text = f"1 TB of holes, {figure.name}: < 1 MB read, ≤ 3 segments opened"
        measured = f"{figure.read_bytes / 1e3:.0f} kB, {figure.logs_opened} segments"
        yield Target(text, measured, figure.read_bytes < 1_000_000 and figure.logs_opened <= 3)
    if not results.look_ups:
        yield Target("1 TB of holes: < 1 MB read, ≤ 3 segments opened", _NOT_MEASURED, None)


def _planning(results: Results) -> Iterator[Target]:
    text = "planning 1,000 partitions x 50 segments: < 10 s, ≤ 2.3 times as long as 500"
    if not results.planning:
        yield Target(text, _NOT_MEASURED, None)
        return
    half, whole = results.planning
    times = whole.median_seconds / half.median_seconds
    measured = f"{whole.median_seconds:.2f} s, {times:.2f} times"
    yield Target(
        text, measured, whole.median_seconds < PLANNING_SECONDS and times <= PLANNING_GROWTH
    )


def _following(results: Results) -> Iterator[Target]:
    text = "a stream's trigger with nothing new, 1,000 partitions x 50 segments: ≤ 0.5 s"
    for figure in results.following:
        if figure.name == NOTHING_NEW:
            measured = f"{figure.median_seconds:.3f} s"
            yield Target(text, measured, figure.median_seconds <= NOTHING_NEW_SECONDS)
    if not results.following:
        yield Target(text, _NOT_MEASURED, None)


def _pruning(results: Results) -> Iterator[Target]:
    figures = {figure.name: figure for figure in results.pruning}
    full = figures.pop(FULL, None)
    for name, figure in figures.items():
        exact = name.startswith("predicate")
        limit = PREDICATE_TIMES if exact and "newest" not in name else PRUNING_TIMES
        times = full.median_seconds / figure.median_seconds if full else 0.0
        best = full.best_seconds / figure.best_seconds if full else 0.0
        text = f"1 % of the time of 1 GB in Spark by {name}: ≥ {limit:g} times as fast as all"
        yield Target(text, f"{times:.1f} (best {best:.1f})", times >= limit)
    if not figures:
        yield Target("1 % of the time of 1 GB in Spark", _NOT_MEASURED, None)


def _small(results: Results) -> Iterator[Target]:
    figures = {figure.name: figure for figure in results.small}
    for name, limit in SMALL_TIMES.items():
        figure = figures.get(name)
        if limit is None:
            continue
        text = f"Spark, {name}: ≤ {limit:g} times"
        if figure is None:
            yield Target(text, _NOT_MEASURED, None)
        else:
            measured = f"{figure.times:.2f}"
            yield Target(f"{text} the time of {figure.peer}", measured, figure.times <= limit)


def _fresh(results: Results) -> Iterator[Target]:
    text = f"Spark, the first task of a worker: ≤ {FRESH_SECONDS:g} s longer than prebuilt Arrow's"
    figure = next((each for each in results.small if each.name == spark_small.FRESH), None)
    if figure is None:
        yield Target(text, _NOT_MEASURED, None)
        return
    rounds = zip(figure.seconds, figure.peer_seconds, strict=True)
    longer = statistics.median(ours - peer for ours, peer in rounds)
    seconds = longer * spark_scan.CORES / spark_small.FRESH_TASKS
    yield Target(text, f"{seconds:+.3f} s", seconds <= FRESH_SECONDS)


def _kafka_source(results: Results) -> Iterator[Target]:
    figures = {figure.name: figure for figure in results.kafka_source}
    for name, limit in KAFKA_SOURCE_TIMES.items():
        text = f"{name}: ≥ {limit:g} times as fast as {kafka_source.PEER}"
        if name not in figures:
            yield Target(text, _NOT_MEASURED, None)
            continue
        times = 1 / figures[name].times
        yield Target(text, f"{times:.2f}", times >= limit)


def _writes(results: Results) -> Iterator[Target]:
    figures = {(each.value_bytes, each.way): each for each in results.writes}
    for (value_bytes, peer), limit in WRITE_TIMES.items():
        text = f"Spark writes a DataFrame, {value_bytes} B: ≥ {limit:g} times as fast as to {peer}"
        if not figures:
            yield Target(text, _NOT_MEASURED, None)
            continue
        ours = figures[value_bytes, spark_write.OURS]
        times = ours.times_as_fast_as(figures[value_bytes, peer])
        yield Target(text, f"{times:.2f}", times >= limit)


def _start_up(results: Results) -> Iterator[Target]:
    figures = {figure.command: figure for figure in results.start_up}
    for name, peer, limit in (
        (start_up.CAT_HEAD, start_up.IMPORTS, START_TIMES),
        (start_up.LS, start_up.IMPORTS, START_TIMES),
        (start_up.FIRST_CAT, start_up.IMPORT_NUMBA, FIRST_CAT_TIMES),
    ):
        text = f"{name} ≤ {limit:g} times `{peer}`"
        if not figures:
            yield Target(text, _NOT_MEASURED, None)
            continue
        ours, others = figures[name], figures[peer]
        pairs = zip(ours.seconds, others.seconds, strict=True)
        median = statistics.median(mine / other for mine, other in pairs)
        ratio = Ratio(ours.best_seconds / others.best_seconds, median)
        yield Target(text, str(ratio), median <= limit)


def targets(results: Results) -> list[Target]:
    """Return every target of the reader with what this run says of it."""
    parts = (
        _reading,
        _encoding,
        _own,
        _cleaning,
        _spark_cleaning,
        _commits,
        _spark,
        _count,
        _statistics,
        _doctor,
        _printing,
        _dumping,
        _search,
        _memory,
        _threads,
        _look_ups,
        _planning,
        _following,
        _pruning,
        _small,
        _fresh,
        _kafka_source,
        _writes,
        _remote,
        _start_up,
    )
    return [target for part in parts for target in part(results)]
