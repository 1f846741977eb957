"""What cleaning guarantees, on random logs: an account of what was appended says what survives.

Each log is appended to, trimmed, cleaned, read, and opened again, also after a crash.

* The last record of each key survives, under its offset; no record changes or moves.
* What is above the reach of the cleaner stays; what is superseded or aborted below it goes.
* The log ends where it did, also after a crash, and knows its producers' last sequence numbers.
* Committed reads never show aborted records: markers outlive their data.
* Who reads from the start and is done within ``delete.retention.ms`` knows of every deletion.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pylog.cleaner.cleaner import Cleaner
from pylog.cleaner.log_cleaner_manager import LogCleanerManager
from pylog.cleaner.offset_map import OffsetMap
from pylog.config import CleanerConfig, LogConfig, LogManagerConfig
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.log.log_segment import FetchIsolation
from pylog.model import TopicPartition
from pylog.testing import ManualClock, ManualScheduler
from tests.support.batches import ABORT, joined
from tests.support.keyed_account import NO_SEQUENCE, Cleaning, KeyedAccount
from tests.support.random_log import START_MS, TOPIC, RandomLog

if TYPE_CHECKING:
    from pylog.log.unified_log import UnifiedLog
    from tests.conftest import Counted
    from tests.support.batches import Built
    from tests.support.random_log import Round, Step

PARTITION = TopicPartition(TOPIC, 0)
LOGS = 2_000
LOGS_A_TEST = 25
LOAD_FACTOR = 0.9
NEVER_EXPIRES_MS = 2**31 - 1
CRASHES, RESTARTS, READERS = 0.2, 0.2, 0.5


@dataclass
class CommittedReader:
    """A consumer that takes part of the log at a time, and keeps each key's last value."""

    started_ms: int
    position: int
    values: dict[bytes, bytes | None] = field(default_factory=dict)

    def poll(self, log: UnifiedLog, account: KeyedAccount, size: int) -> list[Built]:
        """Read once, as Kafka's consumer does; return the batches of committed data."""
        self.position = max(self.position, log.log_start_offset)
        fetched = log.read(self.position, size, FetchIsolation.TXN_COMMITTED)
        ongoing = sorted(fetched.aborted_transactions or [], key=lambda each: each.first_offset)
        committed: list[Built] = []
        aborted: set[int] = set()
        for batch in account.read(whole_batches(fetched.records)):
            while ongoing and ongoing[0].first_offset <= batch.last_offset:
                aborted.add(ongoing.pop(0).producer_id)
            self.position = batch.last_offset + 1
            if batch.control_type == ABORT:
                aborted.discard(batch.producer_id)
            elif not batch.is_control and not (
                batch.is_transactional and batch.producer_id in aborted
            ):
                committed.append(batch)
                self.values.update({r.key: r.value for r in batch.records if r.key is not None})
        return committed


def whole_batches(data: bytes) -> bytes:
    """Return what was read without the batch at its end that was cut."""
    position = 0
    while position + 12 <= len(data):
        end = position + 12 + int.from_bytes(data[position + 8 : position + 12])
        if end > len(data):
            break
        position = end
    return data[:position]


class CleanedLog:
    """One log, its account, and somebody who reads."""

    def __init__(self, seed: int, directory: Path, counts: Counter[str]) -> None:
        self.seed = seed
        self.counts = counts
        self._random = random.Random(seed)
        self._drawn = RandomLog(seed)
        # As in Kafka, an append may find no room in an index that is as small as some drawn ones.
        room = max(1_000, int(self._drawn.topic_config["segment.index.bytes"]))
        own = {"cleanup.policy": "compact", "segment.index.bytes": str(room)}
        config = {**self._drawn.topic_config, **own}
        self._config = LogConfig.from_properties(config)
        self._directory = directory
        self._clock = ManualClock(START_MS)
        self.account = KeyedAccount(self._config.delete_retention_ms)
        self._reader: CommittedReader | None = None
        self._manager = self._open()

    def _open(self) -> LogManager:
        context = LogContext(clock=self._clock, scheduler=ManualScheduler(self._clock))
        return LogManager(
            [self._directory],
            topic_configs={TOPIC: self._config},
            manager_config=LogManagerConfig(producer_id_expiration_ms=NEVER_EXPIRES_MS),
            context=context,
        ).startup()

    def run(self) -> None:
        """Do all rounds."""
        for part in self._drawn.rounds():
            log = self._manager.get_or_create_log(PARTITION)
            for step in part.steps:
                self._take(log, step)
                self._poll(log)
            self._clock.set(part.clean_at_ms)
            self.account.observe_stable_offset(log.last_stable_offset)
            self._clean(log, part)
            self._poll(log)
            self._read_all(log)
            chance = self._random.random()
            if chance < CRASHES:
                self._crash(log)
            elif chance < CRASHES + RESTARTS:
                self._manager.shutdown()
                self._manager = self._open()
                self._compare_ends()
        self._manager.abandon()

    def _take(self, log: UnifiedLog, step: Step) -> None:
        self._clock.set(step.now_ms)
        if step.batches:
            log.append_as_follower(joined(step.batches))
            self.account.append(step.batches)
        if step.is_roll:
            log.roll()
        if step.delete_below is not None:
            offset = min(step.delete_below, self.account.end)
            log.maybe_increment_log_start_offset(offset)
            self.account.delete_below(offset)

    def _poll(self, log: UnifiedLog) -> None:
        """Let somebody read on, and at the end know what they have to know."""
        reader, now_ms = self._reader, self._clock.milliseconds()
        if reader is None:
            if self._random.random() < READERS:
                self._reader = CommittedReader(now_ms, log.log_start_offset)
            return
        if self._random.random() < 0.5:
            return
        before = reader.position
        reader.poll(log, self.account, self._random.choice((1, 300, 2_000)))
        is_done = reader.position == before
        if is_done and now_ms - reader.started_ms < self._config.delete_retention_ms:
            state = self.account.committed_state(log.last_stable_offset)
            assert {key: value for key, (_, value) in state.items()} == {
                key: reader.values.get(key) for key in state
            }, "a reader has missed something"
            self.counts["reads that went along with cleanings"] += 1
        if is_done:
            self._reader = None

    def _clean(self, log: UnifiedLog, part: Round) -> None:
        manager = LogCleanerManager(
            lambda: self._manager.logs,
            self._manager.cleaner_checkpoints,
            self._manager.context.failures,
        )
        candidate = manager.grab_filthiest_compacted_log(part.clean_at_ms)
        if candidate is None:
            return
        offset_map = OffsetMap(self._drawn.dedupe_buffer_bytes, LOAD_FACTOR)
        result = Cleaner(CleanerConfig(), self._clock, offset_map=offset_map).clean(candidate)
        manager.done_cleaning(log, result.next_dirty_offset)
        cleaning = Cleaning(
            part.clean_at_ms,
            candidate.first_dirty_offset,
            result.next_dirty_offset,
            candidate.first_uncleanable_offset,
        )
        problems = list(self.account.problems(self._batches(log), cleaning))
        assert not problems, "\n".join([str(cleaning), *problems])
        self.counts["rounds of cleaning"] += 1
        manager.delete_old_segments()

    def _batches(self, log: UnifiedLog) -> list[Built]:
        return [
            batch
            for segment in log.segments
            for batch in self.account.read(segment.log.read_at(0, segment.size_bytes))
        ]

    def _read_all(self, log: UnifiedLog) -> None:
        """Read what is committed: all that is not aborted, in the order of the log."""
        reader = CommittedReader(0, log.log_start_offset)
        committed: list[Built] = []
        while batches := self._polled(reader, log):
            committed += batches
        start, stable = self.account.start, log.last_stable_offset
        shown = [each.offset for batch in committed for each in batch.records]
        assert [each for each in shown if each >= start] == [
            record.offset
            for batch in self._batches(log)
            if not batch.is_control and batch.last_offset < stable
            for record in batch.records
            if record.offset >= start and not self.account.is_aborted(record.offset)
        ]

    def _polled(self, reader: CommittedReader, log: UnifiedLog) -> list[Built] | None:
        """Return what the next read that moves on gives; None at the end."""
        before = reader.position
        batches = reader.poll(log, self.account, 4_000)
        return batches or (None if reader.position == before else self._polled(reader, log))

    def _crash(self, log: UnifiedLog) -> None:
        """Open the log as after a crash, with no snapshot: producers are read from the segments.

        From the log's start on: what lies below is not read as long as the recovery point is known.
        Of a transaction that ended there Kafka's cleaner, and ours, may leave an empty batch
        without its marker.
        """
        directory = log.directory
        log.flush()
        self._manager.checkpoint_log_start_offsets()
        self._manager.checkpoint_log_recovery_offsets()
        self._manager.abandon()
        for path in Path(directory).glob("*.snapshot"):
            path.unlink()
        self._manager = self._open()
        self._compare_ends()
        producers = self._manager.get_log(PARTITION)._state.producer_state.active_producers
        for producer_id, sequence in self.account.sequences.items():
            if self.account.last_data_offsets[producer_id] >= self.account.start:
                entry = producers.get(producer_id)  # none where an emptied marker is all there is
                known = NO_SEQUENCE if entry is None else entry.last_sequence
                assert known == sequence, producer_id
        self.counts["crashes"] += 1

    def _compare_ends(self) -> None:
        log = self._manager.get_log(PARTITION)
        assert log.log_end_offset == self.account.end
        assert log.log_start_offset == self.account.start
        self.account.may_have_forgotten()
        self.account.observe_stable_offset(log.last_stable_offset)


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(
            first, marks=[pytest.mark.slow, pytest.mark.thorough(one_in=40)] if first else []
        )
        for first in range(0, LOGS, LOGS_A_TEST)
    ],
)
def test_what_must_survive_a_cleaning_does(first: int, memory_path: Path, counted: Counted) -> None:
    counts = Counter[str]()
    for seed in range(first, first + LOGS_A_TEST):
        directory = memory_path / str(seed)
        directory.mkdir()
        log = CleanedLog(seed, directory, counts)
        try:
            log.run()
        except BaseException as error:
            error.add_note(f"the log of seed {seed}")
            raise
    counted("cleaned logs and their accounts", counts)
