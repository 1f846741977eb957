"""``pylog.write_topic``: a table, or records one by one, into a topic of a log directory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from pylog.columnar.encode import DEFAULT_BATCH_SIZE_BYTES
from pylog.config import LogConfig
from pylog.lazy_modules import LazyModule
from pylog.log.log_context import LogContext
from pylog.log.log_manager import ensure_open
from pylog.record.compressor import parse_compression
from pylog.writing.owned_directory import own_log_directory
from pylog.writing.partitioner import ensure_known_partitioner, partitioner_for
from pylog.writing.record_rows import ColumnNames, batches_of_objects, find_columns
from pylog.writing.topic_writer import TopicWriter
from pylog.writing.topics import (
    add_partition,
    create_topic,
    ensure_possible_count,
    logs_of_topic,
    topic_id_of,
)
from pylog.writing.write_summary import WriteSummary

if TYPE_CHECKING:
    import os
    import uuid

    import numpy.typing as npt

    from pylog.config.server_properties import ServerProperties
    from pylog.log.log_manager import LogManager
    from pylog.log.unified_log import UnifiedLog
    from pylog.model import CompressionType
    from pylog.writing import column_encoder, schema_registration
    from pylog.writing.column_encoder import ColumnEncoder
    from pylog.writing.partitioner import Partitioner
    from pylog.writing.schema_registration import SchemaRegistration
    from pylog.writing.writer_schema import WriterSchema
else:
    column_encoder = LazyModule("pylog.writing.column_encoder")
    schema_registration = LazyModule("pylog.writing.schema_registration")

ROWS_AT_ONCE = 65_536
"""Rows of a table that are sorted into partitions at a time."""
ROWS_REHEARSED = 4_096
"""Rows of which it is known that no log refuses them before the directory is opened."""


@runtime_checkable
class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


def write_topic(  # noqa: PLR0913 - keyword-only options
    directory: str | os.PathLike[str],
    topic: str,
    records: object,
    *,
    partitions: int | None = None,
    add_partitions: bool = False,
    key: str | None = None,
    value: str = "value",
    timestamp: str | None = None,
    headers: str | None = None,
    partition: str | None = None,
    value_schema: str | os.PathLike[str] | WriterSchema | None = None,
    key_schema: str | os.PathLike[str] | WriterSchema | None = None,
    partitioner: str | Partitioner = "default",
    compression: str | CompressionType = "none",
    level: int | None = None,
    batch_size: int = DEFAULT_BATCH_SIZE_BYTES,
    config: LogConfig | Mapping[str, str] | None = None,
    topic_id: uuid.UUID | None = None,
    server_properties: ServerProperties | None = None,
    context: LogContext | None = None,
    recover_as_broker: bool = False,
) -> WriteSummary:
    """Append records to a topic, which is created if it does not exist; all is on disk on return.

    Parameters
    ----------
    directory
        A log directory that no broker has open; created if it does not exist.
    topic
        The name of the topic.
    records
        A ``pyarrow`` Table, RecordBatch or RecordBatchReader, whatever else exports an Arrow stream
        (pandas and Polars data frames), or an iterable of records, see `pylog.writing.record_rows`.
        Columns that are not named here are left out. Types: see `pylog.columnar.encode`.
    partitions
        How many partitions the topic has after the call. By default an existing topic keeps those
        that it has, and a new one gets 1. A topic never loses partitions.
    add_partitions
        Whether an existing topic may get more partitions, as by ``kafka-topics --alter``. Kafka's
        partitioner then sends keys to other partitions than before, so that the records of one
        key, old and new, may lie in two.
    key, value, timestamp, headers
        The columns that hold them. ``key``, ``timestamp`` and ``headers`` default to the column of
        that name, if there is one. A record without a timestamp gets the time of writing.
    partition
        The column of integers that says which partition a record goes to, in place of
        ``partitioner``. ``partition="partition"`` keeps the partitions of a scan.
    value_schema, key_schema
        Encode values, or keys, by a schema: a file, ``latest`` for the one that is registered, or a
        `pylog.jobs.WriterSchema`. They are columns of any type that the schema takes, or Python's
        objects, and an error names the row and the path into the value. A new schema is registered
        in the directory's topic ``_schemas``. All rows are encoded before anything is written.
    partitioner
        ``default`` (Kafka's: by hash of the key, records without key spread), ``round_robin``,
        ``integer_key`` (decimal keys modulo partitions), or a function that gives the partition of
        each row of a record batch with columns ``key`` and ``value``.
    compression, level
        ``none``, ``gzip``, ``snappy``, ``lz4`` or ``zstd``, and the codec's level (None for Kafka's
        default). If the topic has a ``compression.type`` of its own, that one is used.
    batch_size
        The most bytes of a batch before compression; a larger record gets a batch of its own.
    config
        The topic's own configuration, which is stored in the directory
        (`LogManager.store_topic_config`) when the topic is created.
    topic_id
        The id of a new topic; a random one if None.
    server_properties
        What a broker's file says: what topics are configured to that have nothing of their own, and
        how many partitions a new one gets. Kafka's defaults if None.
    context
        The clock, the disk and the background work; the real ones if None.
    recover_as_broker
        Whether recovery may drop intact batches, as a broker's does.

    Returns
    -------
    WriteSummary
        Records and bytes appended, and where each partition ends now.

    Raises
    ------
    ValueError
        An argument, a column or a record is wrong, or the topic would get more partitions without
        ``add_partitions``.
    LogLockedError
        A broker, or somebody else, has the directory open.
    RecoveryRefusedError
        Recovery would drop intact batches of the topic, and may not. Nothing has been changed.
    InvalidSchemaError
        A schema is wrong, or not compatible with the versions before.
    LogStorageError
        The directory or a record is refused, or the disk failed.

    Notes
    -----
    What has been appended before an error is kept. The options, the types of the columns, the
    partitions of the first rows, and the first 4,096 of these rows in full, are checked before the
    directory is opened: what they are refused for changes no file.

    Examples
    --------
    >>> rows = [{"key": "anna", "value": "10"}, {"key": "ben", "value": "20"}]
    >>> summary = pylog.write_topic("logs", "accounts", rows, partitions=2, compression="zstd")
    >>> summary.records, summary.end_offsets
    (2, {0: 0, 1: 2})
    """
    context = context or LogContext()
    schemas = _planned(directory, topic, {"key": key_schema, "value": value_schema})
    topics = {topic, *(() if schemas is None else schemas.topics)}
    owner = own_log_directory(
        directory,
        server_properties=server_properties,
        context=context,
        recover_as_broker=recover_as_broker,
        before_changes=ensure_open(lambda each: each.topic in topics),
    )
    codec = parse_compression(compression)
    names = ColumnNames(key, value, timestamp, headers, partition)
    ensure_known_partitioner(partitioner)
    batches = _batches(records, names, {} if schemas is None else schemas.encoders)
    if schemas is not None:  # all is encoded before anything is written
        batches = iter(list(batches))
    first = [each for each in islice(batches, 1) if each[0].num_rows]
    # Whatever is wrong with the options shows before a topic is made.
    make_writer = partial(
        TopicWriter, topic, compression=codec, level=level, batch_size_bytes=batch_size
    )

    make_partitioner = cache(partial(partitioner_for, partitioner))  # it may count the rows

    def begin(manager: LogManager) -> tuple[dict[int, UnifiedLog], TopicWriter]:
        """Return the logs of the topic, which is made if it is not there, and what writes to it."""
        if schemas is not None:
            schemas.enter(manager)
        make_writer({}, _config_to_be(manager, topic, config))
        count = partitions
        if count is None and server_properties is not None and not logs_of_topic(manager, topic):
            count = server_properties.num_partitions
        logs = _open_topic(manager, topic, count, config, topic_id, may_grow=add_partitions)
        chosen_by = make_partitioner(len(logs))
        return logs, make_writer(logs, manager.config_of(topic), partitioner=chosen_by)

    # What refuses the first rows refuses them before the directory is owned.
    with owner.rehearsal(lambda each: each.topic in topics) as rehearsed:
        _, rehearsing = begin(rehearsed)
        placed = _rehearsed(rehearsing, first, context.clock.milliseconds())
    with owner as manager:
        logs, writer = begin(manager)
        for batch, chosen in chain(placed, batches):
            writer.append(batch, timestamp_ms=context.clock.milliseconds(), partitions=chosen)
        written = writer.summaries.values()
        return WriteSummary(
            topic,
            topic_id_of(logs),
            sum(each.records for each in written),
            sum(each.size_bytes for each in written),
            {number: log.log_end_offset for number, log in logs.items()},
        )


def _planned(
    directory: str | os.PathLike[str],
    topic: str,
    wanted: Mapping[str, str | os.PathLike[str] | WriterSchema | None],
) -> SchemaRegistration | None:
    """Return how keys and values are encoded; None if they are bytes."""
    if not any(wanted.values()):
        return None
    return schema_registration.plan_registration(directory, topic, wanted)


def _rehearsed(writer: TopicWriter, batches: Iterable[_Batch], timestamp_ms: int) -> list[_Batch]:
    """Return batches with the partition of each row, once the first rows were appended."""
    placed: list[_Batch] = []
    for batch, chosen in batches:
        places = writer.assign(batch, chosen)
        placed.append((batch, places))
        writer.append(
            batch[:ROWS_REHEARSED], timestamp_ms=timestamp_ms, partitions=places[:ROWS_REHEARSED]
        )
    return placed


def _config_to_be(
    manager: LogManager, topic: str, config: LogConfig | Mapping[str, str] | None
) -> LogConfig:
    if logs_of_topic(manager, topic):
        return manager.config_of(topic)
    return manager.config.with_properties(_properties(config))


def _open_topic(
    manager: LogManager,
    topic: str,
    partitions: int | None,
    config: LogConfig | Mapping[str, str] | None,
    topic_id: uuid.UUID | None,
    *,
    may_grow: bool,
) -> dict[int, UnifiedLog]:
    logs = logs_of_topic(manager, topic)
    if not logs:
        create_topic(
            manager,
            topic,
            1 if partitions is None else partitions,
            topic_id=topic_id,
            properties=_properties(config),
        )
        return logs_of_topic(manager, topic)
    if topic_id is not None and topic_id_of(logs) != topic_id:
        msg = f"topic {topic!r} has id {topic_id_of(logs)}, not {topic_id}"
        raise ValueError(msg)
    if config is not None and not isinstance(config, LogConfig):
        config = LogConfig.from_properties(config)
    if config is not None and config != manager.config_of(topic):
        msg = f"topic {topic!r} already exists with another configuration"
        raise ValueError(msg)
    if partitions is not None:
        for number in _missing(topic, logs, partitions, may_grow=may_grow):
            add_partition(manager, topic, number)
    return logs_of_topic(manager, topic)


def _missing(topic: str, numbers: Collection[int], partitions: int, *, may_grow: bool) -> list[int]:
    """Return the partitions that a topic is to get; `ValueError` if it may not."""
    if partitions <= max(numbers):
        msg = f"topic {topic!r} has partitions up to {max(numbers)}, more than {partitions} in all"
        raise ValueError(msg)
    missing = [number for number in range(partitions) if number not in numbers]
    if missing and not may_grow:
        msg = (
            f"partitions={partitions} would add {len(missing)} to topic {topic!r}, which has "
            f"{len(numbers)}; leave partitions out to write to those that it has, or pass "
            "add_partitions=True, after which keys go to other partitions than before"
        )
        raise ValueError(msg)
    ensure_possible_count(partitions)
    return missing


def _properties(config: LogConfig | Mapping[str, str] | None) -> dict[str, str]:
    if config is None:
        return {}
    if isinstance(config, Mapping):
        return {name: str(text) for name, text in config.items()}
    defaults = LogConfig().properties()
    return {name: text for name, text in config.properties().items() if defaults[name] != text}


_Batch = tuple[pa.RecordBatch, "npt.NDArray[np.integer[Any]] | None"]


def _batches(
    records: object, names: ColumnNames, encoders: Mapping[str, ColumnEncoder]
) -> Iterator[_Batch]:
    if isinstance(records, pa.RecordBatch):
        records = pa.Table.from_batches([records])
    if isinstance(records, _ArrowStream):
        reader = pa.RecordBatchReader.from_stream(records)
        columns = find_columns(reader.schema, names, encoders)
        return _batches_of_stream(reader, columns, names.partition, encoders)
    if not isinstance(records, Iterable) or isinstance(records, str | bytes | Mapping):
        msg = (
            f"records are a {type(records).__name__}, expected an Arrow table, a data frame or an "
            "iterable of records"
        )
        raise ValueError(msg)  # noqa: TRY004 - as every other wrong argument
    by_default = (names.key or "key", names.timestamp or "timestamp", names.headers or "headers")
    standard = ColumnNames(by_default[0], names.value, *by_default[1:], names.partition)
    return (
        (batch, None if numbers is None else np.array(numbers, dtype=np.int64))
        for batch, numbers in batches_of_objects(records, standard, encoders)
    )


def _batches_of_stream(
    reader: pa.RecordBatchReader,
    columns: Mapping[str, str],
    partition: str | None,
    encoders: Mapping[str, ColumnEncoder],
) -> Iterator[_Batch]:
    first_row = 0
    for batch in _evenly(reader):
        parts = {part: batch.column(name) for part, name in columns.items() if part != "partition"}
        parts.setdefault("key", pa.nulls(batch.num_rows))
        numbers = None
        if partition is not None:
            numbers = _partition_numbers(batch.column(partition), partition)
        made = pa.RecordBatch.from_arrays(list(parts.values()), names=list(parts))
        if encoders:
            made = column_encoder.encode_columns(made, encoders, first_row)
        yield made, numbers
        first_row += batch.num_rows


def _partition_numbers(column: pa.Array, name: str) -> npt.NDArray[np.int64]:
    if column.null_count:
        msg = f"column {name!r} has nulls, partitions are integers"
        raise ValueError(msg)
    numbers: npt.NDArray[np.int64] = column.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _evenly(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Yield the rows in record batches that are neither large nor, all but the last, tiny."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in reader:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= ROWS_AT_ONCE // 2:
            yield from _merged(waiting)
            waiting, rows = [], 0
    yield from _merged(waiting)


def _merged(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if not batches:
        return
    table = pa.Table.from_batches(batches)
    merged = table.combine_chunks() if len(batches) > 1 else table
    yield from merged.to_batches(max_chunksize=ROWS_AT_ONCE)
