"""The records of a partition of a coordinator's topic, which it reads as a whole when it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pylog.reading.log_directory import LogDirectory
from pylog.reading.scan import scan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.reading.log_view import LogView

_COLUMNS = ("key", "value", "offset", "timestamp", "batch")


class StoredRecord(NamedTuple):
    """A record of a coordinator; ``timestamp`` in ms, -1 for none.

    ``producer_id`` is that of a transaction's record, None of any other.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    producer_id: int | None


def coordinator_records(view: LogView) -> Iterator[StoredRecord]:
    """Yield the records of one partition in offset order, those of any transaction included.

    Parameters
    ----------
    view
        The partition.

    Raises
    ------
    LogStorageError
        The partition is damaged or cannot be read.
    """
    directory = LogDirectory([view.directory], views={view.topic_partition: view})
    records = scan(directory, topics=[view.topic], columns=_COLUMNS, timestamp_unit="ms")
    for batch in records.to_batches():
        metadata = batch.column("batch")
        producers = metadata.field("producerId").to_pylist()
        are_transactional = metadata.field("isTransactional").to_pylist()
        yield from map(
            StoredRecord,
            batch.column("offset").to_pylist(),
            batch.column("timestamp").cast("int64").to_pylist(),
            batch.column("key").to_pylist(),
            batch.column("value").to_pylist(),
            [
                producer_id if is_transactional else None
                for producer_id, is_transactional in zip(producers, are_transactional, strict=True)
            ],
        )
