"""What our cleaner makes of a log is what the brokers' cleaners made of it.

Of each case ``before/`` is copied, opened by a `LogManager` of the case's configuration, cleaned
once from its first to its active segment, and shut down. Two things are not in the cases and are
taken from ``after/``: the time of the cleaning, which its delete horizons tell, and
``segment.bytes`` at that time, which its joined segments tell: some are larger together than the
configuration that they were written with allows. Files' times, by which v0 and v1 tombstones
would go, are those of the copies, which are all made now: so none goes by them.

Of Kafka 4.3.0 all files are the same to the byte, but for what was compressed anew. The rules of
older brokers differ, and so do their files, in what `DIFFERENCES` names; records that stay,
their offsets, and the bounds of batches are the same.
"""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.cleaner.cleanable_offsets import LogToClean
from pylog.cleaner.cleaner import Cleaner
from pylog.config import CleanerConfig
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.testing import ManualClock, ManualScheduler
from tests.golden.test_recovery_pairs import config_of, copy_state, lead, time_of, version_key
from tests.support.golden import golden_cases
from tests.unit.log.owned_log import batches_in

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.record.record import Record
    from pylog.record.record_batch import RecordBatch
    from tests.support.golden import GoldenRoot

# In compacted-empty-batches and mixed-magic-compacted, the policy is that of the topic.
GIVEN_UP = "4.4.0/compacted-max-decompressed"
CASES = [each for each in golden_cases() if "compacted" in each and each != GIVEN_UP]
LATEST = [each for each in CASES if each.startswith("4.3.0/")]
OLDER = [each for each in CASES if each not in LATEST]

DIFFERENCES = """
up to 3.9.1  the last batch of a cleaning goes as any other; it stays, as its header at least
up to 3.0    batches have no delete horizon; a batch gets one with its first tombstone
up to 3.9    v0 and v1 batches keep their format; they become v2
             which changes sizes, so that other batches get index entries
"""


@dataclass(frozen=True)
class Pair:
    """A case whose ``before/`` has been cleaned in ``ours``."""

    case_id: str
    kafkas: Path
    ours: Path
    end_offsets: dict[str, int]

    @property
    def broker(self) -> tuple[int, ...]:
        return version_key(self.case_id.partition("/")[0])


def time_of_cleaning(case: Path, delete_retention_ms: int) -> int:
    """Return what the first delete horizon says, or else when the broker ran."""
    for path in sorted((case / "after").glob("*-0/*.log")):
        for batch in batches_in(path.read_bytes()):
            horizon = batch.header.delete_horizon_ms
            if horizon is not None:
                return horizon - delete_retention_ms
    return time_of(case / "after")


def size_of_joined_segments(case: Path) -> int:
    """Return how large old segments are together that a new one took the place of, at the most."""
    largest = 0
    for partition in (case / "after").glob("*-0"):
        new = sorted(int(path.stem) for path in partition.glob("*.log"))
        sizes = dict.fromkeys(new, 0)
        for path in (case / "before" / partition.name).glob("*.log"):
            sizes[max(base for base in new if base <= int(path.stem))] += path.stat().st_size
        largest = max(largest, *sizes.values())
    return largest


def cleaned(case_id: str, golden_root: GoldenRoot, target: Path) -> Pair:
    case = golden_root.case(case_id)
    copy_state(case / "before", target)
    config = config_of(case_id)
    joined_bytes = size_of_joined_segments(case)
    config = dataclasses.replace(
        config,
        cleanup_policy=frozenset({"compact"}),
        segment_bytes=max(config.segment_bytes, joined_bytes),
    )
    clock = ManualClock(time_of_cleaning(case, config.delete_retention_ms))
    context = LogContext(clock=clock, scheduler=ManualScheduler(clock))
    cleaner = Cleaner(CleanerConfig(), clock)
    ends = {}
    with LogManager([target], config, context=context) as manager:
        for log in manager.logs.values():
            lead(log, case / "after")
            active = log.local_log.segments.active_segment.base_offset
            result = cleaner.clean(LogToClean(log, log.log_start_offset, active))
            assert result.next_dirty_offset == active
            ends[str(log.topic_partition)] = active
    return Pair(case_id, case / "after", target, ends)


@pytest.mark.parametrize("case_id", LATEST)
def test_every_file_is_kafkas(case_id: str, golden_root: GoldenRoot, tmp_path: Path) -> None:
    pair = cleaned(case_id, golden_root, tmp_path)
    compresses = case_id == "4.3.0/compacted-compressed"
    names = sorted(
        {
            path.relative_to(root).as_posix()
            for root in (pair.ours, pair.kafkas)
            for path in root.glob("*-0/*")
            if not path.name.endswith(".deleted")
        }
    )
    different = [
        name
        for name in names
        if not (pair.ours / name).exists()
        or not (pair.kafkas / name).exists()
        or (pair.ours / name).read_bytes() != (pair.kafkas / name).read_bytes()
    ]
    # Two compressors write one lz4 frame differently; what follows lies elsewhere then.
    allowed = re.compile(r".*/00000000000000000193\.(log|index)" if compresses else "nothing")
    assert [name for name in different if not allowed.fullmatch(name)] == []
    for name in different:
        if name.endswith(".log"):
            ours, kafkas = (
                batches_in((root / name).read_bytes()) for root in (pair.ours, pair.kafkas)
            )
            assert [content(batch) for batch in ours] == [content(batch) for batch in kafkas]


def content(batch: RecordBatch) -> tuple[object, ...]:
    """Return all that a batch says but its size, its checksum and how it is compressed."""
    header = dataclasses.replace(batch.header, size_bytes=0, crc=0)
    return header, list(batch.records())


def without_sequence(record: Record) -> tuple[object, ...]:
    """Return what stays of a record when it becomes v2: v0 has no type of timestamp."""
    return record.offset, record.timestamp, record.key, record.value, record.headers


@pytest.mark.parametrize("case_id", OLDER)
def test_records_and_batches_are_those_of_older_brokers(
    case_id: str, golden_root: GoldenRoot, tmp_path: Path
) -> None:
    pair = cleaned(case_id, golden_root, tmp_path)
    for partition, end_offset in pair.end_offsets.items():
        ours, kafkas = (
            sorted((root / partition).glob("*.log")) for root in (pair.ours, pair.kafkas)
        )
        assert [path.name for path in ours] == [path.name for path in kafkas]
        for mine, theirs in zip(ours, kafkas, strict=True):
            my_batches = batches_in(mine.read_bytes())
            their_batches = batches_in(theirs.read_bytes())
            # The last batch of the cleaning, which stays since 3.9.2 even if no record does.
            my_batches = [
                batch
                for batch in my_batches
                if batch.header.record_count != 0
                or batch.header.next_offset != end_offset
                or batch.header.offset in {each.header.offset for each in their_batches}
            ]
            assert [bounds(batch) for batch in my_batches] == [
                bounds(batch) for batch in their_batches
            ]
            assert [without_sequence(each) for batch in my_batches for each in batch.records()] == [
                without_sequence(each) for batch in their_batches for each in batch.records()
            ]
            # What was v0 or v1 has another base offset only if it was compressed.
            assert [
                my_batch.header.offset == their_batch.header.offset
                for my_batch, their_batch in zip(my_batches, their_batches, strict=True)
                if their_batch.header.base_offset is not None
            ].count(False) == 0
            is_cleaned = int(mine.stem) < end_offset
            assert {batch.header.magic for batch in my_batches} <= {2} or not is_cleaned


def bounds(batch: RecordBatch) -> tuple[object, ...]:
    """Return what a batch says that no difference between brokers changes, beside its records."""
    header = batch.header
    return (
        header.last_offset,
        header.compression,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.is_transactional,
        header.is_control_batch,
    )


@pytest.mark.parametrize("is_dry_run", [True, False])
def test_a_partition_with_a_record_that_is_too_large_stays_as_kafkas_cleaner_left_it(
    golden_root: GoldenRoot, tmp_path: Path, *, is_dry_run: bool
) -> None:
    case = golden_root.case(GIVEN_UP)
    copy_state(case / "before", tmp_path)
    summary = pylog.compact(
        tmp_path,
        server_properties=pylog.ServerProperties(log_config=config_of(GIVEN_UP)),
        high_watermark="log-end",
        dry_run=is_dry_run,
    )
    [partition] = summary.partitions
    # The size is in the broker's log: see the certificate's notes.
    assert "has 60010 bytes, max.decompressed.message.bytes is 20000" in (partition.failure or "")
    assert (partition.rounds, partition.is_complete) == (0, False)
    names = [path.name for path in sorted((case / "after").glob("bounded-0/*.log"))]
    assert len(names) == 4
    for name in names:
        kafkas = (case / "after" / "bounded-0" / name).read_bytes()
        assert (tmp_path / "bounded-0" / name).read_bytes() == kafkas


def test_what_is_cleaned_is_read_by_kafkas_expectations(
    golden_root: GoldenRoot, tmp_path: Path
) -> None:
    pair = cleaned("4.3.0/compacted-txn", golden_root, tmp_path)
    lines = (pair.kafkas / "expected.profiles-txn-0.uncommitted.jsonl").read_text().splitlines()
    expected = [json.loads(line)["offset"] for line in lines]
    found = [
        record.offset
        for path in sorted((pair.ours / "profiles-txn-0").glob("*.log"))
        for batch in batches_in(path.read_bytes())
        if not batch.header.is_control_batch
        for record in batch.records()
    ]
    assert found == expected
