"""Logs as views of a DuckDB database: ``records``, and the metadata tables by their names.

>>> import pylog.duckdb
>>> connection = pylog.duckdb.connect("/mnt/kafka-logs", topics="orders")
>>> connection.sql("SELECT partition, count(*) FROM records WHERE key = 'k1' GROUP BY ALL")
>>> connection.sql("SELECT topic, sum(size_in_bytes) FROM segments GROUP BY topic").pl()

Every query reads the logs anew, as far as it needs them:

* **columns**: no other one is decoded. Where the query needs none but ``topic`` and ``partition``,
  as for ``count(*)``, batch headers say how many rows there are; checksums are not verified then;
* **filters**: comparisons of ``topic``, ``partition``, ``offset``, ``timestamp`` and ``key`` with
  constants, as far as all rows have to pass them, decide which partitions, which bytes and which
  batches of ``records`` are read, and those of ``topic`` and ``partition`` which logs a metadata
  table is made of. In the view of a topic with typed values, whatever DuckDB leaves to a scan is
  tested while records are decoded: first the columns that it is about are, and the others only of
  rows that pass;
* **LIMIT** without ORDER BY ends the read early.

Beside the bytes of keys and values, ``key_text``, ``value_text`` and ``value_json`` are what they
say; null where the bytes are no UTF-8, or no JSON: ``value_json->>'$.status'``. Functions of JSON
refuse bytes. Each topic is a view of its name, with its records, unless the name is another view's:
``SELECT * FROM orders``.

``offset`` is a keyword of SQL: write ``"offset"``, or ``records.offset``.

Needs DuckDB: ``pip install '.[duckdb]'`` in a clone.
"""

from __future__ import annotations

import re
from collections import deque
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from pylog.errors import InvalidSchemaError, NoSchemaError
from pylog.installation import missing_package
from pylog.model import LATEST
from pylog.pushdown.log_datasets import LatestDataset, RecordsDataset, TableDataset
from pylog.pushdown.sql_views import (
    TEXT_OF,
    find_cast_of_bytes,
    refusals,
    topics_of,
    unknown_table,
    view_of_topic,
    view_with_texts,
    with_field_hint,
    with_hint,
)
from pylog.reading.damage import ReadMode
from pylog.reading.log_directory import LogDirectory, opened
from pylog.reading.scan import scan
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES
from pylog.tables import TABLE_NAMES
from pylog.tables.tables import as_names, table_views, tables_with_options

try:
    import duckdb
except ModuleNotFoundError as error:
    raise missing_package("pylog.duckdb", "DuckDB", "duckdb") from error

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping, MutableSequence
    from types import TracebackType

    from pylog.config.server_properties import ServerProperties
    from pylog.reading.scan import Scan

    Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | LogDirectory

__all__ = ["LogDatabase", "connect", "register"]


def __dir__() -> list[str]:
    return __all__


RECORDS = "records"
"""The view of the records."""
OF_KEYS = "latest"
"""The view of the last record of each key."""
_MOST_TOPICS = 1_000
"""A view takes a millisecond to make."""

_COLUMNS = ("topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers")
_CHOICES_OF_COLUMNS = {"columns", "include_headers", "include_batch_metadata"}
_OF_VIEWS = {"check_crc", "check_keys", "server_properties"}
_OF_TABLES = ("topics", "assign", "pattern", "mode", "leave_page_cache")
_OFFSET_UNQUOTED = re.compile(r'(?<!["\w.])offset(?!["\w])', re.IGNORECASE)


def connect(path: Paths, **arguments: Any) -> duckdb.DuckDBPyConnection:  # noqa: ANN401
    """Return a new DuckDB database in memory with the views of `register`; its time zone is UTC.

    Parameters
    ----------
    path, **arguments
        As of `register`.

    Examples
    --------
    >>> connection = pylog.duckdb.connect("kafka/intact", topics="orders")
    >>> query = "SELECT partition, count(*) FROM records GROUP BY ALL ORDER BY ALL"
    >>> connection.sql(query).fetchall()
    [(0, 57), (1, 49)]
    """
    connection = _in_memory()
    register(connection, path, **arguments)
    return connection


def _in_memory() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def register(
    connection: duckdb.DuckDBPyConnection,
    path: Paths,
    *,
    check_crc: bool = False,
    check_keys: bool = False,
    server_properties: ServerProperties | None = None,
    **arguments: Any,  # noqa: ANN401 - of `pylog.scan`
) -> Scan:
    """Give a DuckDB connection views of the logs under ``path``, in place of any of their names.

    The views live as long as the connection, and cover the logs up to where they ended when they
    were first read. DuckDB reads a timestamp without a zone as one of the connection's time zone
    (``SET TimeZone``).

    Parameters
    ----------
    connection
        To any database.
    path
        As for `pylog.scan`.
    check_crc, check_keys
        Whether ``batches`` computes checksums, and ``cleaning`` reads all records: as of
        `pylog.read_table`, in each query of the view.
    server_properties
        Of a broker, for ``cleaning``: as of `pylog.read_table`.
    **arguments
        Those of `pylog.scan`. With ``value_format`` or ``key_format`` the views of topics have
        typed values or keys, where a topic has a schema, and so has ``latest`` if one topic is
        chosen; ``records`` has bytes. Topics, partitions, ``mode`` and ``leave_page_cache`` hold
        for the metadata tables, too, and ``end`` for ``latest``. By default ``records`` has all
        columns but ``batch``.

    Returns
    -------
    Scan
        What is read; its ``damage`` and ``scanned`` tell of all queries of ``records``.

    Raises
    ------
    LogStorageError, ValueError, TypeError
        As of `pylog.scan`. What goes wrong while a query runs is an error of DuckDB's with the text
        of pylog's error.

    Examples
    --------
    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> scan = pylog.duckdb.register(connection, "kafka/intact", topics="orders")
    >>> connection.sql("SELECT count(*) FROM records").fetchall()
    [(106,)]
    """
    nowhere: deque[BaseException] = deque(maxlen=0)  # an error kept holds all that its frames hold
    path = opened(path, takes_segment_files=True)
    typed = _TypedTopics(path, arguments, nowhere)
    records = _register(
        connection,
        path,
        nowhere,
        check_crc=check_crc,
        check_keys=check_keys,
        server_properties=server_properties,
        **arguments,
    )
    topics = topics_of(records.partitions)
    _add_topics(connection, topics if len(topics) <= _MOST_TOPICS else [], typed)
    _add_latest(connection, topics, typed)
    return records


class _TypedTopics:
    """Scans of single topics with typed values or keys, as ``arguments`` of `register` ask."""

    def __init__(
        self, directory: LogDirectory, arguments: dict[str, Any], errors: MutableSequence[Any]
    ) -> None:
        """Take the formats out of ``arguments``."""
        formats = {name: arguments.pop(name, None) for name in ("value_format", "key_format")}
        self._formats = {name: each for name, each in formats.items() if each is not None}
        self._arguments = {name: arguments[name] for name in arguments.keys() - _OF_VIEWS}
        self._directory, self._errors = directory, errors
        self.scans: dict[str, Scan] = {}
        self.refused: dict[str, InvalidSchemaError] = {}
        """Why a topic has no view, by its name in lower case."""

    def dataset(self, topic: str) -> RecordsDataset | None:
        """Return the records of a topic; None if they are bytes."""
        records = self._scan(topic)
        return None if records is None else RecordsDataset(records, self._errors)

    def latest(self, topic: str) -> LatestDataset | None:
        """Return the last record of each key of a topic; None if they are bytes."""
        records = self._scan(topic)
        if records is None or records.typed is None:
            return None
        of_tables = {name: self._arguments[name] for name in _OF_TABLES if name in self._arguments}
        views = table_views(self._directory, **of_tables)
        options = {
            "mode": ReadMode.parse(self._arguments.get("mode", ReadMode.FAILFAST)),
            "end": self._arguments.get("end", LATEST),
            "max_decompressed_bytes": self._arguments.get(
                "max_decompressed_bytes", DEFAULT_MAX_DECOMPRESSED_BYTES
            ),
        }
        return LatestDataset(records.typed, views, self._errors, options)

    def _scan(self, topic: str) -> Scan | None:
        if not self._formats or topic in self.scans:
            return self.scans.get(topic)
        arguments = {**self._arguments, "topics": [topic], "pattern": None}
        if (assigned := arguments.get("assign")) is not None:
            arguments |= {"topics": None, "assign": {topic: assigned[topic]}}
        if not _CHOICES_OF_COLUMNS & set(arguments):
            arguments["columns"] = _COLUMNS
        try:
            records = scan(self._directory, **arguments, **self._formats)
        except NoSchemaError:
            return None
        if not records.has_one_schema:  # "each", of a topic without a schema
            return None
        self.scans[topic] = records
        return records


def _add_topics(
    connection: duckdb.DuckDBPyConnection, topics: Iterable[str], typed: _TypedTopics
) -> None:
    """Make a view of each topic, unless there is something else of that name."""
    known = {name.lower() for (name,) in connection.sql("SHOW TABLES").fetchall()}
    for topic in topics:
        if topic.lower() in known:
            continue
        dataset = typed.dataset(topic)
        if dataset is None:
            connection.execute(view_of_topic(topic, RECORDS))
        else:
            _add_view(connection, topic, dataset)


def _add_latest(
    connection: duckdb.DuckDBPyConnection, topics: list[str], typed: _TypedTopics
) -> bool:
    """Give the view of the last record of each key typed values, if it is of one topic."""
    dataset = typed.latest(topics[0]) if len(topics) == 1 else None
    if dataset is not None:
        _add_view(connection, OF_KEYS, dataset)
    return dataset is not None


def _register(
    connection: duckdb.DuckDBPyConnection,
    path: LogDirectory,
    errors: MutableSequence[BaseException],
    *,
    check_crc: bool = False,
    check_keys: bool = False,
    server_properties: ServerProperties | None = None,
    **arguments: Any,  # noqa: ANN401 - of `pylog.scan`
) -> Scan:
    if not _CHOICES_OF_COLUMNS & set(arguments):
        arguments["columns"] = _COLUMNS
    records = scan(path, **arguments)
    for statement in refusals():
        connection.execute(statement)
    _add_view(connection, RECORDS, RecordsDataset(records, errors))
    of_tables = {name: arguments[name] for name in _OF_TABLES if name in arguments}
    views = table_views(path, **of_tables)
    choice = {name: arguments.get(name) for name in ("topics", "assign", "pattern")}
    choice["topics"] = as_names(choice["topics"])
    most = arguments.get("max_decompressed_bytes", DEFAULT_MAX_DECOMPRESSED_BYTES)
    for table in tables_with_options(
        check_crc=check_crc,
        check_keys=check_keys,
        server_properties=server_properties,
        end=arguments.get("end", LATEST),
        max_decompressed_bytes=most,
    ):
        dataset = TableDataset(table, path, views, errors, choice)
        if set(TEXT_OF) & set(dataset.schema.names):
            _add_view(connection, table.name, dataset)
        else:
            connection.register(table.name, dataset)
    return records


def _add_view(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    dataset: RecordsDataset | TableDataset | LatestDataset,
) -> None:
    """Make a view that also has the texts of keys and values."""
    source = f"pylog {name}, without texts"
    connection.register(source, dataset)
    connection.execute(view_with_texts(name, source, dataset.schema))


class LogDatabase:
    """A DuckDB database in memory with the views of `register`, which raises pylog's own errors.

    For one thread, but for `interrupt`. A context: leaving it closes the database.

    Attributes
    ----------
    records
        What the view ``records`` reads; its ``damage`` and ``scanned`` tell of all queries.
    typed
        What views of topics with typed values or keys read, by topic, likewise.
    """

    def __init__(self, path: Paths, **arguments: Any) -> None:  # noqa: ANN401 - of `register`
        self._errors: list[BaseException] = []
        self._rows: pa.RecordBatchReader | None = None
        with ExitStack() as stack:
            # By default DuckDB would put what does not fit into memory below the working directory,
            # which may be a log directory.
            spilled = stack.enter_context(TemporaryDirectory(prefix="pylog-sql-"))
            self._connection = stack.enter_context(_in_memory())
            quoted = spilled.replace("'", "''")
            self._connection.execute(f"SET temp_directory = '{quoted}'")
            self._connection.execute("SET enable_progress_bar = false")
            # No variable of ours is a table.
            self._connection.execute("SET python_enable_replacements = false")
            directory = opened(path, takes_segment_files=True)
            self._typed = _TypedTopics(directory, arguments, self._errors)
            self.typed: Mapping[str, Scan] = self._typed.scans
            self.records = _register(self._connection, directory, self._errors, **arguments)
            self._topics = topics_of(self.records.partitions)
            self._open = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def query(self, sql: str) -> pa.RecordBatchReader:
        """Return the rows of a statement as they are found; memory stays bounded where SQL allows.

        It ends the query before: rows of that one which have not been read are not wanted any more,
        and who asks for them gets a ValueError.

        Parameters
        ----------
        sql
            A statement of DuckDB's SQL, or several, of which the last one gives the rows.

        Raises
        ------
        LogStorageError
            As of `pylog.results.Scan.to_batches`, also while the rows are read.
        ValueError
            DuckDB refuses the statement, or cannot finish it; also while the rows are read.
        """
        if self._rows is not None:
            self._rows.close()  # DuckDB refuses a second query beside it
        self._errors.clear()
        with self._own_errors(sql):
            named = sql.lower()
            topics = [each for each in self._topics if each.lower() in named]
            for each in topics:
                try:
                    _add_topics(self._connection, [each], self._typed)
                except InvalidSchemaError as error:  # it counts if the statement means the topic
                    self._typed.refused[each.lower()] = error
            if OF_KEYS in named:
                try:
                    if _add_latest(self._connection, self._topics, self._typed):
                        topics = self._topics
                except InvalidSchemaError as error:
                    self._typed.refused[OF_KEYS] = error
                    self._connection.execute(f"DROP VIEW IF EXISTS {OF_KEYS}")
        cast = None if self.typed.keys() & set(topics) else find_cast_of_bytes(sql)
        if cast is not None:
            raise ValueError(cast)
        with self._own_errors(sql):
            relation: object = self._connection.sql(sql)
            if relation is None:  # what older versions give for a statement without rows
                return pa.RecordBatchReader.from_batches(pa.schema([]), [])
            rows = self._rows = pa.RecordBatchReader.from_stream(relation)
        return pa.RecordBatchReader.from_batches(rows.schema, self._batches(rows, sql))

    def interrupt(self) -> None:
        """End the query that another thread runs; that one gets a ValueError."""
        self._connection.interrupt()

    def _batches(self, rows: pa.RecordBatchReader, sql: str) -> Iterator[pa.RecordBatch]:
        with self._own_errors(sql), rows:
            for batch in rows:
                yield batch
                if rows is not self._rows:
                    msg = "another query of this database has ended this one; read its rows before"
                    raise ValueError(msg)

    @contextmanager
    def _own_errors(self, sql: str) -> Iterator[None]:
        """Raise what a read raised, where DuckDB and Arrow have its text alone."""
        try:
            yield
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            if self._errors:
                raise self._errors[0] from error
            unknown = unknown_table(str(error))
            if unknown is not None and unknown.lower() in self._typed.refused:
                raise self._typed.refused[unknown.lower()] from error
            known = {RECORDS, *TABLE_NAMES, *self._topics}
            message = with_hint(_in_one_line(str(error), sql), known)
            tables = set(TABLE_NAMES) - {OF_KEYS}
            raise ValueError(with_field_hint(message, sql, tables)) from error


_NAME_WITH_A_DASH = re.compile(r"(?i)\b(?:from|join)\s+([\w.]+(?:-[\w.]+)+)")
_CANDIDATES = "Candidate functions:"
_EXPRESSION = re.compile(r'expression "(?:\w+\.)?(?:key|value)"')


def _in_one_line(text: str, sql: str) -> str:
    """Return DuckDB's message without its drawing of the statement, and what it does not say."""
    lines = [line.strip() for line in text.partition("\nLINE ")[0].splitlines()]
    if _CANDIDATES in lines and (more := len(lines) - lines.index(_CANDIDATES) - 4) > 0:
        lines[-more:] = [f"and {more} more"]
    message = "; ".join(filter(None, lines))
    if text.startswith("Parser Error") and _OFFSET_UNQUOTED.search(sql):
        message += '; offset is a keyword of SQL: write "offset" in quotes, or records.offset'
    if text.startswith("Parser Error") and (name := _NAME_WITH_A_DASH.search(sql)):
        message += f'; write "{name[1]}" in quotes'
    if "from expression" in text and _EXPRESSION.search(text):
        message += "; keys and values are bytes: write value_json->>'$.status'"
    return message
