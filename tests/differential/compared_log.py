"""A random log that Kafka fills, and that both work on, each in a directory of its own."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field
from filecmp import cmpfiles
from typing import TYPE_CHECKING, Any

from pylog.config import LogConfig, LogManagerConfig
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.model import TopicPartition
from pylog.testing import ManualClock, ManualScheduler
from tests.differential.comparison import differences
from tests.differential.kafka_log import KafkaFailedError
from tests.support.random_log import TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pylog.log.unified_log import UnifiedLog
    from tests.differential.kafka_log import Answer, Job, KafkaLogs
    from tests.support.random_log import RandomLog, Round

PARTITION = TopicPartition(TOPIC, 0)


@dataclass
class ComparedLog:
    """The two directories, and how either side opens its own.

    ``is_continued_from_ours`` says whose work the next round goes on with: Kafka's, or ours.
    """

    kafka: KafkaLogs
    drawn: RandomLog
    root: Path
    is_continued_from_ours: bool = False
    kafkas: Path = field(init=False)
    ours: Path = field(init=False)

    def __post_init__(self) -> None:
        self.kafkas, self.ours = self.root / "kafka", self.root / "ours"
        (self.kafkas / str(PARTITION)).mkdir(parents=True)

    @property
    def _job(self) -> Job:
        return {
            "topic": TOPIC,
            "config": self.drawn.topic_config,
            "producerExpirationMs": self.drawn.producer_expiration_ms,
            "cleaner": {
                "dedupeBufferSize": self.drawn.dedupe_buffer_bytes,
                "ioBufferSize": self.drawn.io_buffer_bytes,
            },
        }

    def prepare(self, part: Round) -> Answer | None:
        """Let Kafka do a round's appends, rolls and deletions, and give us a copy of it all.

        None if Kafka could not: it looks for room in an index once an append, and may find none.
        """
        if self.is_continued_from_ours and self.ours.exists():
            shutil.rmtree(self.kafkas)
            shutil.move(self.ours, self.kafkas)
        job = {**self._job, "now": part.steps[0].now_ms}
        try:
            answer = self.kafka.prepare(self.kafkas, job, part.steps)
        except KafkaFailedError as error:
            if "Attempt to append to a full" in str(error):
                return None
            raise
        part.set_file_times(self.kafkas / str(PARTITION))
        shutil.rmtree(self.ours, ignore_errors=True)
        shutil.copytree(self.kafkas, self.ours)
        return answer

    def run_kafka(self, what: str, part: Round, prepared: Answer) -> Answer:
        """Let Kafka do a job at the end of a round."""
        job: dict[str, Any] = {**self._job, "now": part.clean_at_ms}
        job["highWatermark"] = self._high_watermark(part, prepared)
        return self.kafka.run(what, self.kafkas, job)

    @contextmanager
    def opened(self, part: Round, prepared: Answer) -> Iterator[tuple[LogManager, UnifiedLog]]:
        """Open ours at the end of a round."""
        clock = ManualClock(part.clean_at_ms)
        manager = LogManager(
            [self.ours],
            topic_configs={TOPIC: LogConfig.from_properties(self.drawn.topic_config)},
            manager_config=LogManagerConfig(
                producer_id_expiration_ms=self.drawn.producer_expiration_ms
            ),
            context=LogContext(clock=clock, scheduler=ManualScheduler(clock)),
        )
        with manager:
            log = manager.get_log(PARTITION)
            log.follows_end = False
            log.update_high_watermark(self._high_watermark(part, prepared))
            yield manager, log

    def differences(self) -> list[str]:
        """Return what is not the same in the two directories."""
        return differences(self.kafkas, self.ours, str(PARTITION))

    def is_the_same_to_the_byte(self) -> bool:
        """Whether all ``.log`` files are, which no libraries for compression have a part in."""
        kafkas, ours = self.kafkas / str(PARTITION), self.ours / str(PARTITION)
        names = [path.name for path in kafkas.glob("*.log")]
        return not cmpfiles(kafkas, ours, names, shallow=False)[1]

    @staticmethod
    def _high_watermark(part: Round, prepared: Answer) -> int:
        return max(
            int(prepared["logStartOffset"]), int(prepared["logEndOffset"]) - part.unreplicated
        )
