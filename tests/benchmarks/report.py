"""The results as Markdown: targets first, then the tables they come from."""

from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from tests.benchmarks import cleaning, encoding, owned_logs, spark_scan, spark_write
from tests.benchmarks.data_sets import QUICK_DIVISOR
from tests.benchmarks.measuring import Figure
from tests.benchmarks.pair_figure import PairFigure
from tests.benchmarks.reading import AIOKAFKA, JAVA, OURS, OURS_UNCOMPRESSED, SetResult
from tests.benchmarks.results import Results
from tests.benchmarks.spark_write import WriteFigure
from tests.benchmarks.targets import Ratio, faster, over_floor, targets

_MET = {True: "yes", False: "**no**", None: "-"}

_HOW = f"""\
Every reader checks the CRC of every batch and reads every field of every record on one core, the
files in the page cache. Readers of a data set take turns, after each was checked against the sums
of what was written and warmed up; `best / median` are over the rounds. MB/s (10^6) is of `.log`
files: compressed bytes for compressed sets. *pylog* ends with Arrow record batches and starts at
the file; *aiokafka* and *kafka-python* parse bytes already in memory, of a leading sample;
*codec alone* is the fastest of the libraries at hand on batches found beforehand, no CRC;
*Kafka's Java FileRecords* is `ensureValid` and key and value of each record copied to `byte[]`,
one thread of a JVM warm for that data set. CPU is of the whole process: with helper threads (the
JVM's compiler and collector) it exceeds the wall time. Records: 8-byte keys, JSON text as value,
CreateTime; batches hold 16 KB of records uncompressed, 64 KB (before compression) compressed; in
v0 and v1 single messages, or wrappers of 64 KB of values, whose messages' checksums *pylog* checks,
too.
`--quick` uses 1/{QUICK_DIVISOR} of the data: its figures are for trying the program out."""


def _table(head: Iterable[str], rows: Iterable[Iterable[str]], left: int = 1) -> Iterator[str]:
    """Yield a Markdown table; the first `left` columns are text."""
    names = list(head)
    yield "| " + " | ".join(names) + " |"
    yield "|" + "|".join("---" if i < left else "--:" for i in range(len(names))) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def _millions(figure: Figure) -> str:
    best, median = figure.best_seconds, figure.median_seconds
    return f"{figure.records / best / 1e6:.2f} / {figure.records / median / 1e6:.2f}"


def _megabytes(figure: Figure) -> str:
    best, median = figure.best_seconds, figure.median_seconds
    return f"{figure.log_bytes / best / 1e6:.0f} / {figure.log_bytes / median / 1e6:.0f}"


def _text(ratio: Ratio | None) -> str:
    return "" if ratio is None else str(ratio)


def _set_cells(result: SetResult) -> tuple[str, str, str]:
    data_set = result.data_set
    return str(data_set.value_bytes), f"v{data_set.magic}", data_set.codec


def _readers(sets: list[SetResult]) -> Iterator[str]:
    head = (
        *("value bytes", "format", "codec", "reader"),
        *("M records/s", "MB/s of log", "CPU µs/record"),
    )
    rows = (
        (
            *_set_cells(result),
            figure.reader,
            _millions(figure),
            _megabytes(figure),
            f"{figure.best_cpu_us_per_record:.3f}",
        )
        for result in sets
        for peer, figure in result.figures.items()
        if peer != OURS_UNCOMPRESSED
    )
    yield from _table(head, rows, left=4)


def _ratios(sets: list[SetResult]) -> Iterator[str]:
    head = (
        *("value bytes", "format", "codec"),
        "pylog / Java",
        "pylog / aiokafka",
        "our time / (codec alone + our uncompressed decode)",
    )

    def against(result: SetResult, peer: str) -> str:
        found = result.figures.get(peer)
        return _text(faster(result.figures[OURS], found) if found else None)

    rows = (
        (
            *_set_cells(result),
            against(result, JAVA),
            against(result, AIOKAFKA),
            _text(over_floor(result)),
        )
        for result in sets
    )
    yield from _table(head, rows, left=3)


def _spark(results: Results) -> Iterator[str]:
    head = ("value bytes", "rows", "source", "M rows/s", "pylog / it")
    rows = (
        (
            str(result.data_set.value_bytes),
            f"{figure.records:,}",
            figure.reader,
            _millions(figure),
            ""
            if name == spark_scan.OURS
            else _text(faster(result.figures[spark_scan.OURS], figure)),
        )
        for result in results.spark
        for name, figure in result.figures.items()
    )
    yield from _table(head, rows, left=3)
    sizes = ", ".join(f"{r.batch_rows} ({r.data_set.value_bytes} B)" for r in results.spark)
    yield ""
    yield (
        f"Full scan into the `noop` sink, {results.spark[0].settings}; four topic partitions, four "
        f"Parquet files of the same rows (pyarrow, snappy). Prebuilt: one batch of as many rows as "
        f"pylog's batches have, again and again: {sizes}; or 256 MB of such batches in each "
        "worker, so that memory is read, as pylog has to."
    )


def _encoding(results: Results) -> Iterator[str]:
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
            _millions(figure),
            _megabytes(figure),
            f"{figure.best_cpu_us_per_record:.3f}",
            "" if name == encoding.OURS else _text(faster(result.figures[encoding.OURS], figure)),
        )
        for result in results.encoding
        for name, figure in result.figures.items()
    )
    yield from _table(head, rows, left=2)
    yield ""
    yield (
        f"The same records, in memory at the start, into the same batches of "
        f"{encoding.BATCH_BYTES:,} bytes, uncompressed, checksums included; the bytes of both are "
        f"equal."
    )


def _own(results: Results) -> Iterator[str]:
    yield from _table(
        ("value bytes", "batch bytes", "what", "M records/s", "MB/s", "of encoding"),
        (
            (
                str(result.value_bytes),
                f"{result.batch_bytes:,}",
                name,
                _millions(figure),
                _megabytes(figure),
                "" if name == owned_logs.ENCODE else _text(faster(figure, encoded)),
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
    yield from _table(
        ("recovery after an unclean stop", "MB/s of log"),
        ((figure.reader, _megabytes(figure)) for figure in results.own.recoveries),
    )


def _of_many_segments(results: Results) -> Iterator[str]:
    if results.look_ups:
        yield from _section("Look-ups in 1,024 sparse segments of 1 GiB")
        looked = (
            (f.name, f"{f.read_bytes / 1e3:.1f}", str(f.logs_opened), str(f.files_opened))
            for f in results.look_ups
        )
        yield from _table(("look-up", "kB read", "segments opened", "files opened"), looked)
    if results.planning:
        yield from _section("Planning")
        planned = (
            (f"{f.partitions:,}", f"{f.best_seconds:.2f} / {f.median_seconds:.2f}")
            for f in results.planning
        )
        yield from _table(("partitions of 50 segments", "seconds, best / median"), planned, left=0)
    if results.following:
        yield from _section("A stream's trigger, 1,000 partitions of 50 segments")
        followed = (
            (f.name, f"{f.best_seconds:.3f} / {f.median_seconds:.3f}") for f in results.following
        )
        yield from _table(("trigger", "driver's seconds, best / median"), followed)


def _operators_tools(results: Results) -> Iterator[str]:
    if results.statistics:
        yield from _section("Statistics, one core")
        statistics = (
            (f.reader, f"{f.log_bytes / 1e6:.0f}", _megabytes(f), _millions(f))
            for f in results.statistics
        )
        head = ("data set, what is read", "MB of log", "MB/s of log", "M records/s")
        yield from _table(head, statistics)
    if results.examined:
        yield from _section("`pylog doctor`, one thread")
        examined = (
            (f.reader, f"{f.log_bytes / 1e6:.0f}", _megabytes(f), _millions(f))
            for f in results.examined
        )
        yield from _table(("data set", "MB of log", "MB/s of log", "M records/s"), examined)
    if results.dumping:
        yield from _section("Dumping 500 MB of records of 100 B")
        dumped = (
            (f.reader, f"{f.best_seconds:.2f} / {f.median_seconds:.2f}") for f in results.dumping
        )
        yield from _table(("command", "seconds, best / median"), dumped)
    if results.searches:
        yield from _section("Search for a value that is nowhere, one thread")
        searched = (
            (f.reader, _megabytes(f), f"{f.best_cpu_us_per_record:.3f}") for f in results.searches
        )
        yield from _table(("reader: data set", "MB/s of log", "CPU µs/record"), searched)


def _others(results: Results) -> Iterator[str]:
    if results.counts:
        yield from _section("Header-only count")
        rows = (
            (f.reader, f"{f.log_bytes / 1e6:.0f}", _megabytes(f), _millions(f))
            for f in results.counts
        )
        yield from _table(("data set", "MB of log", "MB/s of log", "M records/s"), rows)
    if results.printing:
        yield from _section("Lines of records of 100 B")
        printed = (
            (
                f.reader,
                f"{f.records / f.median_seconds / 1e6:.2f}",
                f"{f.best_cpu_us_per_record:.2f}",
            )
            for f in results.printing
        )
        yield from _table(("command", "M records/s, median", "processor µs a record"), printed)
    yield from _operators_tools(results)
    if results.memory:
        yield from _section("Memory")
        rows_of_memory = (
            (f"{f.log_bytes / (1 << 20):.0f}", f"{f.median_mb:.0f}") for f in results.memory
        )
        yield from _table(("MiB of segment", "peak MiB of draining it"), rows_of_memory, left=0)
    yield from _cleaning(results)
    yield from _threads_and_commits(results)
    yield from _of_many_segments(results)
    if results.pruning:
        yield from _section("1 % of the time of 1 GB, Spark, noop sink")
        pruned = (
            (f.name, f"{f.rows:,}", f"{f.best_seconds:.3f} / {f.median_seconds:.3f}")
            for f in results.pruning
        )
        yield from _table(("read", "rows", "seconds, best / median"), pruned)
    yield from _pair_sections(results)
    if results.writes:
        yield from _section("A DataFrame written by Spark")
        yield from _writes(results.writes)
    if results.remote:
        yield from _section("Remote")
        rows_of_remote = (
            (
                f.name,
                f"{f.needed_bytes / 1e6:.2f}",
                f"{f.requested_bytes / 1e6:.2f}",
                f"{f.gets} + {f.heads} + {f.lists}",
            )
            for f in results.remote
        )
        head = ("read of 3 segments of 64 MiB on S3", "MB needed", "requested", "GET + HEAD + LIST")
        yield from _table(head, rows_of_remote)
    if results.start_up:
        yield from _section("Start-up")
        times = (
            (f.command, f"{f.best_seconds:.2f} / {f.median_seconds:.2f}") for f in results.start_up
        )
        yield from _table(("command", "seconds, best / median"), times)


def _cleaning(results: Results) -> Iterator[str]:
    if not results.cleaning:
        return
    yield from _section("Compaction of a partition, everything dirty, 20 records of 200 B a key")
    head = (
        *("codec", "records", "live", "cleaner"),
        *("M records/s", "MB/s of log", "CPU µs/record", "peak MB"),
    )
    rows = (
        (
            *(result.codec, f"{figure.records:,}", f"{result.live_records:,}", name),
            *(_millions(figure), _megabytes(figure), f"{figure.best_cpu_us_per_record:.3f}"),
            f"{result.peak_mb:.0f}" if name == cleaning.OURS else "",
        )
        for result in results.cleaning
        for name, figure in result.figures.items()
    )
    yield from _table(head, rows, left=4)


def _threads_and_commits(results: Results) -> Iterator[str]:
    if results.threads.two:
        yield from _section("Two threads, records of 1000 B")
        rows = (
            (codec, _megabytes(results.threads.one[codec]), _megabytes(two))
            for codec, two in results.threads.two.items()
        )
        yield from _table(("codec", "MB/s of log, one thread", "two threads"), rows)
    if results.commits:
        yield from _section("Commit of a job that is staged")
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
        yield from _table(head, committed, left=0)


def _writes(figures: Sequence[WriteFigure]) -> Iterator[str]:
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
    yield from _table(head, rows, left=2)
    yield ""
    yield (
        f"{spark_scan.MASTER}, four Spark partitions with a key of 8 B and a value, computed by "
        "each write anew; four partitions of a new topic, the sink's producers with their "
        "defaults (acks=all). pylog forces its files to the disk, the others do not."
    )


def _pair_sections(results: Results) -> Iterator[str]:
    for title, pairs in (
        ("What is small, Spark, noop sink", results.small),
        ("Compaction by Spark, two cores", results.spark_cleaning),
        ("Spark's kafka source with a local broker, noop sink", results.kafka_source),
    ):
        if pairs:
            yield from _section(title)
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
    yield from _table(head, rows)
    yield ""
    yield "In workers: processor time of Spark's Python processes."


def _section(title: str) -> Iterator[str]:
    yield from ("", f"## {title}", "")


def _lines(results: Results, machine: list[str], command: str) -> Iterator[str]:
    yield from ("# Benchmarks", "", f"Written by `{command}` on", "")
    yield from machine
    yield from ("", _HOW)
    if results.notes:
        yield from ("", "Left out:", "", *(f"- {note}" for note in results.notes))
    yield from _section("Targets")
    lines = ((t.text, t.measured, _MET[t.met]) for t in targets(results))
    yield from _table(("target", "measured", "met?"), lines, left=3)
    yield from ("", "Ratios: median of the rounds, which decides, and the ratio of the bests.")
    if results.sets:
        yield from _section("Readers, one core")
        yield from _readers(results.sets)
        yield from _section("Ratios")
        yield from _ratios(results.sets)
    if results.encoding:
        yield from _section("Arrow to batches, one core")
        yield from _encoding(results)
    if results.own.appends:
        yield from _section("Owned logs, one core")
        yield from _own(results)
    if results.spark:
        yield from _section("Spark")
        yield from _spark(results)
    yield from _others(results)


def report(results: Results, machine: list[str], command: str) -> str:
    """Return the whole page."""
    return "\n".join(_lines(results, machine, command)) + "\n"
