"""A log directory is absent, unfinished, or whole, whenever its making is killed."""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import (
    KafkaStorageError,
    LogDirectoryError,
    LogLockedError,
    UnexpectedFileError,
)
from pylog.jobs import extract
from pylog.writing.new_log_directory import MOVED, UNFINISHED, ensure_new, new_log_directory
from tests.support.killed_program import crashed_at
from tests.support.log_files import tree

if TYPE_CHECKING:
    from tests.conftest import Counted, HowMany
    from tests.support.golden import GoldenRoot


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
    (place / MOVED).write_text('["orders-0", "orders-1"]')
    (place / ".lock").touch()
    make(place, "a")
    assert tree(place).keys() == {"a"}
    (place / UNFINISHED).mkdir()
    for names in ("", "[[1]]", "7", '{"a'):
        (place / MOVED).write_text(names)
        with pytest.raises(LogDirectoryError, match="a is not from it"):
            ensure_new(f"{place}/")


def test_a_result_on_which_a_broker_may_have_run_is_not_replaced(tmp_path: Path) -> None:
    """Of a call that was killed at its end only the list of names is left."""
    make(tmp_path / "new", "a")
    (tmp_path / "new" / MOVED).write_text('["a"]')
    with pytest.raises(LogDirectoryError, match="directory is not empty"):
        ensure_new(tmp_path / "new")


@pytest.mark.parametrize("name", ["orders-0", "backup-2024", "a.txt"])
def test_what_somebody_has_put_there_meanwhile_stays(tmp_path: Path, name: str) -> None:
    place = Path(ensure_new(tmp_path / "new"))
    (place / name).mkdir(parents=True)
    with pytest.raises(LogDirectoryError, match=f"directory has {name} by now"):
        new_log_directory(str(place)).__enter__()
    assert (place / name).is_dir()


def test_two_calls_do_not_work_at_one_place(tmp_path: Path) -> None:
    place = ensure_new(tmp_path / "new")
    with new_log_directory(place) as unfinished:
        Path(unfinished, "a").touch()
        with pytest.raises(LogLockedError):
            ensure_new(place)
        with pytest.raises(LogLockedError):
            new_log_directory(place).__enter__()
    assert tree(tmp_path / "new").keys() == {"a"}


def test_a_call_that_crashes_at_any_step_leaves_what_no_broker_takes_for_whole(
    golden_root: GoldenRoot, tmp_path: Path, how_many: HowMany, counted: Counted
) -> None:
    """The next call makes what it would have made."""
    source = golden_root.case("4.3.0/internal-logdir")
    before = tree(source)
    expected_place = tmp_path / "expected"
    extract(source, to=expected_place, start=1, exact=True)
    expected = tree(expected_place)
    seen = {"absent": 0, "unfinished": 0, "whole": 0}
    for step in itertools.count(0, how_many(9, 1)):
        place = tmp_path / f"copy-{step}"
        extracting = partial(extract, source, to=place, start=1, exact=True)
        has_crashed = crashed_at(step, extracting)
        assert tree(source) == before, step
        if not place.exists() or not list(place.iterdir()):
            seen["absent"] += 1
        elif (place / UNFINISHED).exists():
            seen["unfinished"] += 1
            # As a broker, which ends at a directory that is no partition.
            with pytest.raises((UnexpectedFileError, LogDirectoryError, KafkaStorageError)):
                pylog.logs.own_log_directory(place).startup()
            crashed_at(step % 40, extracting)
        else:
            seen["whole"] += 1
            (place / MOVED).unlink(missing_ok=True)  # which a broker ignores
            assert tree(place) == expected, step
        if not place.exists() or tree(place) != expected:
            extracting()
        assert tree(place) == expected, step
        if not has_crashed:
            break
    counted("extracts that crash", seen)
    assert all(seen.values()), seen
