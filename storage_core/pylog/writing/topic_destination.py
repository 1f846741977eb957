"""One topic that rows are collected for, and appended to a batch of rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.files.file_names import ensure_valid_topic, ensure_valid_topic_partition
from pylog.model import TopicPartition
from pylog.writing.partition_assignment import UNASSIGNED
from pylog.writing.record_rows import RecordRow, rows_to_batch
from pylog.writing.topic_creation import (
    add_partition,
    closed_logs_of_topic,
    open_logs_of_topic,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt
    import pyarrow as pa

    from pylog.log.log_manager import LogManager
    from pylog.writing.topic_writer import TopicWriter
    from pylog.writing.write_summary import PartitionSummary


class TopicDestination:
    """One topic: its logs, and the rows that are about to be appended to them.

    A topic that is not there, and its partitions, are made when rows of theirs are appended. So
    options and rows that are wrong leave nothing of it.

    Parameters
    ----------
    manager
        Open.
    topic
        Its name.
    make_writer
        `TopicWriter` with all arguments but topic, logs and configuration.
    partitions
        How many partitions a new topic gets if no row names one.

    Attributes
    ----------
    is_new
        Whether the topic did not exist when this was made.

    Raises
    ------
    ValueError
        Kafka allows no topic of that name, or the writer's options are wrong.
    """

    def __init__(
        self,
        manager: LogManager,
        topic: str,
        make_writer: Callable[..., TopicWriter],
        partitions: int = 1,
    ) -> None:
        ensure_valid_topic(topic)
        self._manager = manager
        self._topic = topic
        self._logs = open_logs_of_topic(manager, topic)
        self._closed = closed_logs_of_topic(manager, topic)
        self.is_new = not self._logs and not self._closed
        self._has_config = not self.is_new
        self._default_partitions = range(partitions)
        self._to_make: set[int] = set()
        self._rows: list[RecordRow] = []
        self._partitions: list[int] = []
        self._batches: list[tuple[pa.RecordBatch, npt.NDArray[np.int64]]] = []
        config = manager.config if self.is_new else manager.config_of(topic)
        self._writer = make_writer(topic, self._logs, config)

    @property
    def summaries(self) -> list[PartitionSummary]:
        """What has been appended, by partition."""
        return list(self._writer.summaries.values())

    @property
    def partitions(self) -> list[int]:
        """The numbers of the partitions that exist."""
        return sorted(self._logs)

    def add(self, partition: int | None, row: RecordRow) -> None:
        """Take a row; a topic that is new gets the partitions that its rows name.

        Raises
        ------
        ValueError
            The topic was there before and has no such partition.
        LogStorageError
            The log of the partition was left closed; or, where no partition is given, that of any.
        """
        self._ensure_some_partition(partition)
        self._rows.append(row)
        self._partitions.append(UNASSIGNED if partition is None else partition)

    def add_batch(self, partition: int | None, rows: pa.RecordBatch) -> None:
        """Take many rows of one partition, or of whichever each is given; see `add`.

        Parameters
        ----------
        rows
            As of `rows_to_batch`, one or more.

        Raises
        ------
        ValueError
            The topic was there before and has no such partition.
        """
        self._ensure_some_partition(partition)
        self._end_rows()
        number = UNASSIGNED if partition is None else partition
        self._batches.append((rows, np.full(rows.num_rows, number, dtype=np.int64)))

    def _ensure_some_partition(self, partition: int | None) -> None:
        if partition is not None:
            self.ensure_partition(partition)
        elif self._closed:  # without them, keys would go to other partitions
            raise next(iter(self._closed.values()))
        elif not self._logs and not self._to_make:
            self._to_make.update(self._default_partitions)

    def _end_rows(self) -> None:
        """Make a batch of the rows that came one by one."""
        if self._rows:
            partitions = np.array(self._partitions, dtype=np.int64)
            self._batches.append((rows_to_batch(self._rows), partitions))
            self._rows, self._partitions = [], []

    def ensure_partition(self, partition: int) -> None:
        """Note that the partition has to be there, or raise ``ValueError``: see `add`."""
        if partition in self._logs:
            return
        if partition in self._closed:
            raise self._closed[partition]
        if not self.is_new:
            there = ", ".join(map(str, self._logs))
            msg = f"topic {self._topic!r} has no partition {partition} here; found {there}"
            raise ValueError(msg)
        ensure_valid_topic_partition(TopicPartition(self._topic, partition))
        self._to_make.add(partition)

    def flush(self, now_ms: int) -> None:
        """Append the rows taken; those without a timestamp are of ``now_ms``."""
        self._end_rows()
        batches, self._batches = self._batches, []
        for batch, partitions in batches:
            self._make_partitions()
            self._writer.append(batch, timestamp_ms=now_ms, partitions=partitions)

    def _make_partitions(self) -> None:
        if not self._has_config:
            self._manager.store_topic_config(self._topic, {})  # not those of one that was deleted
            self._has_config = True
        for partition in sorted(self._to_make):
            self._logs[partition] = add_partition(self._manager, self._topic, partition)
        self._to_make.clear()
