"""The metadata tables: their registry, and `read_table`."""

from __future__ import annotations

import logging
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pylog.locations import in_store
from pylog.model import LATEST as LOG_END
from pylog.model import check_specs
from pylog.reading.damage import DamageReport, ReadMode
from pylog.reading.log_directory import LogDirectory, opened
from pylog.reading.log_view import read_steadily, read_unless_deleted
from pylog.reading.scan import scan
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES
from pylog.scheduling.worker_threads import thread_count, usable_processors
from pylog.tables import unknown_table
from pylog.tables.batches import BATCHES
from pylog.tables.cleaning import CLEANING
from pylog.tables.connect import CONNECT_CONFIGS, CONNECT_OFFSETS, CONNECT_STATUS
from pylog.tables.latest import LATEST, decoded_latest
from pylog.tables.log_tables import (
    FINDINGS_TABLE,
    INDEX_ENTRIES,
    LEADER_EPOCHS,
    PARTITIONS,
    PRODUCERS,
    SEGMENTS,
    TRANSACTIONS,
)
from pylog.tables.mirror_maker import MM2_CHECKPOINTS, MM2_HEARTBEATS, MM2_OFFSET_SYNCS
from pylog.tables.schemas import SCHEMAS
from pylog.text.instants import FIRST_MS, LAST_MS, calendar_text
from pylog.text.names import names_nearest_keyword

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from pylog.config.server_properties import ServerProperties
    from pylog.model import OffsetSpecs
    from pylog.reading.damage import ReadModeName
    from pylog.reading.log_view import LogView
    from pylog.reading.scan import Scan
    from pylog.reading.value_format import ValueFormat
    from pylog.tables import TableName
    from pylog.tables.metadata_table import MetadataTable


_LOGGER = logging.getLogger(__name__)

# A table is added by its place here and its name in `pylog.tables`, in the same order.
METADATA_TABLES = (
    PARTITIONS,
    SEGMENTS,
    BATCHES,
    INDEX_ENTRIES,
    TRANSACTIONS,
    PRODUCERS,
    LEADER_EPOCHS,
    CLEANING,
    FINDINGS_TABLE,
    LATEST,
    SCHEMAS,
    MM2_CHECKPOINTS,
    MM2_OFFSET_SYNCS,
    MM2_HEARTBEATS,
    CONNECT_OFFSETS,
    CONNECT_CONFIGS,
    CONNECT_STATUS,
)
_BY_NAME = {table.name: table for table in METADATA_TABLES}


def metadata_table(
    name: str,
    *,
    check_crc: bool = False,
    check_keys: bool = False,
    server_properties: ServerProperties | None = None,
    end: OffsetSpecs = LOG_END,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> MetadataTable:
    """Return the table of that name.

    Parameters
    ----------
    name
        One of `pylog.TABLE_NAMES`.
    check_crc
        Whether ``batches`` says which checksums are right.
    check_keys
        Whether ``cleaning`` reads all records, to say which are live.
    server_properties
        Of a broker, for ``cleaning``.
    end
        Of which offset or time ``latest`` shows the state.
    max_decompressed_bytes
        For ``findings`` and ``latest``, which decode records: as of
        `pylog.reading.reader.TaskReader`.

    Raises
    ------
    ValueError
        There is no such table (the error names the nearest), or it has no checksums, or nothing to
        say of keys.

    Examples
    --------
    >>> pylog.jobs.metadata_table("leader_epochs").schema.names
    ['topic', 'partition', 'epoch', 'start_offset', 'end_offset', 'defect']
    """
    if name not in _BY_NAME:
        raise ValueError(unknown_table(name))
    table = _BY_NAME[name]
    given = {
        "check_crc": check_crc,
        "check_keys": check_keys,
        "server_properties": server_properties,
        "end": end,
    }
    for option, value in given.items():
        if value not in (False, None, LOG_END) and option not in table.options:
            owner = next(each for each in METADATA_TABLES if option in each.options)
            msg = f"{option} is for table {owner.name!r}, table {name!r} {owner.options[option]}"
            raise ValueError(msg)
    return table.with_options({**given, "max_decompressed_bytes": max_decompressed_bytes})


def tables_with_options(**options: object) -> list[MetadataTable]:
    """Return all tables, each with those of the options that it has."""
    return [each.with_options(options) for each in METADATA_TABLES]


_MAX_THREADS = 16


def rows_of_logs(
    table: MetadataTable, views: Sequence[LogView], *, are_named: bool
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of each log in turn; one that is deleted meanwhile is an error if it is named.

    They are read by as many threads as there are processors, or as the environment variable
    ``PYLOG_NUM_THREADS`` says; the rows of one log more than that are in memory.
    """

    def read(now: LogView) -> list[pa.RecordBatch]:
        return list(table.rows_of(now))

    def rows_of(view: LogView) -> list[pa.RecordBatch]:
        if not are_named:
            return read_unless_deleted(view, read, [])
        rows = read_steadily(view, read)
        if view.directory.was_deleted():
            _ = view.refreshed().listing  # raises; files that are gone may look as if unwritten
        return rows

    # Threads: kernels and reads release the interpreter, and a disk or a store has latency to hide.
    threads = max(1, min(_MAX_THREADS, len(views), thread_count(default=usable_processors())))
    waiting: deque[Future[list[pa.RecordBatch]]] = deque()
    coming = iter(views)
    with ThreadPoolExecutor(threads, "pylog-table") as pool:
        try:
            while True:
                while len(waiting) <= threads and (view := next(coming, None)) is not None:
                    waiting.append(pool.submit(rows_of, view))
                if not waiting:
                    return
                yield from waiting.popleft().result()
        finally:
            for each in waiting:
                each.cancel()


@names_nearest_keyword
def read_table(  # noqa: PLR0913 - keyword-only options, one for each thing a user may say
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | LogDirectory,
    table: TableName,
    *,
    topics: str | Iterable[str] | None = None,
    assign: Mapping[str, Iterable[int]] | None = None,
    pattern: str | None = None,
    check_crc: bool = False,
    check_keys: bool = False,
    server_properties: ServerProperties | None = None,
    end: OffsetSpecs = LOG_END,
    mode: ReadModeName | ReadMode = ReadMode.FAILFAST,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    leave_page_cache: bool = False,
    filesystem: object | None = None,
    storage_options: Mapping[str, object] | None = None,
    columns: Iterable[str] | None = None,
    value_format: str | ValueFormat | None = None,
    key_format: str | ValueFormat | None = None,
    where: str | None = None,
) -> pa.Table:
    """Return a table about the logs under ``path``.

    Made of batch headers and side files; only "findings", "latest" and "schemas" decode records,
    and "cleaning" where keys are asked for. Partitions are read side by side, by as many threads as
    there are processors, or as the environment variable ``PYLOG_NUM_THREADS`` says.

    Parameters
    ----------
    path
        A log directory, a topic-partition directory, several of them, or what `open_directory`
        returned. Never written to or locked, nor read through a mapping.
    table
        "partitions", "segments", "batches", "index_entries", "transactions", "producers",
        "leader_epochs", "cleaning", "findings", "latest" or "schemas"; docs/table-columns.md has
        their columns.
    topics, assign, pattern
        Which partitions: topic names, partitions by topic, or a regular expression found in topic
        names. By default all topics but internal ones, which must be named: ``topics`` may be the
        ``topics`` of a `LogDirectory`.
    check_crc
        Whether table "batches" computes checksums, for its column ``is_valid_crc``.
    check_keys
        Whether table "cleaning" reads all records, twice, and so says how much of a compacted topic
        is live; up to 128 MiB for each partition that is being read.
    server_properties
        A broker's file, for table "cleaning": what topics are configured to that have nothing of
        their own, and where the cluster's metadata is. Metadata in the log directory counts without
        it, too.
    end
        Of which offset or time table "latest" shows the state: as of `scan`.
    mode
        "FAILFAST": damage to a log is an error. "DROPMALFORMED", "PERMISSIVE": batches that are
        damaged, also those of a wrong checksum, and what cannot be read at all are left out and
        logged as warnings. In every mode damage is a row of table "findings", and a value in the
        partition's row of table "partitions"; and what is wrong with a side file is a value in a
        row of the table that is about it.
    max_decompressed_bytes
        Most bytes that the records of one batch may have, decompressed. In table "findings", a
        batch that has more is a row; in "latest" it is damage.
    leave_page_cache
        As for `scan`. Whole batches are read, where otherwise headers would do.
    filesystem, storage_options
        How the path's store is reached, as for `pylog.location`; nothing for a `LogDirectory`.
    columns
        The names of the columns, in the order wanted; all by default.
    value_format, key_format
        How table "latest" decodes values and keys, as for `scan`. ``columns`` may then name
        ``value_raw``, ``value_schema_id``, ``value_subject`` and ``_corrupt_record``, too.
    where
        A condition on decoded fields, as for `scan`: the rows of table "latest" that pass. A key
        whose last record does not pass has no row, whatever its older records say.

    Returns
    -------
    pyarrow.Table
        Ordered by topic and partition, and then as the log is. In table "findings", rows about log
        directories come first, whichever partitions are chosen. Timestamps are timestamp[ms, UTC].
        A column with one that no ``datetime`` can be (before year 1 or after 9999, as from a
        producer that took microseconds for milliseconds) is int64, in ms, and a warning names it.

    Raises
    ------
    LogStorageError
        The path holds no log, not what was asked for, or a log that is damaged.
    ValueError
        An argument makes no sense.
    TypeError
        There is no such argument; the nearest name is given.

    Examples
    --------
    >>> segments = pylog.read_table("kafka/intact", "segments", topics="orders")
    >>> segments.column("base_offset").to_pylist()
    [0, 36, 0, 16]
    """
    wanted = metadata_table(
        table,
        check_crc=check_crc,
        check_keys=check_keys,
        server_properties=server_properties,
        end=end,
        max_decompressed_bytes=max_decompressed_bytes,
    )
    directory = opened(in_store(path, filesystem, storage_options))
    names = wanted.schema.names if columns is None else list(columns)
    if (value_format, key_format, where) != (None, None, None):
        if wanted.name != LATEST.name:
            msg = f"value_format, key_format and where are for table 'latest', not for {table!r}"
            raise ValueError(msg)
        choice = {"topics": topics, "assign": assign, "pattern": pattern, "mode": mode}
        formats = {"value_format": value_format, "key_format": key_format, "where": where}
        records = latest_scan(directory, columns=names, **choice, **formats)
        if records.typed is not None:
            wanted = decoded_latest(
                *(records.typed, records.schema, ReadMode.parse(mode)),
                end=end,
                max_decompressed_bytes=max_decompressed_bytes,
            )
    _check_columns(names, wanted)
    views = []
    if len(directory) or topics or assign or pattern or not wanted.has_directory_rows:
        views = table_views(
            directory,
            topics=topics,
            assign=assign,
            pattern=pattern,
            mode=mode,
            leave_page_cache=leave_page_cache,
        )
    check_specs(end, [view.topic_partition for view in views])
    wanted, rows_of_directories = wanted.bound(
        directory.given, topics=as_names(topics), assign=assign, pattern=pattern
    )
    are_named = topics is not None or assign is not None
    batches = chain(rows_of_directories(), rows_of_logs(wanted, views, are_named=are_named))
    rows = pa.Table.from_batches(batches, schema=wanted.schema)
    return _without_far_times(rows.select(names))


def latest_scan(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | LogDirectory,
    *,
    columns: Iterable[str] | None = None,
    **arguments: Any,  # noqa: ANN401 - of `pylog.scan`
) -> Scan:
    """Return the scan whose typed columns and conditions rows of table ``latest`` have."""
    names = LATEST.schema.names if columns is None else columns
    records = scan(path, columns=names, timestamp_unit="ms", **arguments)
    records.ensure_one_schema()
    return records


def _check_columns(names: Sequence[str], table: MetadataTable) -> None:
    known = table.schema.names
    if unknown := [name for name in names if name not in known]:
        msg = f"table {table.name!r} has no column {unknown[0]!r}: it has {', '.join(known)}"
        raise ValueError(msg)


def _without_far_times(rows: pa.Table) -> pa.Table:
    """Return the table, whose ``to_pylist`` does not fail: Arrow would make datetimes of times."""
    for index, column in enumerate(rows.schema):
        if not pa.types.is_timestamp(column.type):
            continue
        times = rows.column(index).cast(pa.int64())
        found = pc.min_max(times).as_py()
        if found["min"] is None or FIRST_MS <= found["min"] <= found["max"] <= LAST_MS:
            continue
        far = found["min"] if found["min"] < FIRST_MS else found["max"]
        _LOGGER.warning(
            "column %s is in milliseconds: it has a time that no datetime can be, %s",
            *(column.name, calendar_text(far, 1000)),
        )
        rows = rows.set_column(index, pa.field(column.name, pa.int64()), times)
    return rows


def as_names(topics: str | Iterable[str] | None) -> list[str] | None:
    """Return the topics that an argument names."""
    return [topics] if isinstance(topics, str) else None if topics is None else list(topics)


def table_views(
    directory: LogDirectory,
    *,
    topics: str | Iterable[str] | None = None,
    assign: Mapping[str, Iterable[int]] | None = None,
    pattern: str | None = None,
    mode: ReadModeName | ReadMode = ReadMode.FAILFAST,
    leave_page_cache: bool = False,
) -> list[LogView]:
    """Return the logs that a table is made of, in its order; all parameters as of `read_table`."""
    views = directory.select(topics=as_names(topics), assign=assign, pattern=pattern)
    views.sort(key=lambda view: view.topic_partition)
    skips_damage = ReadMode.parse(mode).skips_damage
    return [
        view.read_as(
            replace(view.access, leave_page_cache=leave_page_cache),
            DamageReport() if skips_damage else view.damage,
        )
        for view in views
    ]
