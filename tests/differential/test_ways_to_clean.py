"""All ways to clean and to trim a log do what Kafka's classes do, by the checkpoint's watermark.

They are the command's function, with its dry run; the job that tasks of an engine carry out; and
a manager with its cleaner in the background.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.log.log_context import LogContext
from pylog.testing import ManualClock, ManualScheduler
from tests.differential.compared_log import PARTITION, ComparedLog
from tests.differential.test_cleaning import KNOWN_FAILURES
from tests.support.log_files import write_high_watermarks
from tests.support.random_log import TOPIC, RandomLog, trimming

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Counted
    from tests.differential.kafka_log import Answer, KafkaLogs

pytestmark = pytest.mark.broker
LOGS = 60
DEDUPE_BUFFER_BYTES = 4 << 20
SECONDS = 60


def options(compared: ComparedLog, now_ms: int) -> dict[str, Any]:
    """Return what the functions are told: time, configuration, and when producers expire."""
    path = compared.root / "server.properties"
    path.write_text(
        f"log.dirs={compared.ours}\n"
        f"producer.id.expiration.ms={compared.drawn.producer_expiration_ms}\n"
        f"log.cleaner.dedupe.buffer.size={DEDUPE_BUFFER_BYTES}\n"
    )
    return {
        "topics": [TOPIC],
        "config": compared.drawn.topic_config,
        "server_properties": pylog.ServerProperties.read(path),
        "now_ms": now_ms,
    }


def compact(compared: ComparedLog, now_ms: int, answer: Answer) -> None:
    given = options(compared, now_ms)
    [planned] = pylog.compact(compared.ours, once=True, dry_run=True, **given).partitions
    [done] = pylog.compact(compared.ours, once=True, **given).partitions
    assert planned == done
    check_rounds(done, answer)


def run_job(compared: ComparedLog, now_ms: int, answer: Answer) -> None:
    with pylog.jobs.CompactionJob(compared.ours, once=True, **options(compared, now_ms)) as job:
        [done] = job.commit([task.run() for task in job.tasks]).partitions
    check_rounds(done, answer)


def check_rounds(done: pylog.results.PartitionCompaction, answer: Answer) -> None:
    assert done.failure is None
    assert done.rounds == ("candidate" in answer)


def clean_in_background(compared: ComparedLog, now_ms: int, answer: Answer) -> None:
    given = options(compared, now_ms)
    clock = ManualClock(now_ms)
    manager = pylog.logs.LogManager(
        [compared.ours],
        topic_configs={TOPIC: pylog.LogConfig.from_properties(given["config"])},
        manager_config=given["server_properties"].manager_config,
        context=LogContext(clock=clock, scheduler=ManualScheduler(clock)),
    )
    with (
        manager,
        pylog.logs.LogCleaner(manager, given["server_properties"].cleaner_config) as cleaner,
    ):
        deadline = time.monotonic() + SECONDS
        log = manager.get_log(PARTITION)
        while (
            cleaner.metrics().rounds < ("candidate" in answer)
            or [each.base_offset for each in log.segments] != answer["segments"]
        ):
            assert time.monotonic() < deadline, "nothing was cleaned in the background"
            time.sleep(0.01)


@pytest.mark.parametrize("clean", [compact, run_job, clean_in_background])
def test_a_log_is_cleaned_as_kafka_cleans_it(
    seed: int,
    clean: Callable[[ComparedLog, int, Answer], None],
    kafka: KafkaLogs,
    memory_path: Path,
    counted: Counted,
) -> None:
    drawn = RandomLog(seed)
    drawn.topic_config["cleanup.policy"] = "compact"
    drawn.dedupe_buffer_bytes = DEDUPE_BUFFER_BYTES
    compared = ComparedLog(kafka, drawn, memory_path)
    part = next(drawn.rounds())
    prepared = compared.prepare(part)
    if prepared is None:
        pytest.skip("Kafka finds no room in an index")
    with_retention = clean is clean_in_background
    answer = compared.run_kafka("clean", part, prepared, with_retention=with_retention)
    if "cleanerError" in answer:
        assert any(each in answer["cleanerError"] for each in KNOWN_FAILURES), answer
        counted("cleaned in other ways", Counter({"rounds that fail in Kafka": 1}))
        return
    write_high_watermarks(compared.ours, {PARTITION: compared.checkpoint_of(part, prepared)})
    clean(compared, part.clean_at_ms, answer)
    check_files(compared)
    where = compared.where_high_watermark_is(part, prepared)
    counted("cleaned in other ways", Counter({where: 1, "rounds": "candidate" in answer}))


def check_files(compared: ComparedLog) -> None:
    """Compare all but the checkpoint of the watermark, which we never raise and Kafka may."""
    for left in compared.root.glob(f"*/{PARTITION}/*.deleted"):
        left.unlink()  # what is removed later
    path = compared.ours / "replication-offset-checkpoint"
    path.write_bytes((compared.kafkas / path.name).read_bytes())
    assert not (found := compared.differences()), "\n".join(found)


def test_a_log_is_trimmed_as_kafka_trims_it(
    seed: int, kafka: KafkaLogs, memory_path: Path, counted: Counted
) -> None:
    drawn = RandomLog(seed)
    drawn.topic_config = trimming(seed, drawn.topic_config)
    compared = ComparedLog(kafka, drawn, memory_path)
    part = next(drawn.rounds())
    prepared = compared.prepare(part)
    if prepared is None:
        pytest.skip("Kafka finds no room in an index")
    answer = compared.run_kafka("retention", part, prepared)
    write_high_watermarks(compared.ours, {PARTITION: compared.checkpoint_of(part, prepared)})
    given = options(compared, part.clean_at_ms)
    [planned] = pylog.apply_retention(compared.ours, dry_run=True, **given).partitions
    [done] = pylog.apply_retention(compared.ours, **given).partitions
    assert len(done.deleted) == answer["deletedSegments"]
    assert done.log_start_offset == answer["logStartOffset"]
    for name in ("deleted", "log_start_offset", "log_end_offset", "size_bytes", "held_back"):
        assert getattr(planned, name) == getattr(done, name), name
    check_files(compared)
    where = compared.where_high_watermark_is(part, prepared)
    counted("trimmed in other ways", Counter({where: 1, "segments": len(done.deleted)}))
