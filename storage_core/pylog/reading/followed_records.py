"""Records as they come: what has been appended since the last question."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from pylog.lazy_modules import LazyModule
from pylog.model import EARLIEST, LATEST, spec_for
from pylog.reading.row_limit import check_limit, limited
from pylog.text.words import counted, offsets_text

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Iterator

    import pyarrow as pa

    from pylog.model import OffsetSpec, OffsetSpecs, TopicPartition
    from pylog.reading import (
        scan,  # imports Arrow
    )
    from pylog.reading.damage import DamagedRange
    from pylog.reading.followed_directory import FollowedDirectory
    from pylog.reading.followed_partition import FollowedLog
else:
    scan = LazyModule("pylog.reading.scan")

_LOGGER = logging.getLogger(__name__)


class FollowedRecords:
    """Gives what has been appended since it was asked last. One thread may use it.

    Invariant: every record below a partition's position has been given, or was left out by the
    arguments of the scan, or is named in a warning.

    Parameters
    ----------
    followed
        The logs; its isolation level decides where they end. Nobody else may refresh it.
    start
        Where to begin, as for `pylog.scan`, in the partitions that the first look shows. Those that
        come later are read from their beginning.
    partitions
        Only partitions with these numbers; none means all.
    limit
        The most records, over all looks together; None for no end.
    **arguments
        Further arguments of `pylog.scan`.

    Attributes
    ----------
    damage
        The damaged ranges that have been left out (modes that skip damage).
    undecodable
        How many keys and values could not be decoded (the same modes).
    """

    def __init__(
        self,
        followed: FollowedDirectory,
        *,
        start: OffsetSpecs = EARLIEST,
        partitions: Collection[int] = (),
        limit: int | None = None,
        **arguments: Any,  # noqa: ANN401 - of `pylog.scan`
    ) -> None:
        check_limit(limit)
        self._rest = limit
        self._followed = followed
        self._start = start
        self._numbers = frozenset(partitions)
        self._arguments = arguments
        self.damage: list[DamagedRange] = []
        self.undecodable = 0
        self._positions: dict[TopicPartition, int] | None = None
        self._topic_ids: dict[TopicPartition, str | None] = {}
        self._shown: dict[TopicPartition, FollowedLog] = {}

    @property
    def partitions(self) -> list[TopicPartition]:
        """The partitions that the last look has shown."""
        return list(self._shown)

    def poll(self) -> Iterator[pa.RecordBatch]:
        """Yield the records that are there by now, partition by partition, in offset order.

        A partition counts as given once all its records of this look have been; where the caller
        stops before, they come again.

        Raises
        ------
        LogStorageError
            See `FollowedDirectory.refresh` and `pylog.results.Scan.to_batches`.
        """
        for batch in limited(self._appended(), self._rest):
            if self._rest is not None:
                self._rest -= batch.num_rows
            yield batch

    def _appended(self) -> Iterator[pa.RecordBatch]:
        logs = {
            each: log
            for each, log in self._followed.refresh().items()
            if not self._numbers or each.partition in self._numbers
        }
        self._shown = logs
        if self._positions is None:
            starts: dict[TopicPartition | tuple[str, int] | str, OffsetSpec | dt.datetime] = {
                each: spec_for(self._start, each, EARLIEST) for each in logs
            }
            # What is not followed has no position that could be wrong.
            resolved = self._followed.resolve(starts, LATEST, fail_on_data_loss=False)
            self._positions = {each: resolved[each] for each in logs}
        for each, log in logs.items():
            begin = self._begin_of(each, log, self._positions.get(each))
            if begin < log.end_offset:
                yield from self._records(each, begin, log.end_offset)
                begin = log.end_offset
            self._positions[each] = begin
            self._topic_ids[each] = log.topic_id

    def _begin_of(self, partition: TopicPartition, log: FollowedLog, known: int | None) -> int:
        """Return where to continue in a partition, and warn of what is lost."""
        if known is None:
            return log.log_start_offset
        known_id = self._topic_ids.get(partition, log.topic_id)
        if known_id != log.topic_id:
            _LOGGER.warning("%s has been deleted and made anew: read from its beginning", partition)
            return log.log_start_offset
        if log.log_start_offset > known:
            _LOGGER.warning(
                "%s: %s, %s, deleted before they were read",
                partition,
                counted(log.log_start_offset - known, "record"),
                offsets_text(known, log.log_start_offset),
            )
            return log.log_start_offset
        if log.rewritten_below is not None:
            _LOGGER.warning(
                "%s has been truncated: some of the records below offset %d are others now than "
                "those that have been read, or gone",
                *(partition, log.rewritten_below),
            )
        return min(known, log.end_offset)

    def _records(self, partition: TopicPartition, begin: int, end: int) -> Iterator[pa.RecordBatch]:
        planned = scan.scan(
            self._followed.directory,
            assign={partition.topic: [partition.partition]},
            start=begin,
            end=end,
            fail_on_data_loss=False,
            **self._arguments,
        )
        try:
            yield from planned.to_batches()
        finally:
            self.damage += planned.damage
            self.undecodable += len(planned.undecodable)
