"""Random logs, and configurations to clean and trim them by: rounds of appends, rolls, deletions.

Everything comes from a seed, and nothing from the packages: times, offsets and bytes are made here.
"""

from __future__ import annotations

import base64
import os
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support.batches import (
    ABORT,
    COMMIT,
    Built,
    Stored,
    batch_v2,
    empty_batch_v2,
    joined,
    marker,
    message,
    wrapper,
)
from tests.support.codecs import CODECS, LEGACY_CODECS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

START_MS = 1_700_000_000_000
TOPIC = "keyed"
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
MAP_ENTRY_BYTES = 24


@dataclass(frozen=True)
class Step:
    """One of: an append of whole batches, a roll, a deletion of the records below an offset."""

    now_ms: int
    batches: tuple[Built, ...] = ()
    is_roll: bool = False
    delete_below: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the step as ``KafkaLog.java`` takes it."""
        step: dict[str, Any] = {"now": self.now_ms}
        if self.batches:
            step["append"] = base64.b64encode(joined(self.batches)).decode()
        if self.is_roll:
            step["roll"] = True
        if self.delete_below is not None:
            step["deleteRecords"] = self.delete_below
        return step


@dataclass(frozen=True)
class Round:
    """What happens to a log until it is cleaned or trimmed at ``clean_at_ms``.

    ``file_ages_ms`` are handed out to the ``.log`` files, in the order of their names and from the
    beginning again where there are more files, as their ages at that time. ``unreplicated`` is how
    far the high watermark lies below the end then.
    """

    steps: tuple[Step, ...]
    clean_at_ms: int
    file_ages_ms: tuple[int, ...]
    unreplicated: int = 0

    def set_file_times(self, partition_directory: Path) -> None:
        """Give every ``.log`` file its age."""
        for place, path in enumerate(sorted(partition_directory.glob("*.log"))):
            age = self.file_ages_ms[place % len(self.file_ages_ms)]
            nanoseconds = (self.clean_at_ms - age) * 1_000_000
            os.utime(path, ns=(nanoseconds, nanoseconds))


@dataclass
class _Producer:
    producer_id: int
    is_transactional: bool
    epoch: int = 0
    next_sequence: int = 0
    is_open: bool = False


@dataclass
class RandomLog:
    """A log drawn from a seed.

    Attributes
    ----------
    topic_config
        Topic properties, by Kafka's names.
    dedupe_buffer_bytes, io_buffer_bytes
        Of the cleaner.
    producer_expiration_ms
        ``producer.id.expiration.ms``.
    """

    seed: int
    topic_config: dict[str, str] = field(init=False)
    dedupe_buffer_bytes: int = field(init=False)
    io_buffer_bytes: int = field(init=False)
    producer_expiration_ms: int = field(init=False)
    begins_with_old_formats: bool = field(init=False)

    def __post_init__(self) -> None:
        self._random = draw = random.Random(self.seed)
        self.topic_config = self._draw_topic_config()
        # A map of a few entries is full long before the log is read.
        entries = draw.choice((2, 5, 9, 20)) if draw.random() < 0.35 else 10_000
        self.dedupe_buffer_bytes = entries * MAP_ENTRY_BYTES
        self.io_buffer_bytes = draw.choice((64, 300, 1_500, 512 * 1024))
        self.producer_expiration_ms = draw.choice((1_000, HOUR_MS, DAY_MS, DAY_MS))
        self.begins_with_old_formats = draw.random() < 0.25
        self._codecs = draw.choice((("none",), ("none",), CODECS, (draw.choice(CODECS),)))
        self._keys = draw.choice((1, 3, 8, 30))
        self._null_keys = draw.choice((0.0, 0.0, 0.05, 0.3))
        self._null_values = draw.choice((0.0, 0.1, 0.3, 0.9))
        self._gaps = draw.choice((0.0, 0.0, 0.3))
        self._has_been_cleaned_elsewhere = draw.random() < 0.2
        self._next_offset = draw.choice((0, 0, 0, 17, 3_000_000_000))
        self._now_ms = START_MS
        self._leader_epoch = draw.randint(0, 3)
        transactional = draw.choice((0.0, 0.5, 1.0))
        self._producers = [
            _Producer(1000 + place, draw.random() < transactional)
            for place in range(draw.choice((0, 1, 3, 6)))
        ]

    def _draw_topic_config(self) -> dict[str, str]:
        draw = self._random
        config = {
            "cleanup.policy": draw.choice(("compact", "compact", "compact,delete")),
            "segment.bytes": str(draw.choice((3_000, 6_000, 6_000, 20_000))),
            "index.interval.bytes": str(draw.choice((0, 100, 500, 4096))),
            "segment.index.bytes": str(draw.choice((120, 240, 4_000, 4_000, 4_000))),
            "delete.retention.ms": str(draw.choice((0, 1_000, HOUR_MS, DAY_MS))),
            "min.cleanable.dirty.ratio": str(draw.choice((0, 0, 0, 0.01, 0.3, 0.5))),
            "file.delete.delay.ms": "60000",
            "retention.ms": str(draw.choice((-1, -1, HOUR_MS, DAY_MS))),
            "retention.bytes": str(draw.choice((-1, -1, -1, 8_000, 30_000))),
        }
        if draw.random() < 0.15:
            config["min.compaction.lag.ms"] = str(draw.choice((1, 500, 60_000, HOUR_MS)))
        if draw.random() < 0.3:
            config["max.compaction.lag.ms"] = str(draw.choice((HOUR_MS, DAY_MS)))
        if draw.random() < 0.3:
            config["segment.ms"] = str(draw.choice((2_000, HOUR_MS)))
        return config

    def rounds(self, *, most: int = 4) -> Iterator[Round]:
        """Yield one to ``most`` rounds; each continues where the one before ended."""
        draw = self._random
        cleaned_at = self._now_ms
        for number in range(draw.randint(1, most)):
            is_old = self.begins_with_old_formats and number < 2
            steps = tuple(self._draw_step(is_old=is_old) for _ in range(draw.randint(5, 40)))
            if draw.random() < 0.7:
                steps += (Step(self._now_ms, is_roll=True),)
            retention = int(self.topic_config["delete.retention.ms"])
            due = cleaned_at + retention  # when what the round before began to count ends
            lag = draw.choice(steps).now_ms + int(self.topic_config.get("min.compaction.lag.ms", 0))
            self._now_ms = max(
                steps[-1].now_ms, draw.choice((0, due - 1, due, due, due + 1, due + 5_000, lag))
            )
            cleaned_at = self._now_ms
            ages = tuple(
                draw.choice((0, retention, draw.randint(0, 2 * max(retention, 5_000))))
                for _ in range(12)
            )
            in_order = tuple(sorted(ages, reverse=True))
            yield Round(
                steps,
                self._now_ms,
                ages if draw.random() < 0.2 else in_order,
                draw.randint(1, 60) if draw.random() < 0.15 else 0,
            )

    def _draw_step(self, *, is_old: bool) -> Step:
        draw = self._random
        self._now_ms += draw.choice((0, 1, 50, 700))
        chance = draw.random()
        if chance < 0.07:
            return Step(self._now_ms, is_roll=True)
        if chance < 0.10:
            return Step(self._now_ms, delete_below=self._next_offset - draw.randint(0, 60))
        if draw.random() < 0.05:
            self._leader_epoch += 1
        if is_old:
            magic = draw.choice((0, 1, 1))
            return Step(self._now_ms, (self._draw_old(magic),))
        return Step(self._now_ms, tuple(self._draw_batch() for _ in range(draw.choice((1, 1, 2)))))

    def _draw_records(self) -> list[Stored]:
        draw = self._random
        if draw.random() < self._gaps:
            self._next_offset += draw.choice((1, 2, 40))
        records = []
        for _ in range(draw.choice((1, 1, 2, 4, 8))):
            is_keyless = draw.random() < self._null_keys
            headers = tuple((f"h{n}", draw.choice((None, b"", b"x"))) for n in range(2))
            records.append(
                Stored(
                    self._next_offset,
                    self._now_ms - draw.choice((0, 0, 5, 1_000, 90_000)),
                    None if is_keyless else b"key %d" % draw.randrange(self._keys),
                    None if draw.random() < self._null_values else self._draw_value(),
                    headers if draw.random() < 0.2 else (),
                )
            )
            self._next_offset += 1
            if draw.random() < self._gaps / 3:
                self._next_offset += 1
        return records

    def _draw_value(self) -> bytes:
        draw = self._random
        return draw.choice((b"", b"v", b"value " * 10, draw.randbytes(draw.randint(1, 90))))

    def _draw_old(self, magic: int) -> Built:
        draw = self._random
        codecs = [each for each in self._codecs if each in LEGACY_CODECS]
        append_time = self._now_ms if magic == 1 and draw.random() < 0.2 else None
        records = [each._replace(headers=()) for each in self._draw_records()]
        if codecs and draw.random() < 0.7:
            codec = draw.choice(codecs)
            return wrapper(records, magic=magic, codec=codec, append_time=append_time)
        self._next_offset = records[0].offset + 1
        return message(records[0], magic=magic, append_time=append_time)

    def _draw_batch(self) -> Built:
        draw = self._random
        producer = draw.choice(self._producers) if self._producers else None
        if producer is None or draw.random() < 0.3:
            return self._draw_plain()
        if producer.is_open and draw.random() < 0.4:
            return self._end_transaction(producer)
        if producer.is_transactional and draw.random() < 0.05:  # a transaction without data
            return self._end_transaction(producer)
        if not producer.is_open and draw.random() < 0.1:
            producer.epoch, producer.next_sequence = producer.epoch + 1, 0
            if producer.is_transactional:  # it was fenced while nothing was open
                return self._marker(producer, ABORT)
        records = self._draw_records()
        sequence = producer.next_sequence
        producer.next_sequence += len(records)
        producer.is_open = producer.is_transactional
        return batch_v2(
            records,
            codec=draw.choice(self._codecs),
            leader_epoch=self._leader_epoch,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            is_transactional=producer.is_transactional,
        )

    def _end_transaction(self, producer: _Producer) -> Built:
        draw = self._random
        control_type = draw.choice((COMMIT, ABORT))
        producer.is_open = False
        if (
            control_type == ABORT and draw.random() < 0.3
        ):  # a fenced one: the marker has a new epoch
            producer.epoch, producer.next_sequence = producer.epoch + 1, 0
        if draw.random() < 0.25:
            self._producers.remove(producer)
        return self._marker(producer, control_type)

    def _marker(self, producer: _Producer, control_type: int) -> Built:
        built = marker(
            self._next_offset,
            control_type,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            timestamp=self._now_ms,
            leader_epoch=self._leader_epoch,
        )
        self._next_offset += 1
        return built

    def _draw_plain(self) -> Built:
        draw = self._random
        if self._has_been_cleaned_elsewhere and draw.random() < 0.15:
            first = self._next_offset
            self._next_offset += draw.choice((1, 5))
            return empty_batch_v2(first, self._next_offset - 1, max_timestamp=self._now_ms)
        records = self._draw_records()
        horizon = append_time = None
        if self._has_been_cleaned_elsewhere and draw.random() < 0.3:
            horizon = self._now_ms + draw.choice((-1_000, 0, 1, HOUR_MS))
        if draw.random() < 0.1:
            append_time = self._now_ms
        return batch_v2(
            records,
            codec=draw.choice(self._codecs),
            leader_epoch=self._leader_epoch,
            append_time=append_time,
            delete_horizon=horizon,
        )


def trimming(seed: int, config: Mapping[str, str]) -> dict[str, str]:
    """Return a configuration under which segments are deleted by age, size or log start."""
    draw = random.Random(seed)
    policy = draw.choice(("delete", "delete", "delete", "compact,delete", "compact", ""))
    return {
        **config,
        "cleanup.policy": policy,
        "retention.ms": str(draw.choice((-1, 0, 1_000, 30_000, HOUR_MS))),
        "retention.bytes": str(draw.choice((-1, 0, 1, 3_000, 8_000, 30_000))),
    }
