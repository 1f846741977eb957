"""What each step leaves of a cluster that moves, and how it is ended or undone."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING

import pytest

from pylog.errors import LogDirectoryError
from pylog.files.durable_io import DurableIO
from pylog.recovery.adopt import end_adoption
from pylog.recovery.adoption_target import ADOPTION
from pylog.recovery.cluster_places import ClusterPlaces, place_for_node
from tests.support.adopted_disks import formatted, left_in, old, run
from tests.support.killed_program import crashed_at
from tests.support.log_files import tree

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import HowMany


class StoppedError(Exception):
    pass


def write_new(places: ClusterPlaces, directories: list[Path]) -> None:
    for each in directories:
        new = places.new_in(str(each))
        DurableIO().make_directory(f"{new}/t-0")
        DurableIO().write_atomically(f"{new}/t-0/{0:020d}.log", b"")
        DurableIO().write_atomically(f"{new}/meta.properties", b"version=1\n")


def moved(directories: list[Path]) -> None:
    with ClusterPlaces([str(each) for each in directories]) as places:
        places.begin()
        write_new(places, directories)
        places.end()


def test_all_is_in_place_and_what_formatting_made_is_gone(tmp_path: Path) -> None:
    directories = [formatted(tmp_path / "1"), tmp_path / "2"]
    moved(directories)
    for each in directories:
        assert set(tree(each)) == {f"t-0/{0:020d}.log", "meta.properties"}
        assert (each / "meta.properties").read_text() == "version=1\n"


def begin_and_stop(directories: list[Path]) -> None:
    with ClusterPlaces([str(each) for each in directories]) as places:
        places.begin()
        assert not (directories[0] / "meta.properties").exists()
        write_new(places, directories)
        raise StoppedError


def test_what_is_raised_undoes_what_was_begun(tmp_path: Path) -> None:
    directories = [formatted(tmp_path / "1"), tmp_path / "2"]
    before = tree(directories[0])
    with pytest.raises(StoppedError):
        begin_and_stop(directories)
    assert (tree(directories[0]), directories[1].exists()) == (before, False)


@pytest.mark.parametrize("undo", [False, True])
def test_a_crash_at_any_step_is_ended_or_undone_also_when_that_crashes(
    tmp_path: Path, how_many: HowMany, *, undo: bool
) -> None:
    outcomes = set()
    for step in itertools.count(0, how_many(4, 1)):
        directories = [formatted(tmp_path / f"{step}-1"), tmp_path / f"{step}-2"]
        before = tree(directories[0])
        has_crashed = crashed_at(step, partial(moved, directories))
        for each in (step % 4, 7):
            ensure_no_node_starts(directories)
            marked = [one for one in directories if (one / ADOPTION).exists()][:1]
            if marked:
                crashed_at(each, partial(end_adoption, marked, undo=undo))
        marked = [one for one in directories if (one / ADOPTION).exists()]
        is_ended = None
        if marked:
            try:
                is_ended = end_adoption(marked, undo=undo)
            except LogDirectoryError:  # all is in place, which the message says
                is_ended = end_adoption(marked)
        found = [left_in(each) for each in directories]
        is_as_before = found == [before, {}]
        assert is_ended in (None, not is_as_before), step
        outcomes.add(is_as_before)
        assert is_as_before or all("t-0/" + f"{0:020d}.log" in each for each in found), step
        if not has_crashed:
            break
    assert outcomes == {True, False}


def ensure_no_node_starts(directories: list[Path]) -> None:
    """Ensure that what is marked has no identity, or is whole."""
    for each in directories:
        if (each / ADOPTION).exists() and (each / "meta.properties").exists():
            names = {path.name for path in each.iterdir()}
            is_untouched = "bootstrap.checkpoint" in names
            assert is_untouched or "t-0" in names, names


def test_directories_that_are_in_use_are_refused(tmp_path: Path) -> None:
    assert place_for_node(tmp_path / "new") == (str(tmp_path / "new"), None)
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed" / ".lock").touch()
    assert place_for_node(tmp_path / "killed") == (str(tmp_path / "killed"), None)
    _, meta = place_for_node(formatted(tmp_path / "formatted", 3))
    assert meta is not None
    assert meta.node_id == 3
    ran = run(tmp_path / "run", (), (7,))
    with pytest.raises(LogDirectoryError, match=r"here is \.kafka_cleanshutdown"):
        place_for_node(ran)
    (ran / ".kafka_cleanshutdown").unlink()  # as a controller leaves none
    with pytest.raises(LogDirectoryError, match="a node that has run"):
        place_for_node(ran)
    with pytest.raises(LogDirectoryError, match="here is t-0"):
        place_for_node(old(tmp_path / "old"))
    (tmp_path / "new" / ADOPTION).mkdir(parents=True)
    with pytest.raises(LogDirectoryError, match="--undo"):
        place_for_node(tmp_path / "new")
