"""``pyspark_pylog.table(spark, path).where(…).select(…)``: pushdown that is right on every Spark.

Each chain ends in a ``load()`` of its own, whose options carry the predicates and whose schema the
columns, so nothing is shared with another use. Spark evaluates the predicates again.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Protocol

import pyspark.sql
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

import pylog
from pylog import RecordFilter
from pylog.jobs import absolute_location, to_record_filter
from pyspark_pylog.batch_reader import COUNT, PylogBatchReader, TaskPartition
from pyspark_pylog.option_values import format_record_filter
from pyspark_pylog.options import (
    FIELD_CONDITION,
    RECORD_COUNTS,
    RECORD_FILTER,
    RECORDS,
    LoadOptions,
)
from pyspark_pylog.schemas import read_schema
from pyspark_pylog.spark_workarounds import classic_plan, connect_plan
from pyspark_pylog.spark_workarounds.worker_python import is_classic, worker_python_checked
from pyspark_pylog.typed_columns import typed_records

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from pylog.jobs import Comparison

    _Base = DataFrame

    class _Plan(Protocol):
        """Where a DataFrame's comparisons and columns are found: in a JVM, or on the client."""

        def find_comparisons(self, filtered: DataFrame) -> list[Comparison]: ...

        def find_columns(self, frame: DataFrame, known: Sequence[str]) -> list[str] | None: ...
else:
    _Base = object

_OF_DATAFRAMES = ("_jdf", "_plan", "_session")
"""What DataFrames ask others for that they are joined with: of a JVM, of a client of Connect."""


_MOST_RANGES = 20


class PylogTable(_Base):
    """A DataFrame that is not yet read, and that ``where`` narrows; every method returns a new one.

    It has every method of a DataFrame: ``count()``, ``show()``, ``groupBy()`` … act on the
    DataFrame that it describes. Whatever takes a DataFrame takes it, too: type checkers,
    ``isinstance``, ``orders.join(table, "key")``, ``spark.sql("SELECT … FROM {t}", t=table)``.
    ``table.key`` and ``table["key"]`` are the columns of that name, wherever they are used.
    """

    if not TYPE_CHECKING:

        @property
        def __class__(self) -> type:
            # For isinstance alone. A subclass would have the parent's methods, which do nothing.
            is_remote = type(self._spark).__module__.startswith("pyspark.sql.connect.")
            kind = "connect" if is_remote else "classic"
            # Nobody can have asked for a class that is not loaded.
            module = sys.modules.get(f"pyspark.sql.{kind}.dataframe", pyspark.sql)
            return module.DataFrame

    def __init__(
        self,
        spark: SparkSession,
        path: str | Sequence[str],
        options: dict[str, Any],
        conditions: tuple[Column | str, ...] = (),
    ) -> None:
        self._spark = spark
        self._path = path
        self._options = options
        self._conditions = conditions

    def __repr__(self) -> str:
        # No secrets: a location prints without those of its URI, and options with a dot in their
        # names are those of Kafka's clients (``kafka.ssl.key.password``).
        given = [self._path] if isinstance(self._path, str) else self._path
        shown = ", ".join(_shown_path(path) for path in given)
        for name, value in self._options.items():
            is_secret = "." in name or name.lower() in ("path", "paths")
            shown += f", {name}={'…' if is_secret else repr(value)}"
        conditions = "".join(f".where({condition!r})" for condition in self._conditions)
        return f"PylogTable({shown}){conditions}"

    def where(self, condition: Column | str) -> PylogTable:
        """Return the rows for which ``condition`` is true, as of ``DataFrame.where``."""
        return PylogTable(self._spark, self._path, self._options, (*self._conditions, condition))

    filter = where

    def select(self, *columns: Column | str | Sequence[Column | str]) -> DataFrame:
        """Return these columns as a DataFrame; others are not read from the log."""
        return self._dataframe(columns)

    def count(self) -> int:
        """Return how many rows there are; without predicates, from batch headers alone.

        As of `pylog.results.Scan.count`: records are decoded, and their checksums verified, only
        where a range cuts a batch. With predicates, no column is read but those that they name.
        """
        table_option = {name.lower(): value for name, value in self._options.items()}.get("table")
        is_of_records = table_option is None or str(table_option).strip().lower() == RECORDS
        if self._conditions or not is_of_records:
            return self.select(sf.lit(1)).count()
        return sum(row[COUNT] for row in self._load({RECORD_COUNTS: "true"}).collect())

    def to_df(self) -> DataFrame:
        """Return the DataFrame of all columns."""
        return self._dataframe(())

    def explain(
        self,
        extended: bool | str | None = None,  # noqa: FBT001 - as of DataFrame.explain
        mode: str | None = None,
    ) -> None:
        """Print what is read, and then Spark's plan, as ``DataFrame.explain`` does.

        That is: paths, topics, offsets and bytes of each partition, and the predicates that leave
        out some of them. Nothing is read for it but what planning needs. A client of Spark Connect
        does not see the directories, and prints the predicates alone.
        """
        pushed = self._pushed(self._load({}))
        names = self.to_df().columns
        if is_classic(self._spark):
            given = {name: str(value) for name, value in {**self._options, **pushed}.items()}
            path = self._path if isinstance(self._path, str) else json.dumps(list(self._path))
            given["path" if isinstance(self._path, str) else "paths"] = path
            lines = list(_lines_of_read(LoadOptions.parse(given), names))
        else:
            lines = ["== pylog ==", f"pushed:     {pushed.get(RECORD_FILTER, 'nothing')}"]
        print("\n".join([*lines, ""]))  # noqa: T201 - as DataFrame.explain does
        self.to_df().explain(extended, mode)

    def __getitem__(self, name: Any) -> Any:  # noqa: ANN401 - as of DataFrame
        if isinstance(name, str):
            return sf.col(name)
        return self.to_df()[name]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a DataFrame has
        if name.startswith("_") and name not in _OF_DATAFRAMES:
            raise AttributeError(name)
        frame = self.to_df()
        if not hasattr(type(frame), name) and name in frame.columns:
            return sf.col(name)
        return getattr(frame, name)

    def _dataframe(self, columns: Sequence[Any]) -> DataFrame:
        """Return the DataFrame, whose load has what is found in a plan of all rows."""
        plan: _Plan = classic_plan if is_classic(self._spark) else connect_plan
        whole = self._load({})
        plain = self._finish(whole, columns)
        pushed = self._pushed(whole)
        names = None
        if columns and "columns" not in map(str.lower, self._options):
            names = plan.find_columns(plain, whole.columns)
        if not pushed and not names:
            return plain
        # With a schema, Spark need not ask for one again.
        schema = whole.schema
        if names:
            schema = StructType([schema[name] for name in names])
        return self._finish(self._load(pushed, schema), columns)

    def _pushed(self, whole: DataFrame) -> dict[str, str]:
        """Return options that have what the conditions say of places, times, keys and fields."""
        plan: _Plan = classic_plan if is_classic(self._spark) else connect_plan
        given = {name.lower() for name in self._options}
        typed = [name for name in ("key", "value") if f"{name}format" in given]
        comparisons = plan.find_comparisons(self._finish(whole, ()))
        where = to_record_filter(comparisons, typed=typed)
        pushed = {} if where == RecordFilter() else {RECORD_FILTER: format_record_filter(where)}
        if condition := self._field_condition(comparisons, typed):
            pushed[FIELD_CONDITION] = condition
        return pushed

    def _field_condition(
        self, comparisons: Sequence[Comparison], typed: Sequence[str]
    ) -> str | None:
        """Return what is said of decoded fields; a client of Connect does not see the schemas."""
        ways = [(each,) if isinstance(each, str) else each for each, *_ in comparisons]
        if not is_classic(self._spark) or not any(way[0] in typed for way in ways):
            return None
        path = [self._path] if isinstance(self._path, str) else self._path
        given = {"paths": json.dumps(list(path)), **self._options}
        options = LoadOptions.parse({name: str(each) for name, each in given.items()})
        decoded = typed_records(options)
        if decoded is None:
            return None
        return pylog.jobs.to_field_condition(comparisons, decoded.types)

    def _load(self, pushed: dict[str, str], schema: StructType | None = None) -> DataFrame:
        reader = self._spark.read.format("pylog").options(**self._options, **pushed)
        if schema is not None:
            reader = reader.schema(schema)
        with worker_python_checked(self._spark):
            frame = reader.load(self._path if isinstance(self._path, str) else list(self._path))
            if schema is None and not is_classic(self._spark):
                frame.schema  # noqa: B018 - a client of Connect asks the server only now
        return frame

    def _finish(self, frame: DataFrame, columns: Sequence[Any]) -> DataFrame:
        for condition in self._conditions:
            frame = frame.where(condition)
        return frame.select(*columns) if columns else frame


def _shown_path(path: str) -> str:
    """Return the `repr` of a path without secrets, also of one that reading would refuse."""
    try:
        return repr(absolute_location(path))
    except ValueError:
        return "…"


def _lines_of_read(options: LoadOptions, columns: Sequence[str]) -> Iterator[str]:
    """Yield what a batch read of records, or of a table, looks at: nothing of it is read."""
    yield "== pylog =="
    for path in options.paths:
        yield f"path:       {path}"
    yield f"columns:    {', '.join(columns)}"
    if options.table != RECORDS:
        pushed = options.field_condition or "no predicate"
        yield f"table:      {options.table}, of whole logs; pushed: {pushed}"
        views = options.directory().select(**options.choice)
        yield f"topics:     {_topics([(view.topic, view.partition) for view in views])}"
        return
    of_records = None if options.where is None else format_record_filter(options.where)
    pushed = ", ".join(each for each in (of_records, options.field_condition) if each) or "nothing"
    yield f"pushed:     {pushed}"
    partitions = PylogBatchReader(options, read_schema(options)).partitions()
    tasks = [
        each for group in partitions if isinstance(group, TaskPartition) for each in group.tasks
    ]
    ranges: dict[tuple[str, int], tuple[int, int, int]] = {}
    for task in tasks:
        place = task.topic_partition.topic, task.topic_partition.partition
        start, end, size = ranges.get(place, (task.start_offset, task.end_offset, 0))
        ranges[place] = (
            min(start, task.start_offset),
            max(end, task.end_offset),
            size + task.size_bytes,
        )
    yield f"topics:     {_topics(list(ranges))}"
    for place, (start, end, size) in sorted(ranges.items())[:_MOST_RANGES]:
        name = f"{place[0]}-{place[1]}"
        yield f"range:      {name} offsets [{start}, {end}), {pylog.jobs.format_bytes(size, ' ')}"
    if len(ranges) > _MOST_RANGES:
        yield f"            and {len(ranges) - _MOST_RANGES} more"
    whole = sum(size for _, _, size in ranges.values())
    shown = pylog.jobs.format_bytes(whole, " ")
    yield f"to read:    {shown} ({whole} bytes) in {len(partitions)} Spark tasks"


def _topics(places: Sequence[tuple[str, int]]) -> str:
    counts: dict[str, int] = {}
    for topic, _ in sorted(places):
        counts[topic] = counts.get(topic, 0) + 1
    return ", ".join(f"{topic} ({count})" for topic, count in counts.items()) or "none"


def table(spark: SparkSession, path: str | Sequence[str], **options: Any) -> PylogTable:  # noqa: ANN401 - as of DataFrameReader.options
    """Return the description of a read of log directories, which ``where`` narrows.

    Notes
    -----
    A client of Spark Connect does not see what Spark's optimizer makes of a condition. Fewer forms
    narrow the read there: conjunctions of comparisons with literals, as a `Column`. A condition
    that is text narrows nothing there; give an option such as ``startingTimestamp`` as well. The
    rows are the same.

    Examples
    --------
    >>> orders = pyspark_pylog.table(spark, "kafka/intact", subscribe="orders")
    >>> orders.where("partition = 0 AND offset >= 50").count()
    8
    """
    return PylogTable(spark, path, options)
