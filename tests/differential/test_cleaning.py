"""Random logs are cleaned by Kafka's own `Cleaner` and by ours, and are the same afterwards.

Each round lets Kafka append to the log; then either side chooses whether and what to clean, cleans
it, removes old segments where the topic's policy says so as well, and shuts down.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, Self

import pytest

from pylog.cleaner.cleaner import Cleaner
from pylog.cleaner.log_cleaner_manager import LogCleanerManager
from pylog.cleaner.offset_map import OffsetMap
from pylog.config import CleanerConfig
from tests.differential.compared_log import PARTITION, ComparedLog
from tests.support.random_log import RandomLog

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from pylog.cleaner.cleanable_offsets import LogToClean
    from pylog.cleaner.cleaner import CleanerResult
    from pylog.log.log_manager import LogManager
    from pylog.log.unified_log import UnifiedLog
    from tests.conftest import Counted
    from tests.differential.kafka_log import KafkaLogs

pytestmark = pytest.mark.broker
LOGS = 320
LOAD_FACTOR = 0.9
# v0 and v1 have no batches without records: Kafka's pass fails, and each one after it does.
KNOWN_FAILURES = ("Empty batches are only supported for magic v2", "Attempt to append to a full")


class Turn(NamedTuple):
    """What one turn of a cleaner's thread came to."""

    candidate: LogToClean | None
    result: CleanerResult | None
    deleted_segments: int

    @classmethod
    def of(cls, manager: LogManager, log: UnifiedLog, dedupe_buffer_bytes: int) -> Self:
        """Choose, clean, and remove old segments."""
        cleaner_manager = LogCleanerManager(
            lambda: manager.logs, manager.cleaner_checkpoints, manager.context.failures
        )
        clock = manager.context.clock
        candidate = cleaner_manager.grab_filthiest_compacted_log(clock.milliseconds())
        result = None
        if candidate is not None:
            offset_map = OffsetMap(dedupe_buffer_bytes, LOAD_FACTOR)
            result = Cleaner(CleanerConfig(), clock, offset_map=offset_map).clean(candidate)
            cleaner_manager.done_cleaning(log, result.next_dirty_offset)
        deleted = cleaner_manager.delete_old_segments()
        return cls(candidate, result, len(deleted.get(PARTITION, [])))


def in_kafkas_words(candidate: LogToClean | None) -> dict[str, float] | None:
    if candidate is None:
        return None
    return {
        "firstDirtyOffset": candidate.first_dirty_offset,
        "firstUncleanableOffset": candidate.first_uncleanable_offset,
        "cleanBytes": candidate.clean_bytes,
        "cleanableBytes": candidate.cleanable_bytes,
        "totalBytes": candidate.total_bytes,
        "cleanableRatio": candidate.cleanable_ratio,
    }


def compare_statistics(kafkas: dict[str, Any], ours: CleanerResult) -> None:
    stats = ours.stats
    # Kafka leaves out the records of batches that go as a whole.
    assert stats.records_read >= kafkas["messagesRead"]
    assert stats.records_written == kafkas["messagesWritten"]
    assert stats.invalid_records == kafkas["invalidMessagesRead"]
    assert stats.bytes_read == kafkas["bytesRead"]
    assert stats.buffer_utilization == pytest.approx(kafkas["bufferUtilization"])


def test_a_log_is_cleaned_as_kafka_cleans_it(
    seed: int, kafka: KafkaLogs, memory_path: Path, counted: Counted
) -> None:
    drawn = RandomLog(seed)
    compared = ComparedLog(kafka, drawn, memory_path, is_continued_from_ours=seed % 2 == 1)
    counts = Counter[str]()
    for number, part in enumerate(drawn.rounds()):
        context = f"seed {seed}, round {number}, {drawn.topic_config}"
        prepared = compared.prepare(part)
        if prepared is None:
            break
        answer = compared.run_kafka("clean", part, prepared)
        counts[compared.where_high_watermark_is(part, prepared)] += 1
        with compared.opened(part, prepared) as (manager, log):
            ours = Turn.of(manager, log, drawn.dedupe_buffer_bytes)
        if "cleanerError" in answer:
            assert any(each in answer["cleanerError"] for each in KNOWN_FAILURES), answer
            counts["rounds that fail in Kafka"] += 1
            compared.is_continued_from_ours = True
            continue
        assert in_kafkas_words(ours.candidate) == answer.get("candidate"), context
        assert ours.deleted_segments == answer.get("deletedSegments", 0), context
        if ours.result is not None:
            assert ours.result.next_dirty_offset == answer["endOffset"], context
            compare_statistics(answer["stats"], ours.result)
        assert not (found := compared.differences()), "\n".join([context, *found])
        counts["rounds" if ours.result else "times that nothing was to be cleaned"] += 1
        counts["rounds to the byte"] += bool(ours.result) and compared.is_the_same_to_the_byte()
    counted("cleaned as by Kafka", counts)
