"""Random ranges of random logs: the copy has the records of the range, and nothing else.

What a log holds is known from the batches that it was made of, and not from reading it.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pylog
from pylog.config import LogConfig
from pylog.log.log_manager import LogManager
from pylog.model import TopicPartition
from tests.support.batches import ABORT, COMMIT
from tests.support.random_log import TOPIC, RandomLog
from tests.support.reading import scanned

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.conftest import Counted, HowMany
    from tests.support.batches import Built, Stored

PLACE = TopicPartition(TOPIC, 0)
WAYS = ("name", "include", "abort")
ENDS = (ABORT, COMMIT)
GAPS = {"compacted_offsets", "offset_gap", "missing_segment"}
"""What offsets look like that the source has not either."""


class Ledger:
    """What a range of some batches holds."""

    def __init__(self, batches: Sequence[Built], start: int, end: int) -> None:
        self.start, self.end = start, end
        inside = [each for each in batches if each.last_offset >= start and each.base_offset < end]
        self.records: list[Stored] = []
        self.committed: list[Stored] = []
        self.open: dict[int, list[Stored]] = {}
        for batch in inside:
            kept = [each for each in batch.records if start <= each.offset < end]
            if batch.control_type in ENDS:
                waiting = self.open.pop(batch.producer_id, [])
                self.committed += waiting if batch.control_type == COMMIT else []
            elif batch.is_control:
                continue
            else:
                self.records += kept
                if not batch.is_transactional:
                    self.committed += kept
                elif kept:
                    self.open.setdefault(batch.producer_id, []).extend(kept)

    def visible(self, isolation: str, *, is_aborted: bool = False) -> list[Stored]:
        """Return what a consumer gets of a copy that has this range."""
        if isolation == "read_uncommitted":
            return self.records
        stable = min((each[0].offset for each in self.open.values()), default=self.end)
        committed = sorted(self.committed, key=lambda each: each.offset)
        return [each for each in committed if is_aborted or each.offset < stable]


def is_end_of(batch: Built, producer_id: int) -> bool:
    return batch.producer_id == producer_id and batch.control_type in ENDS


def cut_at(batches: Sequence[Built], ledger: Ledger) -> dict[int, int]:
    """Return the markers of the transactions that the end of a range cuts, by producer."""
    found = {}
    for producer_id in ledger.open:
        later = (each for each in batches if each.base_offset >= ledger.end)
        markers = (each.base_offset for each in later if is_end_of(each, producer_id))
        marker = next(markers, None)
        if marker is not None:
            found[producer_id] = marker
    return found


def end_of_whole_transactions(batches: Sequence[Built], start: int, end: int) -> int:
    while markers := cut_at(batches, Ledger(batches, start, end)):
        end = max(markers.values()) + 1
    return end


def write_log(directory: Path, seed: int, config: LogConfig) -> list[Built]:
    written = []
    with LogManager([directory], config) as manager:
        log = manager.get_or_create_log(PLACE)
        for each in RandomLog(seed).rounds():
            for step in each.steps:
                if step.is_roll:
                    log.roll()
                for batch in step.batches:
                    log.append_as_follower(batch.data)
                    written.append(batch)
    return written


def with_types(records: Sequence[Stored]) -> list[Stored]:
    """Return records as v2 has them: those of v0 that were written anew have its type of times."""
    return [each._replace(timestamp_type=max(each.timestamp_type, 0)) for each in records]


def problems(directory: Path) -> set[str]:
    """Return the codes of what is found in a directory."""
    return {each.kind.code for each in pylog.doctor(directory).findings}


def test_a_copy_has_exactly_the_records_of_its_range(
    tmp_path: Path, how_many: HowMany, counted: Counted
) -> None:
    logs, cuts_a_log = how_many(6, 120), 5
    seen = {"cut batches": 0, "cut transactions": 0, "later ends": 0, "markers": 0}
    for seed in range(logs):
        draw = random.Random(1_000 + seed)
        size = draw.choice(("900", "6000", "1073741824"))
        source = tmp_path / f"source-{seed}"
        batches = write_log(source, seed, LogConfig.from_properties({"segment.bytes": size}))
        known = problems(source)
        log_end = batches[-1].last_offset + 1
        first = pylog.open_directory(source)[PLACE].log_start_offset
        for number in range(cuts_a_log):
            start = draw.randint(first, log_end)
            end = min(log_end, start + draw.choice((0, 1, 5, 40, log_end)))
            way = draw.choice(WAYS)
            copy = tmp_path / f"copy-{seed}-{number}"
            case = f"seed {seed}, offsets {start} to {end}, {way}"
            done = pylog.jobs.extract(
                source, to=copy, start=start, end=end, exact=True, transactions=way
            )
            if way == "include":
                later = end_of_whole_transactions(batches, start, end)
                seen["later ends"] += later > end
                end = later
            ledger = Ledger(batches, start, end)
            [part] = done.partitions
            markers = len(ledger.open) if way == "abort" else 0
            assert (part.start_offset, part.end_offset) == (start, end + markers), case
            for isolation in ("read_uncommitted", "read_committed"):
                expected = ledger.visible(isolation, is_aborted=way == "abort")
                found = scanned(copy, isolation=isolation)
                assert with_types(found) == with_types(expected), (case, isolation)
            cut = {
                each.producer_id: each.marker_offset
                for each in done.cut_transactions
                if each.marker_offset is not None
            }
            assert cut == cut_at(batches, ledger), case
            assert problems(copy) <= known | GAPS, case
            seen["cut batches"] += part.rewritten_batches
            seen["cut transactions"] += len(cut)
            seen["markers"] += markers
    counted("extracts", seen)
    assert all(seen.values()), seen


def test_what_is_left_out_leaves_the_rest_unchanged_and_transactions_whole(
    tmp_path: Path, how_many: HowMany, counted: Counted
) -> None:
    seen = {"left out": 0, "of transactions": 0, "kept": 0}
    for seed in range(how_many(5, 120)):
        draw = random.Random(2_000 + seed)
        source = tmp_path / f"source-{seed}"
        batches = write_log(source, seed, LogConfig.from_properties({"segment.bytes": "3000"}))
        log_end = batches[-1].last_offset + 1
        first = pylog.open_directory(source)[PLACE].log_start_offset
        start = draw.randint(first, log_end)
        end = draw.randint(start, log_end)
        keys = frozenset(b"key %d" % draw.randrange(4) for _ in range(3))
        producers = {1000 + draw.randrange(6)} if draw.random() < 0.4 else set[int]()
        is_kept = draw.random() < 0.5
        there = pylog.RecordFilter(keys=keys)

        def stays(
            batch: Built,
            record: Stored,
            keys: frozenset[bytes] = keys,
            producers: set[int] = producers,
            *,
            is_kept: bool = is_kept,
        ) -> bool:
            return (record.key in keys) is is_kept and batch.producer_id not in producers

        done = pylog.jobs.extract(
            source,
            to=tmp_path / f"copy-{seed}",
            start=start,
            end=end,
            where=there if is_kept else None,
            exclude=None if is_kept else there,
            exclude_producers=producers,
        )
        [part] = done.partitions
        case = f"seed {seed}, offsets {start} to {end}, keeps {is_kept}, without {producers}"
        assert (part.start_offset, part.end_offset) == (start, end), case
        whole = Ledger(batches, start, end)
        gone = {
            record.offset
            for batch in batches
            for record in batch.records
            if not batch.is_control and not stays(batch, record)
        }
        for isolation in ("read_uncommitted", "read_committed"):
            expected = [e for e in whole.visible(isolation) if e.offset not in gone]
            found = scanned(tmp_path / f"copy-{seed}", isolation=isolation)
            assert with_types(found) == with_types(expected), (case, isolation)
        left_out = [each for each in whole.records if each.offset in gone]
        assert part.left_out_records == len(left_out), case
        assert {
            each.producer_id for each in done.cut_transactions if each.marker_offset is not None
        } == cut_at(batches, whole).keys(), case
        problem = problems(tmp_path / f"copy-{seed}")
        # Where offsets are missing, it is not certain of any transaction that it has no marker.
        open_there = {"wrong_stable_offset"} if done.cut_transactions else set[str]()
        assert problem <= problems(source) | GAPS | open_there, case
        seen["left out"] += len(left_out)
        seen["of transactions"] += part.left_out_of_transactions
        seen["kept"] += len(whole.records) - len(left_out)
    counted("exclusions", seen)
    assert all(seen.values()), seen
