"""The metadata tables: name, schema, and the function that makes a partition's rows."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pylog.errors import LogDirectoryError
from pylog.inspect.tables.batches_table import BATCHES_SCHEMA, batches_of
from pylog.inspect.tables.cleaning_table import CLEANING_SCHEMA, cleaning_of
from pylog.inspect.tables.findings_table import (
    FINDINGS_SCHEMA,
    findings_of,
    findings_of_directories,
)
from pylog.inspect.tables.index_entries_table import INDEX_ENTRIES_SCHEMA, index_entries_of
from pylog.inspect.tables.leader_epochs_table import LEADER_EPOCHS_SCHEMA, leader_epochs_of
from pylog.inspect.tables.partitions_table import PARTITIONS_SCHEMA, partitions_of
from pylog.inspect.tables.producers_table import PRODUCERS_SCHEMA, producers_of
from pylog.inspect.tables.segments_table import SEGMENTS_SCHEMA, segments_of
from pylog.inspect.tables.table_names import unknown_table
from pylog.inspect.tables.transactions_table import TRANSACTIONS_SCHEMA, transactions_of
from pylog.record.decompression_limit import DEFAULT_MAX_DECOMPRESSED_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from pylog.reading.log_directory import LogDirectory
    from pylog.reading.log_view import LogView


_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MetadataTable:
    """A table about the structure of logs, made of headers and side files.

    Only ``findings`` decodes records, to find those that cannot be, and ``cleaning`` where keys are
    asked for.

    Attributes
    ----------
    name
        One of `pylog.inspect.tables.table_names.TABLE_NAMES`.
    schema
        Arrow schema; ``topic`` and ``partition`` first, timestamps in ms.
    record_batches
        Returns the rows of one partition in order, as record batches of this schema that own their
        memory. Errors are `pylog.errors.LogStorageError`.
    directory_batches
        Returns rows about log directories, whose topic and partition are null; None of a table that
        has no such rows.
    """

    name: str
    schema: pa.Schema
    record_batches: Callable[[LogView], Iterable[pa.RecordBatch]]
    directory_batches: Callable[[LogDirectory], Iterable[pa.RecordBatch]] | None = None

    @property
    def has_directory_rows(self) -> bool:
        """Whether there may be rows about log directories."""
        return self.directory_batches is not None

    def rows_of_directories(self, directory: LogDirectory) -> Iterator[pa.RecordBatch]:
        """Yield the rows about the log directories that were given, which come before all others.

        Raises
        ------
        LogStorageError
            A partition cannot be listed.
        """
        if self.directory_batches is not None:
            yield from self.directory_batches(directory)

    def rows_of(self, view: LogView) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one partition, or those up to what keeps it from being read.

        Raises
        ------
        LogStorageError
            Something is damaged or cannot be read. Where the view skips damage, a directory or
            file that cannot be read is a warning instead, so that it does not hide the others.
        """
        try:
            yield from self.record_batches(view)
        except LogDirectoryError as error:
            if view.damage is None:
                raise
            _LOGGER.warning(
                "table %s has not all of %s: %s", self.name, view.topic_partition, error
            )


# A table is added by a line here and its name in `table_names`, in the same order.
METADATA_TABLES = (
    MetadataTable("partitions", PARTITIONS_SCHEMA, partitions_of),
    MetadataTable("segments", SEGMENTS_SCHEMA, segments_of),
    MetadataTable("batches", BATCHES_SCHEMA, batches_of),
    MetadataTable("index_entries", INDEX_ENTRIES_SCHEMA, index_entries_of),
    MetadataTable("transactions", TRANSACTIONS_SCHEMA, transactions_of),
    MetadataTable("producers", PRODUCERS_SCHEMA, producers_of),
    MetadataTable("leader_epochs", LEADER_EPOCHS_SCHEMA, leader_epochs_of),
    MetadataTable("cleaning", CLEANING_SCHEMA, cleaning_of),
    MetadataTable("findings", FINDINGS_SCHEMA, findings_of, findings_of_directories),
)
_BY_NAME = {table.name: table for table in METADATA_TABLES}


def metadata_table(
    name: str,
    *,
    check_crc: bool = False,
    check_keys: bool = False,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> MetadataTable:
    """Return the table of that name.

    Parameters
    ----------
    name
        One of `pylog.inspect.tables.table_names.TABLE_NAMES`.
    check_crc
        Whether ``batches`` says which checksums are right.
    check_keys
        Whether ``cleaning`` reads all records, to say which are live.
    max_decompressed_bytes
        For ``findings``, which decodes records: as of `pylog.reading.reader.TaskReader`.

    Raises
    ------
    ValueError
        There is no such table (the error names the nearest), or it has no checksums, or nothing to
        say of keys.
    """
    if name not in _BY_NAME:
        raise ValueError(unknown_table(name))
    table = _BY_NAME[name]
    if name == "findings":
        findings = partial(findings_of, max_decompressed_bytes=max_decompressed_bytes)
        table = replace(table, record_batches=findings)
    if check_crc:
        if name != "batches":
            msg = f"check_crc is for table 'batches', table {name!r} has no checksums"
            raise ValueError(msg)
        table = replace(table, record_batches=partial(batches_of, check_crc=True))
    if check_keys:
        if name != "cleaning":
            msg = f"check_keys is for table 'cleaning', table {name!r} says nothing of keys"
            raise ValueError(msg)
        table = replace(table, record_batches=partial(cleaning_of, check_keys=True))
    return table
