"""The targets of operators' tools, and of starting them.

What is an absolute speed is decided by its best repetition.
"""

import statistics
from collections.abc import Iterator

from benchmarks import dumping, log_statistics, printing, searching, start_up
from benchmarks.ratio import Ratio, faster
from benchmarks.results import Results
from benchmarks.target import NOT_MEASURED, Target, at_least

COUNT_GB_PER_SECOND = 5.0
DOCTOR_GB_PER_SECOND = 1.0
LINES_PER_SECOND = 1e6
DUMP_TIMES = 10.0
SEARCH_GB_PER_SECOND = 1.5
START_TIMES = 1.3


def count_targets(results: Results) -> Iterator[Target]:
    text = f"header-only count, 16 KB batches: ≥ {COUNT_GB_PER_SECOND:g} GB/s of log"
    for figure in results.counts:
        rate = figure.log_bytes / figure.best_seconds / 1e9
        yield Target(
            f"{text} ({figure.reader})", f"{rate:.1f} GB/s (best)", rate >= COUNT_GB_PER_SECOND
        )
    if not results.counts:
        yield Target(text, NOT_MEASURED, None)


def statistics_targets(results: Results) -> Iterator[Target]:
    text = f"`pylog stats` by headers, 16 KB batches: ≥ {COUNT_GB_PER_SECOND:g} GB/s of log"
    figures = [each for each in results.statistics if each.reader.endswith(log_statistics.HEADERS)]
    for figure in figures:
        rate = figure.log_bytes / figure.best_seconds / 1e9
        yield Target(
            f"{text} ({figure.reader})", f"{rate:.1f} GB/s (best)", rate >= COUNT_GB_PER_SECOND
        )
    if not figures:
        yield Target(text, NOT_MEASURED, None)


def doctor_targets(results: Results) -> Iterator[Target]:
    text = f"doctor, uncompressed: ≥ {DOCTOR_GB_PER_SECOND:g} GB/s of log a core"
    for figure in results.examined:
        if "-none" not in figure.reader:
            continue  # the codec decides how fast that is
        rate = figure.log_bytes / min(run.cpu_seconds for run in figure.runs) / 1e9
        yield Target(
            f"{text} ({figure.reader})", f"{rate:.1f} GB/s (best)", rate >= DOCTOR_GB_PER_SECOND
        )
    if not results.examined:
        yield Target(text, NOT_MEASURED, None)


def printing_targets(results: Results) -> Iterator[Target]:
    figures = {each.reader: each for each in results.printing}
    for command in (printing.JSON, printing.APPEND):
        text = f"`{command}`, 100 B: ≥ {LINES_PER_SECOND / 1e6:g} M records/s"
        if command not in figures:
            yield Target(text, NOT_MEASURED, None)
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


def dumping_targets(results: Results) -> Iterator[Target]:
    figures = {each.reader: each for each in results.dumping}
    for name in (dumping.OURS, dumping.OURS_JSON):
        text = f"`{name}`, 100 B: ≥ {DUMP_TIMES:g} times {dumping.KAFKAS}"
        if not figures:
            yield Target(text, NOT_MEASURED, None)
            continue
        yield at_least(text, faster(figures[name], figures[dumping.KAFKAS]), DUMP_TIMES)
        yield at_least(f"{text}, without start", _without_start(results, name), DUMP_TIMES)


def search_targets(results: Results) -> Iterator[Target]:
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
        yield Target(text, NOT_MEASURED, None)


def start_up_targets(results: Results) -> Iterator[Target]:
    figures = {figure.command: figure for figure in results.start_up}
    for name, peer, limit in (
        (start_up.CAT_HEAD, start_up.IMPORTS, START_TIMES),
        (start_up.LS, start_up.IMPORTS, START_TIMES),
        (start_up.FIRST_CAT, start_up.IMPORTS, START_TIMES),
    ):
        text = f"{name} ≤ {limit:g} times `{peer}`"
        if not figures:
            yield Target(text, NOT_MEASURED, None)
            continue
        ours, others = figures[name], figures[peer]
        pairs = zip(ours.seconds, others.seconds, strict=True)
        median = statistics.median(mine / other for mine, other in pairs)
        ratio = Ratio(ours.best_seconds / others.best_seconds, median)
        yield Target(text, str(ratio), median <= limit)
