"""What is found does not depend on how much is read at once, nor on how many threads look."""

from __future__ import annotations

import os
import random
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.checks import partition
from pylog.checks.broker_start import broker_start
from pylog.checks.partition import check_partition
from pylog.files.directory_lock import DirectoryLock
from pylog.reading.log_directory import open_directory
from pylog.reading.log_view import LogView
from tests.support.batches import COMMIT, batch_v2, marker, plain_records
from tests.support.corruption import with_sound_checksums
from tests.support.damage import flip
from tests.support.log_files import segment_path, write_partition, write_recovery_points

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pylog.checks.broker_start import BrokerStart
    from pylog.checks.partition_check import PartitionCheck
    from tests.support.batches import Built

SEED = 20_261_123
BATCHES = 90
RECORDS = 4
WINDOW_BYTES = 1 << 12
THREADS = (2, 3, 8)


def batches(codec: str, first: int) -> list[Built]:
    """Return a segment's batches: some of transactions, with their markers."""
    made = []
    offset = first
    for number in range(BATCHES):
        is_transactional = number % 7 == 0
        made.append(
            batch_v2(
                plain_records(offset, RECORDS, value_size=200, timestamp=1000 + offset),
                codec=codec,
                producer_id=5 if is_transactional else -1,
                producer_epoch=0 if is_transactional else -1,
                is_transactional=is_transactional,
            )
        )
        offset += RECORDS
        if is_transactional:
            made.append(marker(offset, COMMIT, producer_id=5))
            offset += 1
    return made


def check(
    directory: Path, limit: int = 1 << 20, window_bytes: int = WINDOW_BYTES
) -> PartitionCheck:
    (view,) = open_directory(directory)
    return check_partition(view, window_bytes=window_bytes, max_decompressed_bytes=limit)


def damage(path: Path, chance: random.Random) -> None:
    """Break a file in one of the ways in which files break."""
    data = bytearray(path.read_bytes())
    at = chance.randrange(len(data))
    match chance.randrange(6):
        case 0:
            data[at] ^= 1 << chance.randrange(8)
        case 1:
            data[at : at + chance.randrange(1, 500)] = bytes(chance.randrange(1, 500))
        case 2:
            del data[at:]
        case 3:
            del data[at : at + chance.randrange(1, 3000)]
        case 4:
            data[at:at] = data[: chance.randrange(1, 2000)]
        case 5:
            data[at] ^= 1 << chance.randrange(8)
            if path.suffix == ".log":  # what only whoever decodes the records notices
                data = bytearray(with_sound_checksums(bytes(data)))
    path.write_bytes(data)


@pytest.mark.parametrize("codec", ["none", "zstd", "snappy", "lz4"])
@pytest.mark.thorough(one_in=4)
def test_findings_are_the_same_for_any_number_of_threads_and_size_of_windows(
    tmp_path: Path, codec: str
) -> None:
    first = batches(codec, 0)
    bases = (0, first[-1].last_offset + 1)
    segments = {bases[0]: first, bases[1]: batches(codec, bases[1])}
    chance = random.Random(SEED)
    kinds: set[str] = set()
    is_refused = False
    for number in range(25):
        directory = write_partition(tmp_path, segments, name=f"t-{number}")
        for _ in range(number % 3):
            suffix = chance.choice([".log", ".log", ".log", ".index", ".timeindex"])
            damage(segment_path(directory, chance.choice(bases), suffix), chance)
        one = check(directory)
        kinds |= {each.code for each in one.findings}
        assert check(directory, window_bytes=1 << 20)._replace(view=one.view) == one, number
        is_refused |= len(one.damaged) > len([each for each in one.damaged if "CRC" in each.reason])
    assert "damaged_batches" in kinds
    assert is_refused
    by_one = pylog.doctor(tmp_path, threads=1).to_table()
    for threads in THREADS:
        assert pylog.doctor(tmp_path, threads=threads).to_table() == by_one, threads


def test_a_batch_that_is_too_large_is_the_same_finding_for_any_size_of_windows(
    tmp_path: Path,
) -> None:
    made = [
        batch_v2(plain_records(at, 1, value_size=90_000 if at % 31 == 30 else 200))
        for at in range(120)
    ]
    directory = write_partition(tmp_path, {0: made})
    one = check(directory, limit=50_000)
    assert len(one.damaged) == 3
    for window_bytes in (1 << 14, 1 << 18, 1 << 22):
        found = check(directory, limit=50_000, window_bytes=window_bytes)
        assert found._replace(view=one.view) == one


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_that_is_not_there_at_each_look_but_after_it_is_not_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    directory = write_partition(tmp_path, {0: batches("none", 0), 10_000: batches("none", 10_000)})
    index = segment_path(directory, 0, suffix)
    content = index.read_bytes()
    refreshed, looks = LogView.refreshed, 0

    def begin_to_replace(self: LogView, *args: object, **kwargs: object) -> LogView:
        nonlocal looks
        if index.exists() and looks % 2 == 0:
            index.unlink()
        looks += 1
        return refreshed(self, *args, **kwargs)  # type: ignore[arg-type]

    def finish_replacing(_size: int) -> None:
        nonlocal looks
        index.write_bytes(content)
        looks = 1

    (view,) = open_directory(directory)
    monkeypatch.setattr(LogView, "refreshed", begin_to_replace)
    found = check_partition(view, window_bytes=WINDOW_BYTES, on_bytes=finish_replacing)
    assert f"missing_{'time_index' if suffix == '.timeindex' else 'index'}" not in {
        each.code for each in found.findings
    }


def at_each_pause(monkeypatch: pytest.MonkeyPatch, do: Callable[[float], None]) -> None:
    """Have something done at each pause, which takes its time by the clock alone."""
    now, waited = time.monotonic, 0.0

    def sleep(seconds: float) -> None:
        nonlocal waited
        waited += seconds
        do(seconds)

    monkeypatch.setattr(time, "monotonic", lambda: now() + waited)
    monkeypatch.setattr(time, "sleep", sleep)


@pytest.mark.parametrize(
    ("is_whole_at", "has_lock", "looks", "is_found"),
    [(2, True, 2, False), (3, True, 3, False), (4, True, 3, True), (2, False, 1, True)],
)
def test_what_is_wrong_beside_a_broker_is_looked_at_three_times(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_whole_at: int,
    has_lock: bool,
    looks: int,
    is_found: bool,
) -> None:
    """A broker that is suspended between two files changes nothing meanwhile."""
    directory = write_partition(tmp_path, {0: batches("none", 0)})
    log = segment_path(directory, 0)
    content = log.read_bytes()
    log.write_bytes(content[:-10])
    settled = time.time() - 1000
    os.utime(log, (settled, settled))
    seen = 1

    def sleep(seconds: float) -> None:
        nonlocal seen
        if seconds >= 0.2:  # others wait for the clock of the file system
            seen += 1
            if seen == is_whole_at:
                log.write_bytes(content)
                os.utime(log, (settled, settled))

    at_each_pause(monkeypatch, sleep)
    (view,) = open_directory(directory)
    with DirectoryLock(tmp_path) if has_lock else nullcontext():
        found = check_partition(view)
    assert seen == looks
    assert any(each.code == "torn_tail" for each in found.findings) is is_found
    assert found.start is not None


def test_a_start_that_would_lose_what_was_on_its_way_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is damaged at each look, and a start would cut it at the last one alone."""
    directory = write_partition(tmp_path, {0: batches("none", 0), 10_000: batches("none", 10_000)})
    flip(segment_path(directory, 0), 70)
    starts: list[bool] = []

    def start(view: LogView, *arguments: Any, **options: Any) -> BrokerStart | None:  # noqa: ANN401
        found = broker_start(view, *arguments, **options)
        assert found is not None
        starts.append(found.loses_records)
        return found

    def sleep(_seconds: float) -> None:
        write_recovery_points(tmp_path, {("orders", 0): 10_000 if len(starts) == 1 else 0})

    write_recovery_points(tmp_path, {("orders", 0): 10_000})
    monkeypatch.setattr("pylog.checks.partition.broker_start", start)
    at_each_pause(monkeypatch, sleep)
    (view,) = open_directory(directory)
    with DirectoryLock(tmp_path):
        found = check_partition(view)
    assert starts == [False, False, True]
    assert "damaged_batches" in {each.code for each in found.findings}
    assert found.start is None


def test_a_large_log_is_looked_at_twice_which_takes_long_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = write_partition(tmp_path, {0: batches("none", 0)})
    flip(segment_path(directory, 0), 70)
    looks: list[str] = []
    now, hours = time.monotonic, 0.0
    check_once = partition._check

    def slow(*arguments: Any, **options: Any) -> PartitionCheck:  # noqa: ANN401
        nonlocal hours
        looks.append("look")
        hours += 3600.0
        return check_once(*arguments, **options)

    monkeypatch.setattr(partition, "_check", slow)
    monkeypatch.setattr(time, "monotonic", lambda: now() + hours)
    (view,) = open_directory(directory)
    with DirectoryLock(tmp_path):
        found = check_partition(view)
    assert len(looks) == 2
    assert "damaged_batches" in {each.code for each in found.findings}
