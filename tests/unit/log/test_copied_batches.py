"""Batches of another log are appended as a follower appends them one after the other."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pylog.config import LogConfig
from pylog.errors import UnexpectedAppendOffsetError
from pylog.log.copied_batches import decisive_batches
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.model import TopicPartition
from pylog.record.batch_scan import BatchHeaders, find_batches
from pylog.testing import ManualClock, ManualScheduler
from tests.support.batches import batch_v2, joined, plain_records
from tests.support.random_log import START_MS, TOPIC, RandomLog

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pylog.log.unified_log import UnifiedLog
    from tests.conftest import HowMany
    from tests.support.batches import Built

PLACE = TopicPartition(TOPIC, 0)


def headers_of(data: bytes) -> BatchHeaders:
    return find_batches(np.frombuffer(data, dtype=np.uint8)).headers


def copied(log: UnifiedLog, batches: Sequence[Built]) -> None:
    data = joined(batches)
    log.append_copied(memoryview(data), headers_of(data))


def written(
    directory: Path, config: LogConfig, write: Callable[[UnifiedLog], None]
) -> dict[str, bytes]:
    """Return the files of a log that was written and closed."""
    context = LogContext(clock=ManualClock(START_MS), scheduler=ManualScheduler(ManualClock(0)))
    with LogManager([directory], config, context=context) as manager:
        write(manager.get_or_create_log(PLACE))
    partition = directory / str(PLACE)
    return {each.name: each.read_bytes() for each in partition.iterdir()} | {
        each.name: each.read_bytes() for each in directory.glob("*checkpoint")
    }


def batches_of(seed: int) -> list[Built]:
    rounds = RandomLog(seed).rounds()
    return [batch for each in rounds for step in each.steps for batch in step.batches]


def test_files_are_those_of_a_follower_that_appends_batch_by_batch(
    tmp_path: Path, how_many: HowMany
) -> None:
    producers = 0
    for seed in range(how_many(12, 300)):
        draw = random.Random(seed)
        batches = batches_of(seed)
        config = LogConfig.from_properties(
            {"segment.bytes": str(draw.choice((700, 5_000, 1 << 30))), "index.interval.bytes": "90"}
        )

        def follow(log: UnifiedLog, batches: list[Built] = batches) -> None:
            for each in batches:
                log.append_as_follower(each.data)

        def copy(
            log: UnifiedLog, batches: list[Built] = batches, draw: random.Random = draw
        ) -> None:
            at = 0
            while at < len(batches):
                count = draw.choice((1, 3, 20, 1_000))
                copied(log, batches[at : at + count])
                at += count

        expected = written(tmp_path / f"follower-{seed}", config, follow)
        found = written(tmp_path / f"copy-{seed}", config, copy)
        expected.pop("partition.metadata")
        found.pop("partition.metadata")
        assert found == expected, f"seed {seed}"
        producers += any(each.producer_id >= 0 for each in batches)
    assert producers


def test_batches_below_the_end_are_refused(tmp_path: Path) -> None:
    with LogManager([tmp_path]) as manager:
        log = manager.get_or_create_log(PLACE)
        copied(log, [batch_v2(plain_records(10, 2))])
        with pytest.raises(UnexpectedAppendOffsetError, match="expected 12 or above"):
            copied(log, [batch_v2(plain_records(11, 2))])
        assert log.log_end_offset == 12


def test_of_a_producer_few_batches_are_looked_at() -> None:
    batches = [
        batch_v2(
            plain_records(10 * place, 10),
            producer_id=7,
            producer_epoch=0,
            base_sequence=10 * place,
            is_transactional=True,
        )
        for place in range(100)
    ]
    assert decisive_batches(headers_of(joined(batches))).tolist() == [0, *range(95, 100)]
