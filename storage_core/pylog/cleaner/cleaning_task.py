"""The cleaning of one log as a task, in another process than the log's owner, perhaps elsewhere.

The task takes no lock and changes no file of the log (`pylog.cleaner.log_snapshot`): it cleans as
`pylog.cleaner.cleaner` does, and says what it has staged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.cleaner.cleaned_segments import CleanedSegments, CountedSegments
from pylog.cleaner.cleaner import Cleaner
from pylog.cleaner.log_cleaner import Throttler
from pylog.cleaner.log_snapshot import SnapshotLog, StagedCleaning
from pylog.cleaner.offset_map import OffsetMap
from pylog.errors import KafkaStorageError, LogStorageError, SegmentVanishedError
from pylog.scheduling.clock import SystemClock

if TYPE_CHECKING:
    from pylog.cleaner.cleanable_log import CleanableLog
    from pylog.cleaner.cleaning_round import Destination
    from pylog.cleaner.log_snapshot import LogSnapshot
    from pylog.config import CleanerConfig
    from pylog.files.durable_io import DurableIO


_OF_THE_DISK = (KafkaStorageError, SegmentVanishedError)


class _KeysDoNotFitError(Exception):
    """The map is full, and nothing has been written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningTask:
    """One log that is to be cleaned in one round; pickled on its way to where it runs.

    Attributes
    ----------
    snapshot
        The log.
    config
        Memory and speed.
    now_ms
        What time it is for delete horizons.
    job_token
        Of the job.
    is_dry_run
        Whether it only counts.
    size_bytes
        How much it reads.
    """

    snapshot: LogSnapshot
    config: CleanerConfig
    now_ms: int
    job_token: str
    is_dry_run: bool
    size_bytes: int

    def run(self, io: DurableIO | None = None) -> StagedCleaning:
        """Clean the log into staged files; any number of attempts may, at the same time.

        Raises
        ------
        KafkaStorageError, SegmentVanishedError
            The disk failed, or is not the one that the log's owner has. Nothing is left.
        """
        snapshot, config = self.snapshot, self.config
        offset_map = OffsetMap(
            config.dedupe_buffer_size // config.threads, config.dedupe_buffer_load_factor
        )

        def begin_segments(log: CleanableLog, base_offset: int) -> Destination:
            # Called for the first time when the map is complete, or full.
            if offset_map.latest_offset + 1 < snapshot.first_uncleanable_offset:
                raise _KeysDoNotFitError
            return destination(log, base_offset)

        destination = CountedSegments if self.is_dry_run else CleanedSegments
        cleaner = Cleaner(
            config,
            SystemClock(),
            throttle=Throttler(config.io_max_bytes_per_second).throttle,
            offset_map=offset_map,
            begin_segments=begin_segments,
        )
        log = SnapshotLog(snapshot, self.job_token, io)
        try:
            result = cleaner.clean(log, self.now_ms)
        except _KeysDoNotFitError:
            return self.nothing_staged(keys_fit=False)
        except BaseException as error:
            log.discard()
            if not isinstance(error, LogStorageError) or isinstance(error, _OF_THE_DISK):
                raise
            return self.nothing_staged(failure=str(error))
        finally:
            log.close()
        return StagedCleaning(
            topic_partition=snapshot.topic_partition,
            groups=tuple(log.staged),
            stats=result.stats,
            next_dirty_offset=result.next_dirty_offset,
        )

    def nothing_staged(
        self, *, keys_fit: bool = True, failure: str | None = None
    ) -> StagedCleaning:
        """Return what says that the log is to stay as it is, and why."""
        return StagedCleaning(
            topic_partition=self.snapshot.topic_partition,
            next_dirty_offset=self.snapshot.first_dirty_offset,
            keys_fit=keys_fit,
            failure=failure,
        )
