"""The public `stats`: what log directories are made of."""

from __future__ import annotations

import base64
import itertools
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pylog.cleaner.offset_map import HashKey
from pylog.columnar.rows import table_of_rows
from pylog.errors import LogStorageError, UnknownTopicOrPartitionError
from pylog.locations import printable_location
from pylog.reading.damage import Attempts
from pylog.reading.disk_use import disk_uses
from pylog.reading.html_table import html_table
from pylog.reading.log_directory import choose_partitions, open_directory
from pylog.reading.scan import scan
from pylog.scheduling.clock import SystemClock
from pylog.scheduling.worker_threads import SharedProgress
from pylog.statistics.batches import TimeSteps, without_strays
from pylog.statistics.page import statistics_page
from pylog.statistics.partition import PartitionWork, TopicCounts, shared_budget
from pylog.statistics.topic import TopicSample, TopicStatistics
from pylog.statistics.topic_rows import SCHEMAS, TopicRows
from pylog.text.instants import likely_unit
from pylog.text.names import json_name, names_nearest_keyword
from pylog.text.words import counted

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pylog.reading.log_directory import LogDirectory
    from pylog.reading.log_view import LogView
    from pylog.statistics.partition import PartitionResult
    from pylog.statistics.topic_rows import Row


class LogStatistics:
    """Statistics of log directories.

    Attributes
    ----------
    tables
        By name, such as "topics" and "batch_sizes"; `SCHEMAS` has all names, with their columns.
        Empty where no records have been read: "recompression", "hot_keys", "largest_records".
    paths
        What was looked at.
    read
        How: "headers", "sample" or "all".
    now_ms
        The time that future timestamps were told by.
    sampled_bytes
        How much of ``.log`` files was read for the sample.
    problems
        What could not be read, a line for each.
    """

    def __init__(
        self,
        tables: Mapping[str, pa.Table],
        *,
        paths: Sequence[str],
        read: str,
        now_ms: int,
        sampled_bytes: int,
        problems: Sequence[str],
    ) -> None:
        self.tables = dict(tables)
        self.paths = list(paths)
        self.read = read
        self.now_ms = now_ms
        self.sampled_bytes = sampled_bytes
        self.problems = list(problems)

    def __repr__(self) -> str:
        topics, partitions = (self.tables[name].num_rows for name in ("topics", "partitions"))
        shown = f"{counted(topics, 'topic')}, {counted(partitions, 'partition')}"
        return f"LogStatistics({shown}, read={self.read!r})"

    def _repr_html_(self) -> str:
        rows = [
            (
                *(each["topic"], each["partitions"], each["segments"], each["size_in_bytes"]),
                *(each["records"], each["batches"]),
            )
            for each in _with_milliseconds(self.tables["topics"]).to_pylist()
        ]
        columns = ("topic", "partitions", "segments", "bytes", "records", "batches")
        return html_table(repr(self), columns, rows, len(rows), notes=self.problems)

    def time_steps(self, topic: str, most: int) -> TimeSteps | None:
        """Return what came over time to a topic, in at most so many steps; None without times.

        What is years away from all the rest, as a wrong clock makes it, is left out.
        """
        rows = _with_milliseconds(self.tables["times"]).to_pylist()
        timed, _ = without_strays([_plain(row) for row in rows if row["topic"] == topic])
        return TimeSteps.of(timed, most)

    def document(self) -> dict[str, Any]:
        """Return all of it as plain values that JSON has.

        Tables are lists of objects, names in camel case. Timestamps are milliseconds. A key that is
        UTF-8 is a text, any other ``{"base64": ...}``.
        """
        tables = {
            json_name(name): [_plain(row) for row in _with_milliseconds(table).to_pylist()]
            for name, table in self.tables.items()
        }
        topics = tables["topics"]
        for topic in topics:
            topic["otherTimestampUnits"] = self._other_units(topic["topic"], tables["times"])
        return {
            "paths": self.paths,
            "read": self.read,
            "now": self.now_ms,
            "sampledBytes": self.sampled_bytes,
            "summary": {
                "topics": len(topics),
                "partitions": len(tables["partitions"]),
                "diskBytes": sum(row["sizeInBytes"] for row in tables["disk"]),
                **{
                    name: sum(row[name] for row in topics)
                    for name in (
                        *("segments", "sizeInBytes", "batches", "records", "uncountedBatches"),
                        *("bytes", "controlBatches", "lateBatches", "futureBatches"),
                    )
                },
            },
            **tables,
            "problems": self.problems,
        }

    def _other_units(self, topic: str, times: Sequence[Mapping[str, Any]]) -> dict[str, int]:
        """Return how many batches have timestamps in what is probably another unit, by unit."""
        counts: Counter[str] = Counter()
        for row in times:
            if row["topic"] == topic and row["start"] is not None:
                unit = likely_unit(row["start"], self.now_ms)
                if unit is not None:
                    counts[unit] += row["batches"]
        return dict(counts)

    def html(self) -> str:
        """Return a page with charts that needs nothing beside it: neither files nor a network."""
        return statistics_page(self.document())


def _with_milliseconds(table: pa.Table) -> pa.Table:
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(pa.int64()))
    return table


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {json_name(name): _plain_value(value) for name, value in row.items()}


def _plain_value(value: object) -> object:
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    return value


DEFAULT_SAMPLE_BYTES = 64 << 20
_LEAST_SAMPLE_BYTES = 1 << 20  # of a topic, if it is looked at at all
HEADERS, SAMPLE, ALL = "headers", "sample", "all"
_WAYS_TO_READ = (HEADERS, SAMPLE, ALL)


@names_nearest_keyword
def stats(  # noqa: PLR0913 - keyword-only options, one for each thing a user may say
    *paths: str | os.PathLike[str],
    topics: Iterable[str] | None = None,
    partitions: Iterable[int] = (),
    include_stray: bool = False,
    replica: str | int | os.PathLike[str] | None = None,
    read: str = HEADERS,
    sample_bytes: int = DEFAULT_SAMPLE_BYTES,
    most: int = 10,
    threads: int | None = None,
    now_ms: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LogStatistics:
    """Return what lies in log directories: sizes, batches, codecs, times, keys, and savings.

    Parameters
    ----------
    *paths
        Log directories or topic-partition directories. Never written to or locked.
    topics
        Only these; None for all, internal ones included.
    partitions
        Only these partitions of each topic; none for all.
    include_stray, replica
        As for `open_directory`.
    read
        "headers": every batch header, and no record. "sample": some records, too, which tell hot
        keys, large records, and what other codecs and batch sizes would save. "all": that, with
        keys and large records counted over all records, and with what of compacted topics is live.
    sample_bytes
        How much of all ``.log`` files is read for the sample; a little more may be.
    most
        How many keys and large records are listed of each topic.
    threads
        How many partitions are read side by side; None for as many as there are processors, or as
        the environment variable ``PYLOG_NUM_THREADS`` says.
    now_ms
        Timestamps after this are in the future; None for the system's clock.
    progress
        Is called a few times a second with the bytes done and those there are in all.

    Raises
    ------
    UnknownTopicOrPartitionError
        A topic or partition that was named is not there.
    LogStorageError
        A path cannot be read or holds no log. What is wrong with a partition is a value in its row.
    ValueError
        An argument makes no sense.

    Examples
    --------
    >>> found = pylog.stats("kafka/intact", topics=["orders"], read="sample")
    >>> found.tables["partitions"].select(["partition", "records"]).to_pylist()
    [{'partition': 0, 'records': 57}, {'partition': 1, 'records': 49}]
    """
    _check(read, sample_bytes, most)
    directory = open_directory(*paths, include_stray=include_stray, replica=replica)
    views = _chosen(directory, topics, list(partitions))
    now_ms = SystemClock().milliseconds() if now_ms is None else now_ms
    total_bytes = sum(map(_size_of, views))
    is_sampled = read in {SAMPLE, ALL}
    shared = SharedProgress(
        total_bytes + (min(sample_bytes, total_bytes) if is_sampled else 0), progress
    )
    hash_key = HashKey.random()
    by_topic = {
        topic: list(each) for topic, each in itertools.groupby(views, lambda view: view.topic)
    }
    counts = None
    if read == ALL:
        counts = {topic: TopicCounts(len(each), most) for topic, each in by_topic.items()}
    work = PartitionWork(now_ms, hash_key, counts, most, shared.advance)
    tasks = [(place, view) for views in by_topic.values() for place, view in enumerate(views)]
    results = [
        each
        for each in shared.side_by_side(lambda task: work.run(*task), tasks, threads)
        if topics is not None
        or not each.headers.problems
        or not each.headers.view.directory.was_deleted()
    ]
    found = _by_topic(results, counts)
    if is_sampled:
        budgets = shared_budget(
            [each.size_bytes for each in found], sample_bytes, _LEAST_SAMPLE_BYTES
        )

        def sample(task: tuple[TopicStatistics, int]) -> None:
            topic, budget = task
            if budget:
                _sample(topic, budget, hash_key, most, shared.advance)

        shared.side_by_side(sample, list(zip(found, budgets, strict=True)), threads)
    return _statistics(found, most, read, now_ms, directory, paths)


def _check(read: str, sample_bytes: int, most: int) -> None:
    if read not in _WAYS_TO_READ:
        msg = f"read is {read!r}, expected one of {', '.join(map(repr, _WAYS_TO_READ))}"
        raise ValueError(msg)
    for name, value in (("sample_bytes", sample_bytes), ("most", most)):
        if value < 1:
            msg = f"{name} is {value}, expected 1 or more"
            raise ValueError(msg)


def _size_of(view: LogView) -> int:
    """Return the size of a log's files, 0 if its directory cannot be listed."""
    return Attempts().read(lambda: view.size_bytes) or 0


def _chosen(
    directory: LogDirectory, topics: Iterable[str] | None, partitions: Sequence[int]
) -> list[LogView]:
    if topics is not None:
        views = directory.select(assign=choose_partitions(directory, topics, partitions))
    else:
        views = [view for view in directory if not partitions or view.partition in partitions]
    if not views and not partitions:
        return directory.select()  # says why there is nothing
    if not views:
        wanted = ", ".join(map(str, partitions))
        present = ", ".join(map(str, directory.topic_partitions)) or "none"
        reason = f"no topic has a partition {wanted} here; found {present}"
        raise UnknownTopicOrPartitionError(reason)
    return sorted(views, key=lambda view: view.topic_partition)


def _by_topic(
    results: Sequence[PartitionResult], counts: Mapping[str, TopicCounts] | None
) -> list[TopicStatistics]:
    grouped = itertools.groupby(results, lambda each: each.headers.topic_partition.topic)
    return [
        TopicStatistics(topic, list(each), None if counts is None else counts[topic])
        for topic, each in grouped
    ]


def _sample(
    topic: TopicStatistics,
    budget_bytes: int,
    hash_key: HashKey,
    most: int,
    advance: Callable[[int], None],
) -> None:
    headers = [each.headers for each in topic.partitions]
    sample = TopicSample(headers, topic.codec_ids(), hash_key, most)
    sample.read(budget_bytes, advance)
    topic.sample = sample


def _statistics(
    topics: Sequence[TopicStatistics],
    most: int,
    read: str,
    now_ms: int,
    directory: LogDirectory,
    paths: Sequence[str | os.PathLike[str]],
) -> LogStatistics:
    def find_record(topic: str, partition: int, offset: int) -> tuple[bytes | None, int | None]:
        return _find_record(directory, topic, partition, offset)

    rows: dict[str, list[Row]] = {name: [] for name in SCHEMAS}
    problems: list[str] = []
    for topic in topics:
        for name, some in TopicRows(topic, most, find_record).rows().items():
            rows[name] += some
        for part in topic.partitions:
            problems += part.headers.problems
        if topic.sample is not None:
            problems += [each for each in topic.sample.problems if each not in problems]
    for path, use in disk_uses(directory.directories).items():
        rows["disk"] += [
            (printable_location(path), kind, size_bytes)
            for kind, size_bytes in use.kinds.most_common()
        ]
        problems += [text for text in map(str, use.errors) if text not in problems]
    return LogStatistics(
        {name: table_of_rows(some, SCHEMAS[name]) for name, some in rows.items()},
        paths=[printable_location(path) for path in paths],
        read=read,
        now_ms=now_ms,
        sampled_bytes=sum(each.sample.sampled_bytes for each in topics if each.sample is not None),
        problems=problems,
    )


def _find_record(
    directory: LogDirectory, topic: str, partition: int, offset: int
) -> tuple[bytes | None, int | None]:
    """Return key and timestamp of a record, None for both if it is not there any more."""
    wanted = scan(
        directory,
        assign={topic: [partition]},
        start=offset,
        end=offset + 1,
        columns=("key", "timestamp"),
        timestamp_unit="ms",
    )
    try:
        table = wanted.to_table()
    except LogStorageError:
        return None, None
    if not table.num_rows:
        return None, None
    timestamp = table["timestamp"].cast("int64")[0].as_py()
    return table["key"][0].as_py(), None if timestamp < 0 else timestamp
