"""A broker takes over a directory that `pylog` has compacted and trimmed; all that is seen of it.

============= ===============================================================================
stage         who does what
============= ===============================================================================
made          the broker creates the topics and stops
written       pylog writes their partitions, in place of the broker's own
cleaned       pylog removes what retention does not keep, then compacts
read          the broker starts, with a cleaner that takes whatever is dirty; consumers read
cleaned again the cleaner's checkpoint is taken away, so that all is dirty; the broker starts, its
              cleaner goes over everything, consumers read
opened        pylog opens the directory and reads
============= ===============================================================================

Which records survive is counted here by the rules alone: what was written, where segments begin.
"""

from __future__ import annotations

import copy
import hashlib
import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pylog
from pylog.files.partition_metadata import read_partition_metadata
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.model import CompressionType, TopicPartition
from pylog.testing import ManualClock
from tests.broker.acceptance_stages import Accounts, BrokerStage, PylogStage, read_all
from tests.support.kafka_broker_jars import is_version_3
from tests.support.kafka_broker_tools import segment_files
from tests.support.librdkafka import consume_from, offset_ranges
from tests.support.partition_account import ISOLATIONS, PartitionAccount
from tests.support.partition_writer import PartitionWriter
from tests.support.written_partitions import (
    SMALL_SEGMENTS,
    WrittenTopic,
    write_and_delete,
    write_idempotent,
    write_open_transaction,
    write_plain,
    write_segments,
    write_transactions,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from uuid import UUID

    from tests.support.batches import Stored
    from tests.support.kafka_broker import KafkaBroker

# What it deletes by age is the cleaner's business alone: the other task is put off.
BROKER_PROPERTIES = {
    "log.initial.task.delay.ms": "3600000",
    "log.cleaner.backoff.ms": "50",
    "log.cleaner.min.cleanable.ratio": "0",
}
CHECKPOINT = "cleaner-offset-checkpoint"

_KEYS = 97
_CLEANING_SECONDS = 60.0
_REWRITTEN = "leader-epoch-checkpoint"  # gets an entry with every new leader


def write_batches(compression: CompressionType) -> Callable[[PartitionWriter], None]:
    """Return what writes many batches of a codec."""

    def write(writer: PartitionWriter) -> None:
        for number in range(60):
            writer.append(writer.records(5 + number, size=100), compression=compression)

    return write


def write_stamped(writer: PartitionWriter) -> None:
    """Write many batches while time goes by, to a topic whose records get the time of appending."""
    for _ in range(60):
        writer.clock.sleep(10)
        writer.append(writer.records(20))


def _compacted(
    name: str, write: Callable[[PartitionWriter], None], **properties: str
) -> WrittenTopic:
    config = {**SMALL_SEGMENTS, "cleanup.policy": "compact"}
    config |= {name.replace("_", "."): value for name, value in properties.items()}
    return WrittenTopic(f"compacted-{name}", write, config)


COMPACTED_TOPICS = [
    _compacted("segments", write_segments),
    *(
        _compacted(codec.label, write_batches(codec))
        for codec in sorted(CompressionType)
        if codec is not CompressionType.NONE
    ),
    _compacted("append-time", write_stamped, message_timestamp_type="LogAppendTime"),
    _compacted("idempotent", write_idempotent),
    _compacted("transactions", write_transactions),
    _compacted("open-transaction", write_open_transaction),
    _compacted("log-start", write_and_delete, cleanup_policy="compact,delete"),
]
TRIMMED_TOPICS = [
    WrittenTopic("trimmed-by-size", write_segments, {**SMALL_SEGMENTS, "retention.bytes": "20000"}),
    WrittenTopic("trimmed-by-time", write_segments, {**SMALL_SEGMENTS, "retention.ms": "440000"}),
    WrittenTopic("trimmed-by-log-start", write_and_delete, SMALL_SEGMENTS),
    WrittenTopic("trimmed-whole", write_plain, {"retention.ms": "1000"}),
]
CLEANED_TOPICS = [*COMPACTED_TOPICS, *TRIMMED_TOPICS]


class KeyedWriter(PartitionWriter):
    """A `PartitionWriter` whose records have keys, each of them again and again."""

    def records(
        self, count: int, *, first_timestamp: int | None = None, size: int = 40
    ) -> list[Stored]:
        """Return records as `PartitionWriter.records` does, with other keys."""
        records = super().records(count, first_timestamp=first_timestamp, size=size)
        return [each._replace(key=b"key %d" % (each.offset * 7919 % _KEYS)) for each in records]


@dataclass(frozen=True)
class Segments:
    """The segments of a log before it was cleaned: where they begin, and how large they are."""

    bases: tuple[int, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, directory: Path) -> Segments:
        """Look at a partition directory."""
        files = segment_files(directory)
        return cls(
            tuple(int(path.stem) for path in files), tuple(path.stat().st_size for path in files)
        )


class CleanedAcceptance:
    """Goes through all stages with one broker.

    Attributes
    ----------
    accounts
        What there is now.
    written
        What there was before it was cleaned.
    bounds
        Where cleaning had to end, by compacted topic.
    retention, compaction
        What the product said that it did.
    read, cleaned_again, opened
        What was seen in each stage.
    batches, batches_again
        The batches with records of each topic, as headers show them, before and after the broker's
        cleaner.
    """

    def __init__(self, broker: KafkaBroker) -> None:
        self.broker = broker
        self.accounts: Accounts = {
            each.name: PartitionAccount(each.name) for each in CLEANED_TOPICS
        }
        self.segments: dict[str, Segments] = {}
        self.bounds: dict[str, int] = {}
        self._clock = ManualClock(time.time_ns() // 1_000_000)
        self._topic_ids: dict[str, UUID] = {}

    def run(self) -> None:
        """Do everything; whatever fails here leaves nothing to judge."""
        self._make_topics()
        self._write()
        self.written = copy.deepcopy(self.accounts)
        self._expect()
        self._clean()
        self.batches = self._batches()
        self.read = self._broker_stage(lambda: None)
        (self.broker.log_dir / CHECKPOINT).unlink()
        self.cleaned_again = self._broker_stage(self._wait_for_cleaner)
        self.batches_again = self._batches()
        self.opened = self._open()

    # ---- stages

    def _make_topics(self) -> None:
        with self.broker as broker:
            for topic in CLEANED_TOPICS:
                broker.create_topic(topic.name, config=self._broker_config(topic))
            broker.stop()
        for topic in CLEANED_TOPICS:
            directory = broker.partition_directory(topic.name)
            self._topic_ids[topic.name] = read_partition_metadata(
                directory / "partition.metadata"
            ).topic_id
            shutil.rmtree(directory)
        (broker.log_dir / CHECKPOINT).unlink(missing_ok=True)

    def _write(self) -> None:
        with LogManager([self.broker.log_dir], context=LogContext(clock=self._clock)) as manager:
            for topic in CLEANED_TOPICS:
                manager.store_topic_config(topic.name, topic.config)
                place = TopicPartition(topic.name, 0)
                log = manager.get_or_create_log(place, self._topic_ids[topic.name])
                account = self.accounts[topic.name]
                topic.write(
                    KeyedWriter(log, self._clock, account, is_append_time=topic.is_append_time)
                )

    def _expect(self) -> None:
        """Take out of the accounts what cleaning has to take out of the logs."""
        for topic in CLEANED_TOPICS:
            account = self.accounts[topic.name]
            segments = Segments.of(self.broker.partition_directory(topic.name))
            self.segments[topic.name] = segments
            if "delete" in topic.config.get("cleanup.policy", "delete"):
                account.log_start_offset = self._expected_start(topic, account, segments)
            if "compact" in topic.config.get("cleanup.policy", "delete"):
                self.bounds[topic.name] = _first_uncleanable(account, segments)
                account.records = _survivors(account, self.bounds[topic.name])

    def _expected_start(
        self, topic: WrittenTopic, account: PartitionAccount, segments: Segments
    ) -> int:
        """Return where the log starts once retention has gone over it."""
        ends = (*segments.bases[1:], account.log_end_offset)
        at_most = int(topic.config.get("retention.bytes", -1))
        oldest = self._clock.milliseconds() - int(topic.config.get("retention.ms", 2**62))
        left = sum(segments.sizes)
        start = account.log_start_offset
        for base, end, size in zip(segments.bases, ends, segments.sizes, strict=True):
            newest = max(each.timestamp for each in account.records if base <= each.offset < end)
            is_below = end <= account.log_start_offset
            is_too_much = at_most >= 0 and left - size >= at_most
            if not is_below and not is_too_much and newest >= oldest:
                break
            left -= size
            start = max(start, end)
        return start

    def _clean(self) -> None:
        now_ms, directory = self._clock.milliseconds(), self.broker.log_dir
        self.retention = pylog.apply_retention(directory, now_ms=now_ms)
        self.compaction = pylog.compact(directory, now_ms=now_ms)

    def _broker_stage(self, work: Callable[[], None]) -> BrokerStage:
        stage = BrokerStage(self.accounts, files_before=self._digests())
        servers = self.broker
        starts = {name: each.log_start_offset for name, each in self.accounts.items()}
        with self.broker as broker:
            work()
            stage.accounts = copy.deepcopy(self.accounts)
            for isolation in ISOLATIONS:
                stage.consumed[isolation] = consume_from(
                    servers.bootstrap_servers, starts, isolation
                )
            stage.offset_ranges = offset_ranges(servers.bootstrap_servers, list(starts))
            broker.stop()
        stage.server_log = broker.server_log
        stage.was_stopped_cleanly = broker.was_stopped_cleanly
        stage.files_after = self._digests()
        return stage

    def _wait_for_cleaner(self) -> None:
        """Return once the broker's cleaner has come as far as it can in every topic."""
        deadline = time.monotonic() + _CLEANING_SECONDS
        while (found := self.cleaned_offsets()) != self.bounds:
            if time.monotonic() > deadline:
                msg = f"the broker's cleaner came to {found}, expected {self.bounds}"
                raise RuntimeError(msg)
            time.sleep(0.1)

    def cleaned_offsets(self) -> dict[str, int]:
        """Return what the cleaner's checkpoint says of the topics."""
        try:
            lines = (self.broker.log_dir / CHECKPOINT).read_text().splitlines()[2:]
        except FileNotFoundError:
            return {}
        offsets = {topic: int(offset) for topic, _, offset in map(str.split, lines)}
        return {topic: offset for topic, offset in offsets.items() if topic in self.accounts}

    def _open(self) -> PylogStage:
        stage = PylogStage(copy.deepcopy(self.accounts))
        with LogManager([self.broker.log_dir], context=LogContext(clock=self._clock)) as manager:
            for loading in manager.loadings:
                stage.loadings[loading.topic_partition.topic] = loading
            for partition, log in manager.logs.items():
                if partition.topic in self.accounts:
                    stage.offset_ranges[partition.topic] = log.log_start_offset, log.log_end_offset
                    stage.read[partition.topic] = read_all(log)
        return stage

    # ---- means

    def _broker_config(self, topic: WrittenTopic) -> dict[str, str]:
        config = {"retention.ms": "-1", **topic.config}
        if not is_version_3(self.broker.version) and "segment.bytes" in config:
            # Version 4 allows no less than a mebibyte by the setting that operators use.
            config["internal.segment.bytes"] = config.pop("segment.bytes")
        return config

    def _digests(self) -> dict[str, dict[str, str]]:
        return {
            name: {
                path.name: hashlib.sha256(path.read_bytes()).hexdigest()
                for path in sorted(self.broker.partition_directory(name).iterdir())
                if path.name != _REWRITTEN
            }
            for name in self.accounts
        }

    def _batches(self) -> dict[str, list[dict[str, object]]]:
        table = pylog.read_table(self.broker.log_dir, "batches", topics=list(self.accounts))
        found: dict[str, list[dict[str, object]]] = {name: [] for name in self.accounts}
        for row in table.drop_columns(["segment", "position", "path"]).to_pylist():
            if row["records"] and not row["is_control"]:
                found[row["topic"]].append(row)
        return found


def _first_uncleanable(account: PartitionAccount, segments: Segments) -> int:
    """Return where cleaning ends: at the active segment, or that of the oldest open transaction."""
    end = account.last_stable_offset
    return max(base for base in segments.bases if base <= end)


def _survivors(account: PartitionAccount, bound: int) -> list[Stored]:
    """Return the records that a cleaning up to ``bound`` leaves, and all from there on."""
    below = [
        each
        for each in account.records
        if each.offset < bound and each.offset not in account.aborted
    ]
    served = [each for each in below if each.offset >= account.log_start_offset]
    last = {each.key: each.offset for each in served}
    kept = [each for each in served if last[each.key] == each.offset]
    return [*kept, *(each for each in account.records if each.offset >= bound)]
