"""`mask`: parts of records are replaced in logs that we own, and offsets stay.

A batch with such a record is written anew: with the same offsets, producer, epochs, timestamps,
attributes and codec. Messages of v0 and v1 become v2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.model import NO_TIMESTAMP, TimestampType
from pylog.record.batch_header import MAGIC_VALUE_V2, parse_batch_header
from pylog.record.record_batch import RecordBatch
from pylog.record.record_batch_builder import RecordBatchBuilder
from pylog.recovery.omitted_records import FoundOffsets
from pylog.recovery.rewritten_directory import DirectoryRewriting, RewrittenRecords
from pylog.text.names import names_nearest_keyword

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pylog.columnar.record_masking import RecordMasking
    from pylog.config.server_properties import ServerProperties
    from pylog.model import TopicPartition
    from pylog.reading.record_filter import RecordFilter
    from pylog.record.batch_header import BatchHeader
    from pylog.record.batch_scan import Window
    from pylog.record.record import Record


@names_nearest_keyword
def mask(  # noqa: PLR0913 - keyword-only options, one for each thing a user may say
    directory: str | os.PathLike[str],
    masking: RecordMasking,
    *,
    where: RecordFilter | None = None,
    topics: Iterable[str] = (),
    partitions: Sequence[int] = (),
    pattern: str | None = None,
    look_in: Iterable[str | os.PathLike[str]] = (),
    server_properties: ServerProperties | None = None,
    recover_as_broker: bool = False,
    dry_run: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> RewrittenRecords:
    r"""Replace parts of records of a log directory, by rules; all offsets stay.

    Parameters
    ----------
    directory
        The log directory; no broker works on it.
    masking
        What `pylog.jobs.read_mask_rules` returns.
    where
        Only records that pass this filter; None for all.
    topics, partitions, pattern, look_in, server_properties, recover_as_broker, dry_run, progress
        As for `pylog.jobs.erase`.

    Returns
    -------
    RewrittenRecords
        What was replaced, and where records still are that the rules would change.

    Raises
    ------
    CorruptRecordError, InvalidRecordError, LogLockedError, LogDirectoryError
        As of `pylog.jobs.erase`, and so are the others.

    Examples
    --------
    >>> with open("rules.toml", "w") as file:
    ...     _ = file.write("[[mask]]\nkey = true\nreplace = 'x'")
    >>> summary = pylog.write_topic("logs", "users", [{"key": "ann", "value": "a"}], key="key")
    >>> done = pylog.jobs.mask("logs", pylog.jobs.read_mask_rules("rules.toml"))
    >>> [(each.topic, each.records) for each in done.partitions], done.remaining
    ([('users', 1)], [])
    """
    rewriting = DirectoryRewriting(
        directory,
        lambda place: BatchMasker(place, masking, where),
        topics=topics,
        partitions=partitions,
        pattern=pattern,
        look_in=look_in,
    )
    if dry_run:
        done = rewriting.plan()
    else:
        done = rewriting.carry_out(server_properties, progress, recover_as_broker=recover_as_broker)
    if masking.not_json:
        done.notes.append(
            "some values are not JSON where a rule has JSON paths: nothing in them is replaced; a "
            "rule for the whole value would do it"
        )
    return done


class BatchMasker:
    """Replaces parts of the records of one log. One thread."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        masking: RecordMasking,
        where: RecordFilter | None = None,
    ) -> None:
        self._topic = topic_partition.topic
        self._masking = masking
        self._found = None if where is None else FoundOffsets(topic_partition, where)
        self._is_covered = any(each.covers(self._topic) for each in masking.rules)
        self.records = 0

    def count(self, window: Window) -> int:
        """Return how many records of a window change."""
        return sum(changed for _, _, changed in self._batches(window))

    def is_due(self, window: Window) -> bool:
        """Whether any record of a window changes."""
        return any(changed for _, _, changed in self._batches(window))

    def rewrite(self, window: Window) -> Iterator[memoryview]:
        """Yield the batches of a window, those that change anew."""
        for place, records, changed in self._batches(window):
            data = window.bytes_of(place)
            if changed:
                self.records += changed
                data = memoryview(_rebuilt(parse_batch_header(data), records))
            yield data

    def _batches(self, window: Window) -> Iterator[tuple[int, list[Record], int]]:
        """Yield each batch's place, and if records of it change, all of them and how many do."""
        headers = window.headers
        is_open = ~headers.is_control & (headers.record_counts != 0)
        found = None
        if self._found is not None:
            found = set(self._found.of(window).tolist())
            ends = np.searchsorted(sorted(found), headers.last_offsets, side="right")
            is_open &= np.diff(ends, prepend=0) > 0
        for place, may_change in enumerate(is_open.tolist()):
            records: list[Record] = []
            changed = 0
            if may_change and self._is_covered:
                for record in RecordBatch(window.bytes_of(place)).records():
                    masked = record
                    if found is None or record.offset in found:
                        masked = self._masked(record)
                    changed += masked != record
                    records.append(masked)
            yield place, records, changed

    def _masked(self, record: Record) -> Record:
        key, value, headers = self._masking.masked_record(
            self._topic, record.key, record.value, record.headers
        )
        pairs = tuple(type(old)(*new) for old, new in zip(record.headers, headers, strict=True))
        return record._replace(key=key, value=value, headers=pairs)


def _rebuilt(header: BatchHeader, records: list[Record]) -> bytes:
    is_v2 = header.magic == MAGIC_VALUE_V2
    is_append_time = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    times = TimestampType.LOG_APPEND_TIME if is_append_time else TimestampType.CREATE_TIME
    builder = RecordBatchBuilder(
        base_offset=header.offset if is_v2 else records[0].offset,
        compression=header.compression,
        timestamp_type=times,
        log_append_time=header.max_timestamp if is_append_time else NO_TIMESTAMP,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
        partition_leader_epoch=header.partition_leader_epoch,
        delete_horizon_ms=header.delete_horizon_ms,
    )
    for each in records:
        builder.append_record(each)
    builder.override_last_offset(header.last_offset)
    return builder.build()
