"""A crash after every single thing that a job does to the disk: whole or not at all, and once."""

from __future__ import annotations

import shutil
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import pytest

import pylog
from pylog.errors import LogStorageError
from pylog.staged_commit import roll_forward
from pylog.writing import stage_files
from tests.crash.job_script import (
    after,
    append_as_a_broker,
    before,
    context_of,
    job_in,
    leftovers,
    prepare,
    run_again,
    stage,
    visible,
)
from tests.crash.test_crash_points import LOSSES, Loss, fingerprint_of
from tests.support.crash_replay import Kind, Operation, replay
from tests.support.recording_io import ForgetfulIO, RecordingIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.conftest import Counted, SomeOf


class Recording(NamedTuple):
    """All operations; how many were done when the job began, and when it had been committed."""

    operations: list[Operation]
    begun: int
    committed: int


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return _recorded(tmp_path_factory.mktemp("recorded"))


@pytest.fixture(scope="module")
def side_by_side(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Return what is recorded where threads sync the files of a task, and append partitions."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (stage_files, roll_forward):
            patch.setattr(module, "_LEAST_BYTES_FOR_THREADS", 0)
        return _recorded(tmp_path_factory.mktemp("side-by-side"))


def _recorded(root: Path) -> Recording:
    io = RecordingIO(root)
    directory = root / "logs"
    prepare(directory, io)
    begun = len(io.operations)
    job = job_in(directory)
    summary = job.commit(stage(job, io), context=context_of(io))
    assert visible(directory) == after()
    assert summary.records == sum(map(len, after().values())) - sum(map(len, before().values()))
    kinds = {each.target.rpartition(".")[2] for each in io.operations if each.kind is Kind.REPLACE}
    assert "log" in kinds  # some staged files have become segments, and others not:
    assert 0 < sum(each.becomes_segment for each in _announced(io.operations)) < 8
    return Recording(io.operations, begun, len(io.operations))


class _Announced(NamedTuple):
    becomes_segment: bool


def _announced(operations: list[Operation]) -> Iterator[_Announced]:
    for each in operations:
        if each.kind is Kind.WRITE and each.path.endswith(".pylog-manifest.tmp"):
            text = each.data.decode()
            yield from [_Announced(becomes_segment=True)] * text.count('"becomes_segment": true')


def crashes(
    recording: Recording, loss: Loss, root: Path, some_of: SomeOf
) -> Iterator[tuple[int, str]]:
    """Make ``root`` what each crash leaves, once each; yield how far the job had come."""
    known = set()
    for count in some_of(range(recording.begun, len(recording.operations) + 1), one_in=13):
        operations = recording.operations[:count]
        if loss.is_torn:
            if operations[-1].kind is not Kind.WRITE:
                continue
            operations = [*operations[:-1], operations[-1].torn(len(operations[-1].data) // 2)]
        root.mkdir()
        replay(
            operations,
            root,
            lose_unsynced=loss.lose_unsynced,
            names=loss.names,
            keep_lengths=loss.keep_lengths,
        )
        fingerprint = fingerprint_of(root)
        if fingerprint not in known:
            known.add(fingerprint)
            yield count, f"crash after {count}: {[str(each) for each in operations[-3:]]}"
        shutil.rmtree(root)


def check_all(
    recording: Recording,
    loss: Loss,
    root: Path,
    check: Callable[[Path, int, str], None],
    some_of: SomeOf,
    counted: Counted,
) -> None:
    failures, points = [], 0
    for count, where in crashes(recording, loss, root, some_of):
        points += 1
        try:
            check(root / "logs", count, where)
        except (AssertionError, LogStorageError, ValueError) as error:
            failures.append(f"{where}: {type(error).__name__} {error}")
    assert not failures, f"{len(failures)} of {points}; the first:\n" + "\n".join(failures[:3])
    counted("crash points of a commit", {"different directories": points})


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES.values(), ids=list(LOSSES))
@pytest.mark.thorough(one_in=3)
def test_a_job_is_there_as_a_whole_or_not_at_all_and_once_after_it_ran_again(
    recording: Recording, loss: Loss, tmp_path: Path, some_of: SomeOf, counted: Counted
) -> None:
    check_whole_and_once(recording, loss, tmp_path / "crashed", some_of, counted)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["process death in a write", "unsynced content and names lost"])
def test_so_is_a_job_whose_partitions_were_appended_side_by_side(
    side_by_side: Recording, loss: str, tmp_path: Path, some_of: SomeOf, counted: Counted
) -> None:
    check_whole_and_once(side_by_side, LOSSES[loss], tmp_path / "crashed", some_of, counted)


def check_whole_and_once(
    recording: Recording, loss: Loss, root: Path, some_of: SomeOf, counted: Counted
) -> None:
    def check(directory: Path, count: int, where: str) -> None:
        seen = visible(directory)
        assert seen in (before(), after()), where
        if count >= recording.committed:
            assert seen == after(), where
        summary = run_again(directory)
        if seen == after():
            assert summary.already_committed, where
        assert visible(directory) == after(), where
        assert not leftovers(directory), where
        assert job_in(directory).is_committed(), where

    check_all(recording, loss, root, check, some_of, counted)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["process death", "process death in a write"])
def test_the_next_opener_completes_what_was_announced(
    recording: Recording, loss: str, tmp_path: Path, some_of: SomeOf, counted: Counted
) -> None:
    def check(directory: Path, count: int, where: str) -> None:
        is_announced = (directory / ".pylog-manifest").exists()
        later = context_of(ForgetfulIO())
        pylog.write_topic(directory, "other", [(None, "later")], context=later)
        content = visible(directory)
        assert content.pop("other-0") == ["later"], where
        if is_announced:
            assert content == after(), where
        assert content in (before(), after()), where
        findings = pylog.read_table(directory, "findings").to_pylist()
        assert not [each for each in findings if each["severity"] != "info"], where

    check_all(recording, LOSSES[loss], tmp_path / "crashed", check, some_of, counted)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["process death", "unsynced content and names lost"])
def test_a_broker_that_comes_in_between_neither_loses_nor_doubles_anything(
    recording: Recording, loss: str, tmp_path: Path, some_of: SomeOf, counted: Counted
) -> None:
    def check(directory: Path, count: int, where: str) -> None:
        append_as_a_broker(directory)
        run_again(directory)
        content = visible(directory)
        for partition, values in after().items():
            found = content.pop(partition)
            broker = [each for each in found if each.startswith("broker ")]
            own = [each for each in found if not each.startswith("broker ")]
            assert len(broker) <= 1, where
            assert own == values, f"{where}: {partition}: {Counter(own) - Counter(values)}"
        assert not content, where
        assert not leftovers(directory), where

    check_all(recording, LOSSES[loss], tmp_path / "crashed", check, some_of, counted)
