"""A disk that is full, or broken, at every single thing that a job does to it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from pylog.errors import KafkaStorageError
from tests.crash.job_script import (
    after,
    before,
    context_of,
    job_in,
    leftovers,
    prepare,
    run_again,
    stage,
    visible,
)
from tests.crash.test_failing_disk import DISKS, Disk, FastFaultyIO
from tests.support.recording_io import ForgetfulIO

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Counted, SomeOf

SHOWN = ("full", "full in the middle of a write", "one sync fails", "nothing works any more")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("prepared") / "logs"
    prepare(directory, ForgetfulIO())
    return directory


def run(directory: Path, io: FastFaultyIO) -> None:
    job = job_in(directory)
    job.commit(stage(job, io), context=context_of(io))


def count_operations(prepared: Path, disk: Disk, directory: Path) -> int:
    shutil.copytree(prepared, directory)
    io = FastFaultyIO()
    run(directory, io)
    return sum(io.counts[kind] for kind in disk.kinds)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.thorough(one_in=3)
def test_a_failure_is_loud_and_leaves_the_job_whole_or_not_at_all(
    prepared: Path, name: str, tmp_path: Path, some_of: SomeOf, counted: Counted
) -> None:
    disk = DISKS[name]
    failed = completed = 0
    operations = count_operations(prepared, disk, tmp_path / "healthy")
    for at in some_of(range(1, operations + 1), one_in=13):
        directory = tmp_path / "logs"
        shutil.copytree(prepared, directory)
        where = f"operation {at} fails"
        try:
            run(directory, FastFaultyIO(*disk.faults(at)))
        except KafkaStorageError:
            failed += 1
        else:
            completed += 1
            assert visible(directory) == after(), where
        seen = visible(directory)
        assert seen in (before(), after()), where
        summary = run_again(directory)
        if seen == after():
            assert summary.already_committed, where
        assert visible(directory) == after(), where
        assert not leftovers(directory), where
        shutil.rmtree(directory)
    assert failed > completed
    counted(
        "failing disk under a job", {"loud failures": failed, "without consequences": completed}
    )


def test_a_disk_that_fills_while_rows_are_staged_leaves_no_file(
    prepared: Path, tmp_path: Path
) -> None:
    for at in range(1, 12):
        directory = tmp_path / str(at)
        shutil.copytree(prepared, directory)
        job = job_in(directory)
        # Files can be removed on a full disk.
        with pytest.raises(KafkaStorageError, match="No space left on device"):
            stage(job, FastFaultyIO(*DISKS["full"].faults(at)))
        assert not leftovers(directory)
