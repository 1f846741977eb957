"""Random logs are trimmed by Kafka's own `UnifiedLog` and by ours, and are the same afterwards."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.differential.compared_log import ComparedLog
from tests.support.random_log import RandomLog, trimming

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Counted
    from tests.differential.kafka_log import KafkaLogs

pytestmark = pytest.mark.broker
LOGS = 160


def test_a_log_is_trimmed_as_kafka_trims_it(
    seed: int, kafka: KafkaLogs, memory_path: Path, counted: Counted
) -> None:
    drawn = RandomLog(seed)
    drawn.topic_config = trimming(seed, drawn.topic_config)
    compared = ComparedLog(kafka, drawn, memory_path, is_continued_from_ours=seed % 2 == 1)
    counts = Counter[str]()
    for number, part in enumerate(drawn.rounds()):
        prepared = compared.prepare(part)
        if prepared is None:
            break
        answer = compared.run_kafka("retention", part, prepared)
        counts[compared.where_high_watermark_is(part, prepared)] += 1
        with compared.opened(part, prepared) as (_, log):
            removed = log.delete_old_segments()
            context = f"seed {seed}, round {number}, {drawn.topic_config}"
            assert len(removed) == answer["deletedSegments"], context
            bases = [segment.base_offset for segment in log.segments]
            assert bases == answer["segments"], context
            assert log.log_start_offset == answer["logStartOffset"], context
        assert not (found := compared.differences()), "\n".join([context, *found])
        counts["rounds"] += 1
        counts["rounds that deleted segments"] += len(removed) > 0
    counted("trimmed as by Kafka", counts)
