"""A log directory whose records are rewritten: planned, done, and looked through afterwards."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import CorruptRecordError, LogDirectoryError, LogLockedError
from pylog.files.directory_lock import DirectoryLock
from pylog.jobs import erase
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import tree
from tests.unit.recovery.test_erase import MINE, rows

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    pylog.write_topic(tmp_path / "logs", "users", rows(30), key="key", value="value")
    return tmp_path / "logs"


def test_a_dry_run_changes_nothing_and_finds_the_same(directory: Path) -> None:
    before = tree(directory)
    with DirectoryLock(str(directory)):
        planned = erase(directory, MINE, dry_run=True)
        with pytest.raises(LogLockedError):
            erase(directory, MINE)
    assert tree(directory) == before
    done = erase(directory, MINE)
    assert [each[:4] for each in planned.partitions] == [each[:4] for each in done.partitions]
    assert (planned.is_written, planned.remaining) == (False, [])
    assert (done.is_written, done.remaining) == (True, [])


def test_nothing_is_made_where_nothing_is(tmp_path: Path) -> None:
    with pytest.raises(LogDirectoryError):
        erase(tmp_path / "none", MINE)
    assert not (tmp_path / "none").exists()


def test_progress_goes_up_to_all_bytes(directory: Path) -> None:
    seen: list[tuple[int, int]] = []
    erase(directory, MINE, progress=lambda *now: seen.append(now))
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1] > 0


def test_only_segments_with_such_records_are_counted(directory: Path) -> None:
    pylog.write_topic(directory, "other", rows(6, "you"), key="key", value="value")
    planned = erase(directory, MINE, dry_run=True)
    assert [each[:4] for each in planned.partitions] == [("users", 0, 10, 1)]
    with pylog.logs.own_log_directory(directory) as manager:
        manager.get_log(pylog.TopicPartition("users", 0)).roll()
    [users] = erase(directory, MINE, dry_run=True).partitions
    assert (users.records, users.segments) == (10, 1)


def test_where_they_still_are_is_named(directory: Path, tmp_path: Path) -> None:
    other = tmp_path / "node2"
    shutil.copytree(directory, other)
    [log] = (other / "users-0").glob("*.log")
    log.with_name(log.name + ".deleted").write_bytes(log.read_bytes())
    stray = directory / "users-0.0123456789abcdef0123456789abcdef-stray"
    shutil.copytree(other / "users-0", stray)
    staged = directory / ".pylog-staged-job-0-0.batches"
    records = [each._replace(key=b"me") for each in plain_records(0, 2)]
    staged.write_bytes(batch_v2(records).data)
    torn = other / "users-0" / "00000000000000000900.log"
    torn.write_bytes(log.read_bytes()[:-5])
    done = erase(directory, MINE, look_in=[other])
    found = {each.path: (each.records, each.problem is None) for each in done.remaining}
    deleted = log.name + ".deleted"
    assert found == {
        str(stray / log.name): (10, True),
        str(stray / deleted): (10, True),
        str(staged): (2, True),
        str(other / "users-0" / log.name): (10, True),
        str(other / "users-0" / deleted): (10, True),
        str(torn): (0, False),
    }


def test_damage_is_refused_and_the_records_stay(directory: Path) -> None:
    [log] = (directory / "users-0").glob("*.log")
    data = bytearray(log.read_bytes())
    data[90] ^= 1
    log.write_bytes(data)
    with pytest.raises(CorruptRecordError):
        erase(directory, MINE)
    assert log.read_bytes() == bytes(data)
