"""Records go from logs that we own; a broker judges in tests/broker."""

from __future__ import annotations

import itertools
import random
import shutil
from functools import partial
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.config import LogConfig
from pylog.errors import UnknownTopicOrPartitionError
from pylog.jobs import erase
from tests.property.test_extract import GAPS, PLACE, Ledger, problems, with_types, write_log
from tests.support.killed_program import crashed_at
from tests.support.log_files import tree
from tests.support.reading import scanned

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Counted, HowMany

SEED = 77
MINE = pylog.RecordFilter(keys=frozenset({b"me"}))


def rows(count: int, key: str = "me") -> list[dict[str, object]]:
    return [
        {"key": key if number % 3 == 0 else f"other {number}", "value": f"{key}'s secret {number}"}
        for number in range(count)
    ]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    pylog.write_topic(tmp_path / "logs", "users", rows(30), key="key", value="value")
    return tmp_path / "logs"


def bytes_of(directory: Path) -> bytes:
    return b"".join(tree(directory).values())


def test_random_logs_lose_the_records_and_nothing_else(
    tmp_path: Path, how_many: HowMany, counted: Counted
) -> None:
    seen = {"erased": 0, "kept": 0}
    for seed in range(how_many(6, 150)):
        draw = random.Random(SEED + seed)
        place = tmp_path / str(seed)
        size = draw.choice(("900", "6000", "1073741824"))
        batches = write_log(place, seed, LogConfig.from_properties({"segment.bytes": size}))
        view = pylog.open_directory(place)[PLACE]
        start, end = view.log_start_offset, view.log_end_offset
        known = problems(place)
        keys = frozenset(b"key %d" % draw.randrange(4) for _ in range(2))
        done = erase(place, pylog.RecordFilter(keys=keys))
        assert done.remaining == [], seed
        whole = Ledger(batches, start, end)
        for isolation in ("read_uncommitted", "read_committed"):
            expected = [each for each in whole.visible(isolation) if each.key not in keys]
            assert with_types(scanned(place, isolation=isolation)) == with_types(expected), seed
        view = pylog.open_directory(place)[PLACE]
        assert (view.log_start_offset, view.log_end_offset) == (start, end), seed
        assert problems(place) <= known | GAPS, seed
        gone = [each for batch in batches for each in batch.visible if each.key in keys]
        assert sum(each.records for each in done.partitions) == len(gone), seed
        seen["erased"] += len(gone)
        seen["kept"] += len(whole.records)
    counted("erasures", seen)
    assert all(seen.values())


def test_no_byte_of_them_stays_also_below_the_start_of_the_log(directory: Path) -> None:
    pylog.delete_records(directory, {("users", 0): 7})
    assert b"me's secret 0" in bytes_of(directory)
    done = erase(directory, MINE)
    [part] = done.partitions
    assert (part.records, part.segments, done.remaining) == (10, 1, [])
    assert b"me" not in {each.key for each in scanned(directory)}
    for number in range(30):
        has_it = b"me's secret %d\x00" % number in bytes_of(directory)
        assert has_it is (number % 3 != 0)
    assert pylog.open_directory(directory)["users", 0].log_start_offset == 7
    before = tree(directory)
    again = erase(directory, MINE)
    assert again.partitions == []
    assert {name for name, data in tree(directory).items() if before.get(name) != data} <= {
        ".kafka_cleanshutdown"
    }


def test_what_makes_no_sense_is_refused(directory: Path) -> None:
    before = tree(directory)
    with pytest.raises(ValueError, match="would erase all"):
        erase(directory, pylog.RecordFilter(topics=frozenset({"users"})))
    with pytest.raises(UnknownTopicOrPartitionError):
        erase(directory, MINE, topics=["user"])
    assert tree(directory) == before


def test_a_call_that_crashes_at_any_step_is_done_by_the_next_one(
    tmp_path: Path, how_many: HowMany, counted: Counted
) -> None:
    source = tmp_path / "source"
    for _ in range(6):
        pylog.write_topic(source, "users", rows(300), key="key", value="value")
        with pylog.logs.own_log_directory(source) as manager:
            manager.get_log(pylog.TopicPartition("users", 0)).roll()
    before = scanned(source)
    expected = [each for each in before if each.key != b"me"]
    seen = {"none": 0, "some": 0, "all": 0}
    for number in itertools.count(0, how_many(11, 1)):
        place = tmp_path / f"copy-{number}"
        shutil.copytree(source, place)
        has_crashed = crashed_at(number, partial(erase, place, MINE))
        found = scanned(place)
        seen["none" if found == before else "all" if found == expected else "some"] += 1
        assert [each for each in found if each.key != b"me"] == expected, number
        done = erase(place, MINE)
        assert (scanned(place), done.remaining) == (expected, []), number
        if not has_crashed:
            break
    counted("erasures that crash", seen)
    assert all(seen.values()), seen
