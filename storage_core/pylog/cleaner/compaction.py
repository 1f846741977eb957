"""Cleaning logs one after the other, in the caller's thread, until nothing is dirty.

Source: LogCleaner.CleanerThread (Kafka 4.3), which cleans the filthiest log for one round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pylog.cleaner.log_cleaner_manager import CleaningAbortedError
from pylog.errors import LogStorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pylog.cleaner.cleanable_offsets import NotCleaned
    from pylog.cleaner.cleaner import Cleaner
    from pylog.cleaner.cleaning_round import CleanerProgress
    from pylog.cleaner.log_cleaner_manager import LogCleanerManager
    from pylog.cleaner.log_snapshot import CleanerStats
    from pylog.log.unified_log import UnifiedLog


class Compacted(NamedTuple):
    """What became of one log."""

    log: UnifiedLog
    rounds: list[CleanerStats]
    first_dirty_offset: int | None
    is_complete: bool
    failure: Exception | None
    held_back_offsets: tuple[int, int] | None
    not_cleaned: NotCleaned | None

    @property
    def failure_text(self) -> str | None:
        """What ended them: our own errors say it, of others their kind is a part of it."""
        if self.failure is None:
            return None
        if isinstance(self.failure, LogStorageError):
            return str(self.failure)
        return f"{type(self.failure).__name__}: {self.failure}"


class CompactionProgress:
    """Turns what single rounds say into bytes of the whole. One thread.

    What the callback raises ends the round that is under way as if it were aborted, so that its log
    is as it was; `stopped_by` has it then.
    """

    def __init__(self, callback: Callable[[int, int], object] | None) -> None:
        self.stopped_by: BaseException | None = None
        self.total_bytes = 0
        self._callback = callback
        self._done_bytes = 0
        self._map_bytes = 0

    def begin_round(self, map_bytes: int) -> None:
        """Note how many bytes the first phase of the next round reads."""
        self._map_bytes = map_bytes

    def end_round(self, size_bytes: int) -> None:
        """Note that a round is done that read so many bytes."""
        self._done_bytes += size_bytes

    def report(self, progress: CleanerProgress) -> None:
        """Say how far it is."""
        if self._callback is None:
            return
        done = self._done_bytes + progress.bytes_done
        if progress.phase == "copy":
            done += self._map_bytes
        try:
            self._callback(done, max(done, self.total_bytes))
        except BaseException as error:
            self.stopped_by = error
            raise CleaningAbortedError from error


class Compaction:
    """Cleans logs that nobody else has open. One thread."""

    def __init__(  # noqa: PLR0913 - whom it asks and tells, and how
        self,
        cleaner: Cleaner,
        manager: LogCleanerManager,
        progress: CompactionProgress,
        now_ms: int,
        *,
        is_only_due: bool,
        is_dry_run: bool,
        rolls: bool = False,
    ) -> None:
        self._cleaner = cleaner
        self._manager = manager
        self._progress = progress
        self._now_ms = now_ms
        self._is_one_round = is_only_due or is_dry_run
        self._is_only_due = is_only_due
        self._rolls = rolls

    def compact(self, logs: Sequence[UnifiedLog]) -> Iterator[Compacted]:
        """Clean logs in their order; those that come after the progress was stopped are left."""
        self._progress.total_bytes = sum(self._expected_bytes(log) for log in logs)
        for log in logs:
            if self._progress.stopped_by is not None:
                return
            yield self._compact(log)

    def _expected_bytes(self, log: UnifiedLog) -> int:
        """Return what one round is going to read; 0 for an error, which cleaning raises."""
        try:
            candidate = self._manager.candidate(log, self._now_ms)
        except Exception:  # noqa: BLE001 - it is met again when the log is cleaned
            return 0
        each = candidate.log_to_clean
        return each.cleanable_bytes + each.total_bytes if each.cleanable_bytes else 0

    def _compact(self, log: UnifiedLog) -> Compacted:
        rounds: list[CleanerStats] = []
        first_dirty_offset: int | None = None
        is_complete, failure, held_back_offsets, not_cleaned = False, None, None, None
        try:
            if self._rolls and log.local_log.segments.active_segment.size_bytes:
                log.roll()
            while not is_complete:
                candidate = self._manager.candidate(log, self._now_ms)
                each = candidate.log_to_clean
                first_dirty_offset = each.first_dirty_offset
                is_complete = each.cleanable_bytes == 0 or (
                    self._is_only_due and not candidate.is_due
                )
                if is_complete and not rounds:
                    not_cleaned = self._manager.why_not_cleaned(candidate, self._now_ms)
                if is_complete or (rounds and self._is_one_round):
                    break
                self._progress.begin_round(each.cleanable_bytes)
                result = self._cleaner.clean(each, self._now_ms)
                rounds.append(result.stats)
                self._progress.end_round(each.cleanable_bytes + result.stats.bytes_read)
                self._manager.update_checkpoint(log, result.next_dirty_offset)
                if result.next_dirty_offset <= each.first_dirty_offset:
                    break  # nothing that it could get on with
            held_back_offsets = self._manager.held_back_offsets(log, self._now_ms)
        except CleaningAbortedError:
            pass
        except Exception as error:  # noqa: BLE001 - whatever it is, the other logs must go on
            failure = error
        return Compacted(
            *(log, rounds, first_dirty_offset, is_complete, failure, held_back_offsets, not_cleaned)
        )
