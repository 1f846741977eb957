"""A random log that Kafka fills, and that both work on, each in a directory of its own."""

from __future__ import annotations

import random
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field
from filecmp import cmpfiles
from typing import TYPE_CHECKING, Any

from pylog.config import LogConfig, LogManagerConfig
from pylog.files.checkpoint_file import read_offset_checkpoint
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.model import TopicPartition
from pylog.testing import ManualClock, ManualScheduler
from tests.differential.comparison import differences
from tests.differential.kafka_log import KafkaFailedError
from tests.support.kafka_broker_jars import VERSION_BEFORE
from tests.support.log_files import write_high_watermarks
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

    def run_kafka(
        self, what: str, part: Round, prepared: Answer, *, with_retention: bool = True
    ) -> Answer:
        """Let Kafka do a job at the end of a round; its cleaner removes old segments, too."""
        job: dict[str, Any] = {**self._job, "now": part.clean_at_ms, "retention": with_retention}
        job["highWatermark"] = self.checkpoint_of(part, prepared)
        return self.kafka.run(what, self.kafkas, job)

    @contextmanager
    def opened(self, part: Round, prepared: Answer) -> Iterator[tuple[LogManager, UnifiedLog]]:
        """Open ours at the end of a round: its high watermark is that of the checkpoint."""
        checkpoint = self.checkpoint_of(part, prepared)
        write_high_watermarks(self.ours, {PARTITION: checkpoint})
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
            start, end = int(prepared["logStartOffset"]), int(prepared["logEndOffset"])
            assert log.high_watermark == max(start, min(checkpoint, end))
            yield manager, log
        if checkpoint < start:
            # Kafka writes the log's start instead; we never raise what a broker has written.
            written = read_offset_checkpoint(self.ours / "replication-offset-checkpoint")
            assert written == {PARTITION: checkpoint}
            write_high_watermarks(self.ours, {PARTITION: start})

    def differences(self) -> list[str]:
        """Return what is not the same in the two directories."""
        keeps_last = self.kafka.version == VERSION_BEFORE
        return differences(self.kafkas, self.ours, str(PARTITION), keeps_last=keeps_last)

    def is_the_same_to_the_byte(self) -> bool:
        """Whether all ``.log`` files are, which no libraries for compression have a part in."""
        kafkas, ours = self.kafkas / str(PARTITION), self.ours / str(PARTITION)
        names = [path.name for path in kafkas.glob("*.log")]
        return not cmpfiles(kafkas, ours, names, shallow=False)[1]

    def checkpoint_of(self, part: Round, prepared: Answer) -> int:
        """Return what ``replication-offset-checkpoint`` says at the end of a round.

        Of ten rounds, four have a log that is replicated, or nearly so, and four one that is up to
        anywhere: between batches, inside one, inside a transaction. In one it is below the log's
        start, in one above its end.
        """
        start, end = int(prepared["logStartOffset"]), int(prepared["logEndOffset"])
        draw = random.Random(f"{self.drawn.seed} {part.clean_at_ms}")
        kind = draw.random()
        if kind < 0.4:
            return max(start, end - part.unreplicated)
        if kind < 0.8:
            return draw.randint(start, end)
        return draw.randint(0, start) if kind < 0.9 else end + draw.randint(1, 100)

    def where_high_watermark_is(self, part: Round, prepared: Answer) -> str:
        """Return in words where the checkpoint is, for counts."""
        checkpoint, end = self.checkpoint_of(part, prepared), int(prepared["logEndOffset"])
        if checkpoint < int(prepared["logStartOffset"]):
            return "high watermark below the log's start"
        if checkpoint == end:
            return "high watermark at the end"
        return f"high watermark {'below' if checkpoint < end else 'above'} the end"
