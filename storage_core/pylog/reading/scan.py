"""The public `Scan`: a range of records of some partitions, as Arrow, pandas, or a count."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from pylog.columnar.arrow_schema import CORRUPT_RECORD, record_schema, schema_like
from pylog.columnar.record_columns import PLACE_COLUMNS, place_rows
from pylog.errors import LogStorageError
from pylog.lazy_modules import LazyModule
from pylog.locations import in_store
from pylog.log_file.segment_windows import DEFAULT_WINDOW_BYTES
from pylog.model import EARLIEST, LATEST, IsolationLevel, check_specs
from pylog.reading import parts
from pylog.reading.checked_windows import ReadOptions
from pylog.reading.consumer_record import RECORD_COLUMNS, consumer_records
from pylog.reading.damage import DamagedRange, DamageReport, ReadMode
from pylog.reading.log_directory import LogDirectory, opened
from pylog.reading.log_end import find_log_end
from pylog.reading.notebook_display import directories_repr, scan_choices, scan_html
from pylog.reading.planned_bytes import ScannedBytes
from pylog.reading.planner import ScanRequest, plan_last_records, plan_tasks
from pylog.reading.reader import ReadMemory, TaskReader
from pylog.reading.row_limit import check_limit, limited, limited_count
from pylog.reading.segments import FileAccess
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES
from pylog.scheduling.worker_threads import thread_count
from pylog.text.names import names_nearest_keyword

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from typing import Literal, NoReturn

    import pandas as pd
    import polars as pl

    from pylog import installation
    from pylog.model import IsolationName, OffsetSpecs, TopicPartition
    from pylog.reading import field_filter, record_filter, typed_choice, typed_records
    from pylog.reading.consumer_record import ConsumerRecord
    from pylog.reading.damage import ReadModeName
    from pylog.reading.field_filter import FieldFilter
    from pylog.reading.log_view import LogView
    from pylog.reading.record_filter import RecordFilter
    from pylog.reading.scan_task import ScanTask
    from pylog.reading.task_range import TaskRange
    from pylog.reading.typed_records import TypedRecords, UndecodableReport
    from pylog.reading.value_format import ValueFormat
else:
    installation = LazyModule("pylog.installation")
    # A third of the start-up of what reads without a filter and without schemas.
    field_filter = LazyModule("pylog.reading.field_filter")
    record_filter = LazyModule("pylog.reading.record_filter")
    typed_choice = LazyModule("pylog.reading.typed_choice")
    typed_records = LazyModule("pylog.reading.typed_records")


_LOGGER = logging.getLogger(__name__)


def select_views(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | LogDirectory,
    topics: str | Iterable[str] | None,
    assign: Mapping[str, Iterable[int]] | None,
    pattern: str | None,
) -> list[LogView]:
    """Return the partitions under ``path`` that one of the other arguments chooses."""
    directory = opened(path, takes_segment_files=True)
    names = [topics] if isinstance(topics, str) else topics
    return directory.select(topics=names, assign=assign, pattern=pattern)


def covered_views(views: list[LogView], where: RecordFilter | None) -> list[LogView]:
    """Return the views of partitions that have records which can pass."""
    return [view for view in views if where is None or where.covers(view.topic_partition)]


def views_to_read(
    views: list[LogView], where: RecordFilter | None, mode: ReadMode, access: FileAccess
) -> list[LogView]:
    """Return views of the partitions that a filter leaves, which are read as the others say."""

    def as_wanted(view: LogView) -> LogView:
        # What planning meets, a reader reports: it goes the same way.
        damage = DamageReport(is_logged=False) if mode.skips_damage else view.damage
        # Views of `follow` may use no indexes already.
        uses_indexes = access.use_indexes and view.access.use_indexes
        return view.read_as(replace(access, use_indexes=uses_indexes), damage)

    return [as_wanted(view) for view in covered_views(views, where)]


_NOT_A_SEQUENCE = (
    "a scan is not a sequence of records; use scan.to_batches() or scan.to_reader() to iterate "
    "over them in record batches, scan.records() one by one, scan.count() for how many there are, "
    "scan.last(n) for the last of each partition, and scan.to_table() or scan.to_pandas() for all "
    "of them in memory"
)


def _text_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return bytes as text, null where they are not UTF-8."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [None if each is None else _decoded(each) for each in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])


def _decoded(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


class AbsentOffsets(NamedTuple):
    """Offsets ``[start, end)`` that a log should have, and none of its segments has."""

    topic_partition: TopicPartition
    start: int
    end: int

    def __str__(self) -> str:
        return (
            f"{self.topic_partition} has no segment with offsets {self.start} to {self.end - 1}: "
            "one is missing, or compaction has removed them (see pylog doctor)"
        )


def _is_between_segments(view: LogView, start: int, end: int) -> bool:
    """Whether the segment before the offsets ends before them, and the next one begins after."""
    index = view.find_segment(start)
    if index is None or index + 1 >= len(view.segments) or start <= view.log_start_offset:
        return False
    if view.segments[index + 1].base_offset < end:
        return False
    last = find_log_end(view.segments[index]).last
    return last is None or last.header.next_offset <= start


class Scan:
    """A planned read. What it covers is fixed at the first use; make a new one to see more.

    `scan` makes it. It gives any number of readers; each is for one thread, and has threads of its
    own to help it. Whatever accepts an Arrow stream accepts a scan: ``pyarrow.table(scan)``,
    ``polars.DataFrame(scan)``, and ``duckdb.sql("SELECT … FROM scan")`` with a variable of that
    name. Every use reads again.

    Attributes
    ----------
    schema
        The Arrow schema of the records.
    partitions
        The logs that are read.
    damage
        Iterates over the damaged ranges that the readers have left out so far, each once (modes
        DROPMALFORMED and PERMISSIVE).
    scanned
        How much the readers of records have scanned so far.
    limit
        The most rows that it gives, over all partitions; None for all.
    """

    def __init__(
        self,
        partitions: list[LogView],
        wanted: ScanRequest,
        schema: pa.Schema,
        options: ReadOptions,
        *,
        limit: int | None = None,
    ) -> None:
        check_limit(limit)
        self.partitions = partitions
        self.schema = schema
        self.damage, self.scanned = DamageReport(), ScannedBytes()
        self.limit = limit
        self._wanted = wanted
        self._options = options
        self._tasks: list[ScanTask] | None = None
        self._ranges: dict[str, tuple[int, int]] = {}
        self._is_of_last_records = False

    def __repr__(self) -> str:
        places = directories_repr(view.directory for view in self.partitions)
        return f"Scan({', '.join([places, *self._choices()])})"

    def _repr_html_(self) -> str:
        return scan_html(self.partitions, self._tasks, ", ".join(self._choices()))

    def __iter__(self) -> NoReturn:
        raise TypeError(_NOT_A_SEQUENCE)

    def __len__(self) -> NoReturn:
        raise TypeError(_NOT_A_SEQUENCE)

    def __getitem__(self, item: object) -> NoReturn:
        raise TypeError(_NOT_A_SEQUENCE)

    def __bool__(self) -> bool:
        """Return True: whether there are records is known only after a read."""
        return True

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a PyCapsule of a new Arrow stream of the records, as of `to_reader`."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Return a PyCapsule of `schema`; nothing is read. See the Arrow PyCapsule interface."""
        return self.schema.__arrow_c_schema__()

    def _choices(self) -> list[str]:
        return scan_choices(self.schema.names, self._wanted, self._options.mode, self.limit)

    def plan(self) -> list[ScanTask]:
        """Return the tasks: one for each partition that has anything to read, more if it is cut.

        No task knows of the `limit`.
        """
        if self._tasks is None:
            self._tasks = plan_tasks(self.partitions, self._wanted, self._ranges)
        return self._tasks

    def absent_offsets(self) -> list[AbsentOffsets]:
        """Return the partitions of which all that was asked for is in no segment."""
        self.plan()
        found = []
        for view in self.partitions:
            start, end = self._ranges.get(view.directory.path, (0, 0))
            with suppress(LogStorageError):
                if start < end and _is_between_segments(view, start, end):
                    found.append(AbsentOffsets(view.topic_partition, start, end))
        return found

    def last(self, count: int) -> Scan:
        """Return a scan of the last ``count`` records of each partition that this one reads.

        They are found by reading backwards from the end, in ranges that double in length. Rows that
        stand for damage (mode PERMISSIVE) are not records, and not among them. The limit of this
        scan holds for the result.

        Parameters
        ----------
        count
            How many records, 1 or more; a partition that has fewer is read as a whole.

        Raises
        ------
        LogStorageError
            A position cannot be resolved, or damage (mode FAILFAST) is in a range that was
            searched.
        ValueError
            ``count`` is less than 1.
        """
        if count < 1:
            msg = f"{count} last records were asked for, expected 1 or more"
            raise ValueError(msg)
        last = Scan(self.partitions, self._wanted, self.schema, self._options, limit=self.limit)
        schema = record_schema(("offset",))
        # Damage is reported when the records around it are read.
        looked_through = DamageReport(is_logged=False)
        last._tasks = plan_last_records(
            self.partitions,
            self._wanted,
            count,
            lambda task: self.reader_of(task, schema, damage=looked_through).record_batches(),
        )
        last._is_of_last_records = True
        return last

    def head(self, count: int = 5) -> Scan:
        """Return a scan of the first ``count`` records, over all partitions; nothing else is read.

        Examples
        --------
        >>> pylog.scan("kafka/intact", topics="orders").head(2).count()
        2
        """
        return self.narrowed(limit=count)

    def narrowed(
        self,
        columns: Iterable[str] | None = None,
        *,
        where: RecordFilter | FieldFilter | None = None,
        limit: int | None = None,
    ) -> Scan:
        """Return a scan of a part of what this one gives: for tools that push queries down.

        It reads the same logs between the same offsets, and notes in this scan's `damage` and
        `scanned` what it comes across.

        Parameters
        ----------
        columns
            Names of columns in the order wanted, also of such that this scan leaves out. None for
            those of this scan.
        where
            What the records have to pass besides this scan's filter; a `FieldFilter` is for a scan
            with typed keys or values.
        limit
            The most rows; this scan's limit holds as well.

        Raises
        ------
        ValueError
            There is no such column, the limit is negative, or ``where`` is given although this scan
            has a limit or is of the last records: the result would not be a part of it.
        """
        if where is not None and (self.limit is not None or self._is_of_last_records):
            what = "of the last records" if self._is_of_last_records else "with a limit"
            msg = f"a scan {what} cannot be narrowed by a filter; filter what it gives"
            raise ValueError(msg)
        limits = [each for each in (self.limit, limit) if each is not None]
        options = self._options
        views, tasks = self.partitions, None
        if where is not None and not isinstance(where, record_filter.RecordFilter):
            if options.typed is None:
                msg = "fields are tested of a scan with value_format or key_format"
                raise ValueError(msg)
            options = replace(options, typed=options.typed.tested_by(where))
            views = [view for view in views if where.covers(view.topic)]
            tasks = [each for each in self.plan() if where.covers(each.topic_partition.topic)]
            where = None
        part = Scan(
            covered_views(views, where),
            replace(self._wanted, where=record_filter.conjunction(self._wanted.where, where)),
            self.schema if columns is None else self._schema_of(columns),
            options,
            limit=min(limits, default=None),
        )
        part.damage, part.scanned, part._ranges = self.damage, self.scanned, self._ranges
        if where is None:
            part._tasks = self.plan() if tasks is None else tasks
            part._is_of_last_records = self._is_of_last_records
        return part

    def _schema_of(self, columns: Iterable[str]) -> pa.Schema:
        typed = self._options.typed
        like = schema_like if typed is None else typed.schema_like
        return like(self.schema, columns)

    @property
    def typed(self) -> TypedRecords | None:
        """What decodes keys and values, for `ScanTask.read`; None where they are bytes."""
        return self._options.typed

    @property
    def typed_columns(self) -> tuple[str, ...]:
        """Which of ``key`` and ``value`` are decoded by schemas."""
        typed = self._options.typed
        return () if typed is None else tuple(typed.columns)

    @property
    def without_schema(self) -> Mapping[str, str]:
        """Topics whose keys or values have no schema, and stay bytes or are left out: why."""
        typed = self._options.typed
        return {} if typed is None else typed.bare

    def schema_of(self, topic: str) -> pa.Schema:
        """Return the schema of a topic's batches, where topics have columns of their own.

        Examples
        --------
        >>> scan = pylog.scan("kafka/intact", topics="orders", columns=["key", "offset"])
        >>> scan.schema_of("orders").names
        ['key', 'offset']
        """
        typed = self._options.typed
        return self.schema if typed is None else typed.of_topic(self.schema, topic)

    def tests_while_decoding(self, columns: Collection[str], *, is_for_one_thread: bool) -> bool:
        """Return whether rows can be tested by some columns before the other ones are decoded.

        That is what `narrowed` does with a `FieldFilter`: for tools that push queries down.

        Parameters
        ----------
        columns
            What the test is about.
        is_for_one_thread
            Whether the test may be made only in the thread that reads the rows.

        Examples
        --------
        >>> scan = pylog.scan("kafka/intact", topics="orders", value_format="json")
        >>> scan.tests_while_decoding(["value"], is_for_one_thread=False)
        True
        """
        is_part = self.limit is not None or self._is_of_last_records
        has_others = is_for_one_thread and self._options.threads > 1
        typed = bool(self.typed_columns) and CORRUPT_RECORD not in columns
        return typed and bool(columns) and not is_part and not has_others

    @property
    def undecodable(self) -> UndecodableReport:
        """The keys and values that its readers could not decode so far; none without a format."""
        typed = self._options.typed
        return typed_records.UndecodableReport() if typed is None else typed.undecodable

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the records, partition by partition, in offset order.

        Raises
        ------
        LogStorageError
            Something is damaged (mode FAILFAST), has been deleted, or cannot be expressed in the
            schema. The records before it have been yielded.
        """
        self.plan()
        return limited(self._all_batches(), self.limit)

    def records(self) -> Iterator[ConsumerRecord]:
        """Yield the records one by one, for plain Python; memory stays bounded.

        They have all fields, whatever the columns of this scan. What damage leaves out is listed in
        `damage` (modes DROPMALFORMED and PERMISSIVE).

        Raises
        ------
        LogStorageError
            As for `to_batches`, but any timestamp can be expressed.

        Examples
        --------
        >>> for record in pylog.scan("kafka/intact", topics="orders", limit=2).records():
        ...     print(record.topic, record.partition, record.offset)
        orders 0 0
        orders 0 1
        """
        whole = self.narrowed()
        whole.schema = record_schema(RECORD_COLUMNS, timestamp_unit="ms")
        return consumer_records(whole.to_batches())

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the records as an Arrow stream; memory stays bounded. Plans now, reads later."""
        self.ensure_one_schema()
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_table(self) -> pa.Table:
        """Return all records in memory."""
        self.ensure_one_schema()
        return pa.Table.from_batches(self.to_batches(), schema=self.schema)

    @property
    def has_one_schema(self) -> bool:
        """Whether all batches have `schema`; else each topic's have that of `schema_of`."""
        return self.typed is None or self.typed.has_one_schema

    def ensure_one_schema(self) -> None:
        """Raise `ValueError` if topics have columns of their own: for what makes one table."""
        if not self.has_one_schema:
            msg = (
                "the topics of this scan have columns of their own: take its batches one by one "
                "(to_batches), or read one topic at a time"
            )
            raise ValueError(msg)

    def to_polars(self) -> pl.DataFrame:
        """Return all records as a Polars DataFrame; `pylog.polars.scan` reads what a query needs.

        Raises
        ------
        ModuleNotFoundError
            Polars is not installed; the error has the command that installs it.
        """
        try:
            from polars import DataFrame  # noqa: PLC0415 - of whom it is installed for
        except ModuleNotFoundError as error:
            raise installation.missing_package("to_polars", "Polars", "polars") from error
        return DataFrame(self.to_table())

    def to_pandas(self, *, text: bool = False, **options: Any) -> pd.DataFrame:  # noqa: ANN401 - of pyarrow
        """Return all records as a pandas DataFrame (pandas must be installed).

        Parameters
        ----------
        text
            Add the columns ``key_text`` and ``value_text``: keys and values in UTF-8, and null
            where the bytes are none.
        **options
            Those of ``pyarrow.Table.to_pandas``, such as ``types_mapper=pandas.ArrowDtype``.
        """
        try:
            import pandas as pd  # noqa: F401, PLC0415 - for what it says where there is none
        except ModuleNotFoundError as error:
            raise installation.missing_package("to_pandas", "pandas") from error
        table = self.to_table()
        for name in ("key", "value") if text else ():
            if name in table.column_names:
                table = table.append_column(f"{name}_text", _text_of(table.column(name)))
        return table.to_pandas(**options)

    def _all_batches(self) -> Iterator[pa.RecordBatch]:
        size_bytes = sum(task.size_bytes for task in self.plan())
        if self._options.threads > 1 and size_bytes > parts.FIRST_PART_BYTES:
            for item in parts.read_ahead(
                self.plan(),
                self._options,
                lambda task, damage, memory: self.reader_of(task, damage=damage, memory=memory),
            ):
                if isinstance(item, DamagedRange):
                    self.damage.add(item)
                else:
                    yield item
            return
        memory = ReadMemory(self._options)
        for task in self.plan():
            yield from self.reader_of(task, memory=memory).record_batches()

    def counted_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `to_batches`, by what batch headers count if those are all they tell.

        That is so where `schema` has no column but ``topic`` and ``partition``, as for tools that
        count. As for `count`, checksums are not verified then, and nothing is `scanned`.
        """
        if not PLACE_COLUMNS.issuperset(self.schema.names) or self._decodes_to_count:
            return self.to_batches()
        self.plan()
        rows = (
            batch
            for task, count in self._counts()
            for batch in place_rows(task.topic_partition, count, self.schema)
        )
        return limited(rows, self.limit)

    def reader_of(
        self,
        task: TaskRange,
        schema: pa.Schema | None = None,
        *,
        damage: DamageReport | None = None,
        memory: ReadMemory | None = None,
    ) -> TaskReader:
        """Return what reads a task of the plan, or a part of one, as this scan would."""
        return TaskReader(
            task,
            schema or self.schema,
            self._options,
            damage=self.damage if damage is None else damage,
            scanned=self.scanned,
            memory=memory,
        )

    def count(self) -> int:
        """Return how many records there are, from batch headers alone wherever possible.

        No column is decoded, so values that cannot be expressed in `schema` do not matter.
        """
        if self._decodes_to_count:
            batches = self.narrowed(("offset",)).to_batches()
            return sum(batch.num_rows for batch in batches)
        return limited_count((count for _, count in self._counts()), self.limit)

    @property
    def _decodes_to_count(self) -> bool:
        where, typed = self._wanted.where, self._options.typed
        tests_records = where is not None and where.needs_records
        tests_fields = typed is not None and bool(typed.where)
        return self._options.mode.skips_damage or tests_records or tests_fields

    def _counts(self) -> Iterator[tuple[ScanTask, int]]:
        schema = record_schema(("offset",))
        for task in self.plan():
            yield task, self.reader_of(task, schema).count()


def _typed_views(views: list[LogView], typed: TypedRecords) -> list[LogView]:
    """Leave out the topics that have no schema, and say so."""
    left_out = {view.topic for view in views if not typed.reads(view.topic)}
    if left_out:
        names = ", ".join(sorted(left_out))
        _LOGGER.warning("not read, for there is no schema: %s. Name the topics to read", names)
    return [view for view in views if view.topic not in left_out]


@names_nearest_keyword
def scan(  # noqa: PLR0913 - keyword-only options, one for each thing a user may say
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | LogDirectory,
    *,
    topics: str | Iterable[str] | None = None,
    assign: Mapping[str, Iterable[int]] | None = None,
    pattern: str | None = None,
    start: OffsetSpecs = EARLIEST,
    end: OffsetSpecs = LATEST,
    isolation: IsolationName | IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    fail_on_data_loss: bool | None = None,
    columns: str | Iterable[str] | None = None,
    include_headers: bool = False,
    include_batch_metadata: bool = False,
    mode: ReadModeName | ReadMode = ReadMode.FAILFAST,
    timestamp_unit: Literal["us", "ms"] = "us",
    window_bytes: int = DEFAULT_WINDOW_BYTES,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    max_partition_bytes: int | None = None,
    min_partitions: int | None = None,
    max_records_per_partition: int | None = None,
    where: RecordFilter | str | None = None,
    limit: int | None = None,
    use_indexes: bool = True,
    threads: int | None = None,
    leave_page_cache: bool = False,
    filesystem: object | None = None,
    storage_options: Mapping[str, object] | None = None,
    value_format: str | ValueFormat | None = None,
    key_format: str | ValueFormat | None = None,
) -> Scan:
    """Return a read of the records under ``path``: exactly what Kafka's consumer would return.

    Parameters
    ----------
    path
        A log directory, a topic-partition directory, a single ``.log`` file in one, several of
        these, or what `open_directory` returned. Never written to or locked, nor read through a
        mapping.
    topics, assign, pattern
        Which partitions to read: topic names, partitions by topic, or a regular expression found in
        topic names. By default all topics but internal ones.
    start, end
        The first offset, and the offset before which to stop: "earliest", "latest",
        "max_timestamp", an offset, a `Timestamp` or a datetime with a time zone (the first offset
        at or after that time), a `FromEnd`, or a mapping from partition or topic to one of these.
    isolation
        "read_uncommitted", or "read_committed", which leaves out aborted records, and everything
        from the first open transaction on.
    fail_on_data_loss
        Whether it is an error if an offset lies outside the log, or if records are deleted before
        they are read. If False, the nearest offset in the log is taken, and what was deleted is
        skipped with a warning. None is True, but a read from the log's start begins where the log
        does when its first record is read.
    columns
        The name of a column, or several in the order wanted; all by default. Fewer columns are
        read faster.
    include_headers, include_batch_metadata
        Whether "all" columns include ``headers`` and ``batch``.
    mode
        "FAILFAST": damage is an error. "DROPMALFORMED": exactly the damaged bytes are left out,
        logged, and listed in `Scan.damage`. "PERMISSIVE": the same, and each damaged range is a row
        of nulls, with the cause in column ``_corrupt_record`` if that is among ``columns``.
    timestamp_unit
        "us", or "ms", which holds every timestamp that Kafka can store.
    window_bytes
        How many bytes of a file are read at once.
    max_decompressed_bytes
        The most bytes that the records of one batch may have after decompression. A batch with
        more counts as damage, since a few kilobytes can be forged to decompress to more than fits
        into memory. Decoding a batch takes at most four times as much, Arrow's columns included.
    max_partition_bytes, min_partitions, max_records_per_partition
        How `Scan.plan` cuts partitions into tasks: the most bytes of a task, the least number of
        tasks, and the most offsets of a task. By default each partition is one task.
    where
        Predicates on place, timestamp and key, evaluated before values are copied; the result is
        what they keep of the whole scan. Or a condition on fields of decoded keys and values, as
        SQL has it: ``"value.user.id = 7 AND value.status IS NOT NULL"``; see `pylog.search`.
    limit
        The most rows, over all partitions, of those that come first; nothing after them is read.
        `Scan.plan` takes no notice of it.
    use_indexes
        False: no offset, time or transaction index is opened. Look-ups, cuts and ends of logs walk
        from the first byte of a segment, and aborted transactions come from the markers. That is
        slower, and a wrong index file cannot matter.
    threads
        How many threads read ahead of the caller's, each another part of the plan: partitions,
        segments, and pieces of them that offset indexes cut off. The default is what the
        environment variable ``PYLOG_NUM_THREADS`` says or, without one, 1: the caller's thread does
        it all, in the least processor time. Rows, their order, errors and damage do not depend on
        it. About 16 MiB of decoded rows are held for each thread, and each may decode a large batch
        at a time.
    leave_page_cache
        True: what is read of local ``.log`` files and offset indexes does not stay in the page
        cache, and what was there before does, so that a broker beside the reader serves from it as
        before. Nothing is read ahead by the system, and `Scan.count` reads whole batches. An object
        store has no page cache.
    filesystem, storage_options
        How the path's store is reached, as for `pylog.location`; nothing for a `LogDirectory`.
    value_format, key_format
        "auto" or "avro", or a `pylog.jobs.ValueFormat`, which says where schemas are and which one
        the columns have: the column ``value`` (``key``) has values that are decoded by the schema
        that each record refers to. What cannot be decoded is handled as `mode` says: an error; the
        record is left out; or the value is null, with the reason in ``_corrupt_record``. The bytes
        are the columns ``value_raw`` and ``key_raw``, if named in ``columns``.

    Raises
    ------
    UndecodableValueError
        A read meets a value that cannot be decoded (mode FAILFAST).
    InvalidSchemaError
        A schema is wrong, or it is not clear which one columns are to have.
    LogDirectoryError, UnknownTopicOrPartitionError
        The path holds no log, or not what was asked for. With ``leave_page_cache``, also by a read
        or `Scan.plan`: the system offers no way to do it (`pylog.files.byte_source` says which).
    ValueError
        An argument makes no sense.
    TypeError
        There is no such argument (the error names the nearest), or ``where`` is not a
        `RecordFilter`.

    Examples
    --------
    >>> pylog.scan("kafka/intact", topics="orders", columns=["key", "value"]).to_table().num_rows
    106
    """
    path = opened(in_store(path, filesystem, storage_options), takes_segment_files=True)
    views = select_views(path, topics, assign, pattern)
    known = [view.topic_partition for view in views]
    check_specs(start, known)
    check_specs(end, known)
    condition = where if isinstance(where, str) else None
    where = None if isinstance(where, str) else where
    if where is not None:
        record_filter.check_filter(where)
    read_mode = ReadMode.parse(mode)
    typed = None
    if (value_format, key_format) != (None, None):
        is_named = (topics, assign) != (None, None)
        formats = {"value": value_format, "key": key_format}
        typed = typed_choice.typed_records(path, views, read_mode, **formats, is_named=is_named)
        views = _typed_views(views, typed)
    if condition is not None:
        types = {} if typed is None else typed.types_of(view.topic for view in views)
        fields = field_filter.FieldFilter.of_topics(condition, types)
        views = [view for view in views if fields.covers(view.topic)]
        typed = typed and typed.tested_by(fields)
    make_schema = record_schema if typed is None else typed.schema
    schema = make_schema(
        columns,
        include_headers=include_headers,
        include_batch_metadata=include_batch_metadata,
        timestamp_unit=timestamp_unit,
    )
    wanted = ScanRequest(
        start,
        end,
        IsolationLevel.parse(isolation),
        fail_on_data_loss is not False,
        max_partition_bytes,
        min_partitions,
        max_records_per_partition,
        where,
        begins_with_log=fail_on_data_loss is None,
    )
    options = ReadOptions(
        mode=read_mode,
        window_bytes=window_bytes,
        max_decompressed_bytes=max_decompressed_bytes,
        threads=thread_count(threads, default=1),
        typed=typed,
    )
    access = FileAccess(use_indexes, leave_page_cache)
    views = views_to_read(views, where, options.mode, access)
    return Scan(views, wanted, schema, options, limit=limit)
