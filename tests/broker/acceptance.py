"""A broker takes over what `pylog` wrote, and `pylog` what the broker did; all that is seen of it.

=========== =================================================================================
stage       who does what
=========== =================================================================================
made        the broker creates the topics and stops
written     pylog writes their partitions, some through a crash, in place of the broker's own
read        the broker starts, consumers read, it stops
appended    the broker starts, its producers append, consumers read, it stops
continued   pylog opens the directory, reads, appends and decides what was open
read again  as *read*
=========== =================================================================================

Nothing is judged here but what the next stage stands on.
"""

from __future__ import annotations

import copy
import hashlib
import shutil
import time
from typing import TYPE_CHECKING

from kafka import TopicPartition as KafkaPartition

from pylog.config import LogConfig
from pylog.files.partition_metadata import read_partition_metadata
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.model import TopicPartition
from pylog.testing import ManualClock
from tests.broker.acceptance_stages import BrokerStage, PylogStage, read_all
from tests.broker.dumps import dumps_of
from tests.support.batches import LOG_APPEND_TIME, batch_v2
from tests.support.kafka_broker_jars import is_version_3
from tests.support.kafka_broker_tools import console_consume, segment_files
from tests.support.librdkafka import (
    consume_from,
    new_producer,
    offset_ranges,
    offsets_for_times,
    produce,
)
from tests.support.partition_account import (
    ISOLATIONS,
    PartitionAccount,
    ProducerState,
    record_at,
)
from tests.support.partition_writer import PartitionWriter
from tests.support.reading import scanned
from tests.support.written_partitions import WRITTEN_TOPICS, WrittenTopic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from uuid import UUID

    from confluent_kafka import Producer

    from tests.broker.acceptance_stages import Accounts
    from tests.broker.dumps import Dump
    from tests.support.batches import Stored
    from tests.support.kafka_broker import KafkaBroker

# Retention stays out of it: segments below a log start would go within 100 ms.
BROKER_PROPERTIES = {"log.initial.task.delay.ms": "3600000"}

_REWRITTEN = "leader-epoch-checkpoint"  # gets an entry with every new leader
_BROKER_RECORDS = 60
_PYLOG_RECORDS = 12
_TORN_BYTES = 7


class Acceptance:
    """Goes through all stages with one broker.

    Attributes
    ----------
    accounts
        What there is now.
    read, appended, continued, read_again
        What was seen in each stage.
    crashed
        What recovery found, and `torn_bytes`: what the crash had left too much.
    own_offsets_for_times
        What `pylog` answered before *read* to what the broker was asked then.
    dumps
        What DumpLogSegments says by mode, before *read*, and at the end under *read_again*.
    """

    def __init__(self, broker: KafkaBroker) -> None:
        self.broker = broker
        self.accounts: Accounts = {
            each.name: PartitionAccount(each.name) for each in WRITTEN_TOPICS
        }
        self.dumps: dict[str, dict[str, Dump]] = {}
        self.torn_bytes: dict[str, int] = {}
        self.own_offsets_for_times: list[dict[str, int | None]] = []
        self._clock = ManualClock(time.time_ns() // 1_000_000)
        self._topic_ids: dict[str, UUID] = {}

    def run(self) -> None:
        """Do everything; whatever fails here leaves nothing to judge."""
        self._make_topics()
        self._write()
        self.dumps["read"] = self._dumps()
        self.read = self._broker_stage(self._read)
        self.appended = self._broker_stage(self._append)
        self.continued = self._continue()
        self.read_again = self._broker_stage(self._read)
        self.dumps["read_again"] = self._dumps()

    # ---- stages

    def _make_topics(self) -> None:
        with self.broker as broker:
            for topic in WRITTEN_TOPICS:
                broker.create_topic(topic.name, config=self._broker_config(topic))
            broker.stop()
        for topic in WRITTEN_TOPICS:
            directory = broker.partition_directory(topic.name)
            self._topic_ids[topic.name] = read_partition_metadata(
                directory / "partition.metadata"
            ).topic_id
            shutil.rmtree(directory)

    def _write(self) -> None:
        self._crash()
        with self._manager() as manager:
            for topic in WRITTEN_TOPICS:
                if not topic.is_crashed:
                    topic.write(self._writer(manager, topic))
            for times in _times(self.accounts):
                answers = {
                    name: manager.get_log(TopicPartition(name, 0)).fetch_offset_by_timestamp(each)
                    for name, each in times.items()
                }
                self.own_offsets_for_times.append(
                    {name: each and each.offset for name, each in answers.items()}
                )

    def _crash(self) -> None:
        """Write some topics elsewhere, let the writer die, recover them and move them in.

        Not in the broker's own directory: that a crash there has cost nothing, no marker can tell
        the controller afterwards.
        """
        elsewhere = self.broker.directory / "crashed"
        topics = [each for each in WRITTEN_TOPICS if each.is_crashed]
        manager = self._manager(elsewhere).startup()
        for topic in topics:
            topic.write(self._writer(manager, topic))
        manager.checkpoint_log_recovery_offsets()
        manager.abandon()
        for topic in topics:
            self._tear(segment_files(elsewhere / f"{topic}-0")[-1], self.accounts[topic.name])
        with self._manager(elsewhere) as manager:
            self.crashed = self._opened(manager)
        for topic in topics:
            shutil.move(elsewhere / f"{topic}-0", self.broker.partition_directory(topic.name))

    def _tear(self, segment: Path, account: PartitionAccount) -> None:
        """Leave the most of a batch at the end, as a write does that the system cut short."""
        end = account.log_end_offset
        torn = batch_v2([record_at(end, 1), record_at(end + 1, 2)]).data[:-_TORN_BYTES]
        with segment.open("ab") as file:
            file.write(torn)
        self.torn_bytes[account.topic] = len(torn)

    def _continue(self) -> PylogStage:
        self._clock.set(time.time_ns() // 1_000_000)
        scans = {isolation: self._scanned(isolation) for isolation in ISOLATIONS}
        with self._manager() as manager:
            stage = self._opened(manager)
            stage.scanned = scans
            for topic in WRITTEN_TOPICS:
                writer = self._writer(manager, topic)
                writer.append(writer.records(_PYLOG_RECORDS))
                for producer in self.accounts[topic.name].producers:
                    is_transactional = bool(producer.open_offsets)
                    writer.append(
                        writer.records(_PYLOG_RECORDS),
                        producer=producer,
                        is_transactional=is_transactional,
                    )
                    if is_transactional:
                        writer.end_transaction(producer, is_commit=topic.is_crashed)
        return stage

    def _scanned(self, isolation: str) -> dict[str, list[Stored]]:
        return {
            name: scanned(self.broker.log_dir, topics=name, isolation=isolation)
            for name in self.accounts
        }

    def _opened(self, manager: LogManager) -> PylogStage:
        stage = PylogStage(copy.deepcopy(self.accounts))
        for loading in manager.loadings:
            stage.loadings[loading.topic_partition.topic] = loading
        for partition, log in manager.logs.items():
            stage.offset_ranges[partition.topic] = (log.log_start_offset, log.log_end_offset)
            stage.last_stable_offsets[partition.topic] = log.last_stable_offset
            stage.read[partition.topic] = read_all(log)
        return stage

    def _broker_stage(self, work: Callable[[BrokerStage], None]) -> BrokerStage:
        stage = BrokerStage(
            self.accounts, files_before=self._digests(), epochs_before=self._epochs()
        )
        with self.broker as broker:
            work(stage)
            stage.accounts = copy.deepcopy(self.accounts)
            self._consume(stage)
            broker.stop()
        stage.server_log = broker.server_log
        stage.was_stopped_cleanly = broker.was_stopped_cleanly
        stage.files_after, stage.epochs_after = self._digests(), self._epochs()
        return stage

    def _read(self, stage: BrokerStage) -> None:
        servers = self.broker.bootstrap_servers
        for times in _times(self.accounts):
            stage.offsets_for_times.append((times, offsets_for_times(servers, times)))
        partitions = [KafkaPartition(name, 0) for name in self.accounts]
        for partition, state in self.broker.admin().describe_producers(partitions).items():
            stage.producers[partition.topic] = sorted(
                ProducerState(
                    each.producer_id,
                    each.producer_epoch,
                    each.last_sequence,
                    each.current_transaction_start_offset,
                )
                for each in state.active_producers
            )

        for isolation in ISOLATIONS:
            count = sum(len(each.visible(isolation)) for each in self.accounts.values())
            stage.printed[isolation] = console_consume(servers, self.accounts, isolation, count)

    def _consume(self, stage: BrokerStage) -> None:
        servers = self.broker.bootstrap_servers
        starts = {name: each.log_start_offset for name, each in self.accounts.items()}
        stage.middles = {
            name: (each.log_start_offset + each.log_end_offset) // 2
            for name, each in self.accounts.items()
        }
        for isolation in ISOLATIONS:
            stage.consumed[isolation] = consume_from(servers, starts, isolation)
            stage.consumed_from[isolation] = consume_from(servers, stage.middles, isolation)
        stage.offset_ranges = offset_ranges(servers, list(starts))

    def _append(self, stage: BrokerStage) -> None:
        plain = new_producer(self.broker.bootstrap_servers)
        for topic in WRITTEN_TOPICS:
            self._produce(plain, topic)
        transactional = new_producer(self.broker.bootstrap_servers, "acceptance")
        topic = next(each for each in WRITTEN_TOPICS if each.name == "transactions")
        account = self.accounts[topic.name]
        transactional.init_transactions()
        for is_commit in (True, False):
            start = account.log_end_offset
            transactional.begin_transaction()
            self._produce(transactional, topic)
            if is_commit:
                transactional.commit_transaction()
            else:
                transactional.abort_transaction()
                account.aborted |= set(range(start, account.log_end_offset))
            account.log_end_offset += 1  # the marker
        self.broker.wait_for_markers("acceptance")

    def _produce(self, producer: Producer, topic: WrittenTopic) -> None:
        account = self.accounts[topic.name]
        now, start = time.time_ns() // 1_000_000, account.log_end_offset
        records = [record_at(start + each, now) for each in range(_BROKER_RECORDS)]
        answers = produce(producer, topic.name, records)
        assert [offset for offset, _ in answers] == [each.offset for each in records]
        if topic.is_append_time:
            records = [
                each._replace(timestamp=timestamp, timestamp_type=LOG_APPEND_TIME)
                for each, (_, timestamp) in zip(records, answers, strict=True)
            ]
        account.enter(records)

    # ---- means

    def _broker_config(self, topic: WrittenTopic) -> dict[str, str]:
        config = {"retention.ms": "-1", **topic.config}
        if not is_version_3(self.broker.version) and "segment.bytes" in config:
            # Version 4 allows no less than a mebibyte by the setting that operators use.
            config["internal.segment.bytes"] = config.pop("segment.bytes")
        return config

    def _manager(self, directory: Path | None = None) -> LogManager:
        return LogManager(
            [directory or self.broker.log_dir],
            topic_configs={
                each.name: LogConfig.from_properties(each.config) for each in WRITTEN_TOPICS
            },
            context=LogContext(clock=self._clock),
        )

    def _writer(self, manager: LogManager, topic: WrittenTopic) -> PartitionWriter:
        log = manager.get_or_create_log(TopicPartition(topic.name, 0), self._topic_ids[topic.name])
        account = self.accounts[topic.name]
        return PartitionWriter(log, self._clock, account, is_append_time=topic.is_append_time)

    def _digests(self) -> dict[str, dict[str, str]]:
        return {
            name: {
                path.name: hashlib.sha256(path.read_bytes()).hexdigest()
                for path in sorted(self.broker.partition_directory(name).iterdir())
                if path.name != _REWRITTEN
            }
            for name in self.accounts
        }

    def _epochs(self) -> dict[str, str]:
        return {
            name: (self.broker.partition_directory(name) / _REWRITTEN).read_text()
            for name in self.accounts
        }

    def _dumps(self) -> dict[str, Dump]:
        directories = [self.broker.partition_directory(name) for name in self.accounts]
        return dumps_of(directories, self.broker.version)


def _times(accounts: Accounts) -> Iterable[dict[str, int]]:
    """Give times to look for: of a middle record, between two, beyond all, and of the first.

    Not of a record near a log start that was moved: segments below it, which are not deleted yet,
    may have that time, too, and the broker looks no further then.
    """
    visible = {name: each.visible("read_uncommitted") for name, each in accounts.items()}
    stamps = {name: [each.timestamp for each in found] for name, found in visible.items() if found}
    yield {name: each[len(each) // 2] for name, each in stamps.items()}
    yield {name: each[2 * len(each) // 3] + 1 for name, each in stamps.items()}
    yield {name: max(each) + 1 for name, each in stamps.items()}
    yield {name: each[0] for name, each in stamps.items() if accounts[name].log_start_offset == 0}
