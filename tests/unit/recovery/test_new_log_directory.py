"""A log directory is absent, unfinished, or whole, whenever its making is killed."""

from __future__ import annotations

import multiprocessing
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import KafkaStorageError, LogDirectoryError, UnexpectedFileError
from pylog.jobs import extract
from pylog.recovery.new_log_directory import UNFINISHED, ensure_new, ensure_space, new_log_directory
from tests.support.log_files import tree

if TYPE_CHECKING:
    from tests.conftest import Counted, HowMany
    from tests.support.golden import GoldenRoot

SEED = 55


def make(place: Path, *names: str) -> None:
    with new_log_directory(ensure_new(place)) as unfinished:
        for each in names:
            (place / UNFINISHED / each).write_text(each)
        assert unfinished == str(place / UNFINISHED)


def test_all_of_it_is_there_at_the_end(tmp_path: Path) -> None:
    make(tmp_path / "new", "a", ".kafka_cleanshutdown")
    assert tree(tmp_path / "new").keys() == {"a", ".kafka_cleanshutdown"}
    (tmp_path / "empty").mkdir()
    make(tmp_path / "empty", "a")
    assert tree(tmp_path / "empty").keys() == {"a"}


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    def fail(name: str) -> None:
        with new_log_directory(ensure_new(tmp_path / name)) as unfinished:
            (Path(unfinished) / "orders-0").mkdir()
            (Path(unfinished) / "orders-0" / "file").touch()
            raise KeyError

    for name in ("new", "empty"):
        with pytest.raises(KeyError):
            fail(name)
    assert [each.name for each in tmp_path.rglob("*")] == ["empty"]


def test_what_was_left_is_replaced_unless_something_else_is_there(tmp_path: Path) -> None:
    place = tmp_path / "new"
    (place / UNFINISHED / "orders-0").mkdir(parents=True)
    (place / "orders-1").mkdir()
    (place / "orders-1" / "file").touch()
    make(place, "a")
    assert tree(place).keys() == {"a"}
    (place / UNFINISHED).mkdir()
    with pytest.raises(LogDirectoryError, match="a is not from it"):
        ensure_new(place)


def test_a_disk_without_room_is_refused(tmp_path: Path) -> None:
    ensure_space(str(tmp_path / "not" / "yet"), 1)
    with pytest.raises(LogDirectoryError, match="the copy needs"):
        ensure_space(str(tmp_path), 1 << 60)


def test_a_killed_call_leaves_what_no_broker_takes_for_whole(
    golden_root: GoldenRoot, tmp_path: Path, how_many: HowMany, counted: Counted
) -> None:
    """Killed at random moments; the next call makes what it would have made."""
    source = golden_root.case("4.3.0/internal-logdir")
    before = tree(source)
    draw = random.Random(SEED)
    expected_place = tmp_path / "expected"
    began = time.monotonic()
    extract(source, to=expected_place, start=1, exact=True)
    seconds = time.monotonic() - began
    expected = tree(expected_place)
    place = tmp_path / "copy"
    seen = {"absent": 0, "unfinished": 0, "whole": 0}
    fork = multiprocessing.get_context("fork")
    for number in range(how_many(10, 500)):
        process = fork.Process(
            target=extract, args=(source,), kwargs={"to": place, "start": 1, "exact": True}
        )
        process.start()
        time.sleep(draw.uniform(0, 2 * seconds))
        process.kill()
        process.join()
        assert tree(source) == before, f"seed {SEED}, round {number}"
        if not place.exists() or not list(place.iterdir()):
            seen["absent"] += 1
            continue
        if (place / UNFINISHED).exists():
            seen["unfinished"] += 1
            # As a broker, which ends at a directory that is no partition.
            with pytest.raises((UnexpectedFileError, LogDirectoryError, KafkaStorageError)):
                pylog.logs.own_log_directory(place).startup()
        else:
            seen["whole"] += 1
            assert tree(place) == expected, f"seed {SEED}, round {number}"
            for each in sorted(place.rglob("*"), reverse=True):
                each.rmdir() if each.is_dir() else each.unlink()
        extract(source, to=place, start=1, exact=True)
        assert tree(place) == expected, f"seed {SEED}, round {number}"
        for each in sorted(place.rglob("*"), reverse=True):
            each.rmdir() if each.is_dir() else each.unlink()
    counted("killed extracts", seen)
    assert seen["unfinished"], seen
