"""The targets of reading and encoding on one machine, without Spark."""

from collections.abc import Iterator

from benchmarks import encoding
from benchmarks.ratio import faster, over_floor
from benchmarks.reading import AIOKAFKA, JAVA, OURS
from benchmarks.results import Results
from benchmarks.target import NOT_MEASURED, Target, at_least

JAVA_TIMES = {"none": 2.0, "lz4": 1.3, "snappy": 1.3, "zstd": 1.3}
AIOKAFKA_TIMES = 8.0
COMPRESSED_AT_MOST = 1.15
ENCODE_RECORDS_PER_SECOND = 15e6  # at 100 B
ENCODE_BYTES_PER_SECOND = 3e9  # at 1000 B
ENCODE_JAVA_TIMES = {100: 2.0, 1000: 1.0}
MEMORY_MB = 32.0
THREADS_TIMES = 1.8
THREAD_MB = 32.0
REQUESTED_AT_MOST = 1.1
PLANNING_SECONDS = 10.0
PLANNING_GROWTH = 2.3


def reading_targets(results: Results) -> Iterator[Target]:
    by_set = {r.data_set.name: r.figures for r in results.sets}
    for value_bytes in (100, 1000):
        for codec, limit in JAVA_TIMES.items():
            figures = by_set.get(f"s{value_bytes}-{codec}", {})
            ratio = faster(figures[OURS], figures[JAVA]) if JAVA in figures else None
            text = f"{codec}, {value_bytes} B: ≥ {limit:g} times one thread of Kafka's Java classes"
            yield at_least(text, ratio, limit)
    figures = by_set.get("s100-none", {})
    ratio = faster(figures[OURS], figures[AIOKAFKA]) if AIOKAFKA in figures else None
    text = f"none, 100 B: ≥ {AIOKAFKA_TIMES:g} times aiokafka"
    yield at_least(text, ratio, AIOKAFKA_TIMES)
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


def encoding_targets(results: Results) -> Iterator[Target]:
    by_size = {result.value_bytes: result.figures for result in results.encoding}
    for value_bytes, limit in ENCODE_JAVA_TIMES.items():
        figures = by_size.get(value_bytes, {})
        name = f"Arrow to batches, {value_bytes} B"
        if not figures:
            yield Target(name, NOT_MEASURED, None)
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
        yield at_least(
            f"{name}: ≥ {limit:g} times the records/s of {encoding.JAVA}",
            faster(ours, java) if java else None,
            limit,
        )


def memory_targets(results: Results) -> Iterator[Target]:
    text = f"peak memory of a 64 MB and a 1 GB segment within {MEMORY_MB:g} MB"
    if results.memory:
        small, large = results.memory
        more = large.median_mb - small.median_mb
        yield Target(text, f"{more:+.1f} MB", more <= MEMORY_MB)
    else:
        yield Target(text, NOT_MEASURED, None)


def threads_targets(results: Results) -> Iterator[Target]:
    found = results.threads
    for codec, two in found.two.items():
        text = f"two threads, {codec}: ≥ {THREADS_TIMES:g} times one thread"
        yield at_least(text, faster(two, found.one[codec]), THREADS_TIMES)
    peaks = found.peaks_mb
    for threads in sorted(peaks)[1:]:
        more = peaks[threads] - peaks[threads - 1]
        text = f"memory of thread {threads}: ≤ {THREAD_MB:g} MB more"
        yield Target(text, f"{more:+.1f} MB", more <= THREAD_MB)
    if not found.two:
        yield Target(f"two threads: ≥ {THREADS_TIMES:g} times one", NOT_MEASURED, None)


def look_ups_targets(results: Results) -> Iterator[Target]:
    for figure in results.look_ups:
        text = f"1 TB of holes, {figure.name}: < 1 MB read, ≤ 3 segments opened"
        measured = f"{figure.read_bytes / 1e3:.0f} kB, {figure.logs_opened} segments"
        yield Target(text, measured, figure.read_bytes < 1_000_000 and figure.logs_opened <= 3)
    if not results.look_ups:
        yield Target("1 TB of holes: < 1 MB read, ≤ 3 segments opened", NOT_MEASURED, None)


def planning_targets(results: Results) -> Iterator[Target]:
    text = "planning 1,000 partitions x 50 segments: < 10 s, ≤ 2.3 times as long as 500"
    if not results.planning:
        yield Target(text, NOT_MEASURED, None)
        return
    half, whole = results.planning
    times = whole.median_seconds / half.median_seconds
    measured = f"{whole.median_seconds:.2f} s, {times:.2f} times"
    yield Target(
        text, measured, whole.median_seconds < PLANNING_SECONDS and times <= PLANNING_GROWTH
    )


def remote_targets(results: Results) -> Iterator[Target]:
    text = f"S3: bytes requested ≤ {REQUESTED_AT_MOST:g} times those needed"
    for figure in results.remote:
        measured = f"{figure.times:.3f} times"
        yield Target(f"{text} ({figure.name})", measured, figure.times <= REQUESTED_AT_MOST)
    if not results.remote:
        yield Target(text, NOT_MEASURED, None)
