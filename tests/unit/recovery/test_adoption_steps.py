"""An adoption that is interrupted is ended or taken back, and loses nothing."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import LogDirectoryError
from pylog.files.durable_io import DurableIO
from pylog.reading.log_directory import open_directory
from pylog.recovery.adoption_steps import remove_mark
from pylog.recovery.adoption_target import ADOPTION
from tests.support.adopted_disks import (
    DIRECTORY_ID,
    LEVEL,
    OLD_CLUSTER,
    formatted,
    left_in,
    old,
    properties,
    run,
)
from tests.support.killed_program import crashed_at, is_done_when_killed
from tests.support.log_files import segment_path, tree
from tests.support.metadata_log import (
    METADATA,
    data_batch,
    topic_record,
    write_snapshot,
)
from tests.support.metadata_rows import fields_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import HowMany


_PREPARE = "import pylog; pylog.adopt(sys.argv[1], into=sys.argv[2], dry_run=True)"


_WORK = "pylog.adopt(sys.argv[1], into=sys.argv[2])"


@pytest.mark.thorough(one_in=75, of_all=6)
@pytest.mark.parametrize("milliseconds", range(0, 300, 1))
def test_a_kill_leaves_the_target_as_it_was_or_a_mark_that_tells_how_to_go_on(
    tmp_path: Path, milliseconds: int
) -> None:
    source = old(tmp_path / "old", partitions=(0, 1, 2))
    target = (run if milliseconds % 2 else formatted)(tmp_path / "new")
    before = tree(target)
    is_done = is_done_when_killed(milliseconds / 1e3, _PREPARE, _WORK, source, target)
    is_marked = (target / ADOPTION).exists()
    assert not (is_done and is_marked)
    is_adopted = not is_marked and fields_of_any(target, "TopicRecord") != []
    if is_marked:
        assert not pylog.doctor(target).verdict.would_start
        with pytest.raises(LogDirectoryError, match="interrupted"):
            pylog.adopt(source, into=target)
        is_adopted = pylog.jobs.end_adoption([target], undo=milliseconds % 4 > 1)
    (target / ".lock").unlink(missing_ok=True)
    if not is_adopted:
        assert tree(target) == before
        pylog.adopt(source, into=target)
    assert pylog.scan(target, topics=["t"]).count() == 30
    assert len(fields_of(target, "PartitionRecord")) == 3
    assert pylog.doctor(target).verdict.would_start


@pytest.mark.parametrize("undo", [False, True])
def test_a_crash_at_any_step_is_ended_or_undone_also_when_that_crashes(
    tmp_path: Path, how_many: HowMany, *, undo: bool
) -> None:
    outcomes = set()
    for step in itertools.count(0, how_many(3, 1)):
        source, target = old(tmp_path / f"{step}-old"), formatted(tmp_path / f"{step}-new")
        before = left_in(target)
        has_crashed = crashed_at(step, partial(pylog.adopt, source, into=target))
        if (target / ADOPTION).exists():
            crashed_at(step % 5, partial(pylog.jobs.end_adoption, [target], undo=undo))
        is_marked = (target / ADOPTION).exists()
        is_ended = pylog.jobs.end_adoption([target], undo=undo) if is_marked else None
        is_as_before = left_in(target) == before
        assert is_ended in (None, not is_as_before), step
        assert is_as_before or pylog.scan(target, topics=["t"]).count() == 10, step
        outcomes.add(is_as_before)
        if not has_crashed:
            break
    assert outcomes == {True, False}


def two_of_each(tmp_path: Path) -> tuple[list[Path], list[Path]]:
    """Write two old disks, and two nodes that take their topics over."""
    sources = [old(tmp_path / "a", partitions=(0,)), old(tmp_path / "b", partitions=(1, 2))]
    properties(sources[1], 2, OLD_CLUSTER, DIRECTORY_ID)
    return sources, [formatted(tmp_path / "7", 7), formatted(tmp_path / "8", 8)]


@pytest.mark.parametrize("undo", [False, True])
def test_a_crash_at_any_step_in_several_log_directories_leaves_none_behind(
    tmp_path: Path, how_many: HowMany, *, undo: bool
) -> None:
    """The second call crashes, too, and the third one does not want what the second one did."""
    outcomes = set()
    for step in itertools.count(0, how_many(12, 2)):
        sources, targets = two_of_each(tmp_path / f"{step}")
        before = [left_in(each) for each in targets]
        has_crashed = crashed_at(step, partial(pylog.adopt, *sources, into=targets))
        if any((each / ADOPTION).exists() for each in targets):
            crashed_at(step % 50, partial(pylog.jobs.end_adoption, targets, undo=undo))
        is_ended = None
        if any((each / ADOPTION).exists() for each in targets):
            try:
                is_ended = pylog.jobs.end_adoption(targets, undo=not undo)
            except LogDirectoryError:  # one log directory has all of it, which the message says
                is_ended = pylog.jobs.end_adoption(targets)
        is_as_before = [left_in(each) for each in targets] == before
        assert is_ended in (None, not is_as_before), step
        if not is_as_before:
            counts = [pylog.scan(each, topics=["t"]).count() for each in targets]
            assert counts == [10, 20], step
        outcomes.add(is_as_before)
        if not has_crashed:
            break
    assert outcomes == {True, False}


def fields_of_any(directory: Path, name: str) -> list[dict[str, Any]]:
    return fields_of(directory, name) if (directory / METADATA).exists() else []


class StoppedError(Exception):
    pass


def stop(*_: object) -> None:
    raise StoppedError


@pytest.mark.parametrize("step", ["_write", "_remove_marks"])
def test_a_controller_that_runs_meanwhile_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    source, target = old(tmp_path / "old"), run(tmp_path / "new")
    with monkeypatch.context() as patch:
        patch.setattr(f"pylog.recovery.adoption_steps.Adoption.{step}", stop)
        with pytest.raises(StoppedError):
            pylog.adopt(source, into=target)
    log = segment_path(target / METADATA, 0)
    end = open_directory(target / METADATA)[("__cluster_metadata", 0)].log_end_offset
    late = data_batch(end, [topic_record("late", bytes(15) + b"\x0c")]).data
    log.write_bytes(log.read_bytes() + late)
    before = tree(target)
    is_known = step == "_remove_marks"
    if is_known:
        with pytest.raises(LogDirectoryError, match="knows the topics"):
            pylog.jobs.end_adoption([target], undo=True)
        (target / ".lock").unlink(missing_ok=True)
        assert tree(target) == before
    assert pylog.jobs.end_adoption([target])
    names = [each["name"] for each in fields_of(target, "TopicRecord")]
    assert names == (["t", "late"] if is_known else ["late", "t"])
    assert pylog.scan(target, topics=["t"]).count() == 10


def test_what_a_controller_has_added_stays_when_an_adoption_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = old(tmp_path / "old"), run(tmp_path / "new")
    with monkeypatch.context() as patch:
        patch.setattr("pylog.recovery.adoption_steps.Adoption._write", stop)
        with pytest.raises(StoppedError):
            pylog.adopt(source, into=target)
    log = segment_path(target / METADATA, 0)
    log.write_bytes(log.read_bytes() + data_batch(3, [topic_record("late")]).data)
    pylog.jobs.end_adoption([target], undo=True)
    assert [each["name"] for each in fields_of(target, "TopicRecord")] == ["late"]
    assert not list(target.glob("t-*"))
    with pytest.raises(LogDirectoryError, match="no call was interrupted"):
        pylog.jobs.end_adoption([target])


@pytest.mark.parametrize("written", ["recovery-point-offset-checkpoint", f"{METADATA}/0"])
def test_a_file_that_was_being_written_goes_when_an_adoption_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    source, target = old(tmp_path / "old"), formatted(tmp_path / "new")
    before = tree(target)
    replace = DurableIO.replace

    def stop_at_some(self: DurableIO, here: str, there: str) -> None:
        if here.startswith(str(target / written)):
            raise StoppedError
        replace(self, here, there)

    with monkeypatch.context() as patch:
        patch.setattr(DurableIO, "replace", stop_at_some)
        with pytest.raises(StoppedError):
            pylog.adopt(source, into=target)
    [left] = [each for each in tree(target) if each.startswith(written)]
    assert left.endswith(".tmp")
    pylog.jobs.end_adoption([target], undo=True)
    (target / ".lock").unlink(missing_ok=True)
    assert tree(target) == before


@pytest.mark.parametrize("makes_snapshot", [False, True])
def test_what_was_all_but_done_can_be_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, makes_snapshot: bool
) -> None:
    source, target = old(tmp_path / "old"), formatted(tmp_path / "new")
    if makes_snapshot:
        (target / METADATA).mkdir()
        write_snapshot(target / METADATA, 0, LEVEL)
    before = [*tree(target).items(), *sorted(target.rglob("*"))]

    monkeypatch.setattr("pylog.recovery.adoption_steps.Adoption._remove_marks", stop)
    with pytest.raises(StoppedError):
        pylog.adopt(source, into=target)
    monkeypatch.undo()
    assert fields_of(target, "TopicRecord") != []
    pylog.jobs.end_adoption([target], undo=True)
    assert [*tree(target).items(), *sorted(target.rglob("*"))] == before


def stop_before_the_last_mark(patch: pytest.MonkeyPatch, first: Path) -> None:
    def remove_others(io: DurableIO, log_directory: str) -> None:
        if log_directory == str(first):
            raise StoppedError
        remove_mark(io, log_directory)

    patch.setattr("pylog.recovery.adoption_steps.remove_mark", remove_others)


def test_what_one_log_directory_has_already_is_ended_and_not_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources, targets = two_of_each(tmp_path)
    with monkeypatch.context() as patch:
        stop_before_the_last_mark(patch, targets[0])
        with pytest.raises(StoppedError):
            pylog.adopt(*sources, into=targets)
    before = [left_in(each) for each in targets]
    with pytest.raises(LogDirectoryError, match=r"all is in its place here: .*--resume"):
        pylog.jobs.end_adoption(targets, undo=True)
    assert [left_in(each) for each in targets] == before
    assert pylog.jobs.end_adoption(targets)
    assert [pylog.scan(each, topics=["t"]).count() for each in targets] == [10, 20]


def test_what_was_being_taken_back_is_not_ended_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources, targets = two_of_each(tmp_path)
    before = [left_in(each) for each in targets]
    with monkeypatch.context() as patch:
        patch.setattr("pylog.recovery.adoption_steps.Adoption._remove_marks", stop)
        with pytest.raises(StoppedError):
            pylog.adopt(*sources, into=targets)
    with monkeypatch.context() as patch:
        stop_before_the_last_mark(patch, targets[0])
        with pytest.raises(StoppedError):
            pylog.jobs.end_adoption(targets, undo=True)
    assert not pylog.jobs.end_adoption(targets)
    assert [left_in(each) for each in targets] == before


def test_one_log_directory_tells_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources, (one, two) = two_of_each(tmp_path)
    before = [*tree(one).items(), *tree(two).items()]

    monkeypatch.chdir(tmp_path)
    for undo in (True, False):
        with monkeypatch.context() as patch:
            patch.setattr("pylog.recovery.adoption_steps.Adoption._write", stop)
            with pytest.raises(StoppedError):
                pylog.adopt(*sources, into=["7", "8"])
        with monkeypatch.context() as patch:
            patch.chdir("/")
            assert pylog.jobs.end_adoption([two], undo=undo) is not undo
        assert not list(tmp_path.glob(f"*/{ADOPTION}"))
        assert ([*tree(one).items(), *tree(two).items()] == before) is undo
    assert [pylog.scan(each, topics=["t"]).count() for each in (one, two)] == [10, 20]
