"""Faults put into copies of golden directories: `pylog.doctor` tells each, with code and place.

What brokers left sound has nothing above ``info``; that every fault is found there, in whichever
partition and at whichever byte, is what the table of `tests.support.faults` is for.
"""

from __future__ import annotations

import shutil
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.golden.test_golden_findings import _HARMED, LIVE
from tests.support.faults import FAULTS, Expected, Fault
from tests.support.faults.logs import SoundPartition
from tests.support.golden import golden_cases

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.results import DoctorReport
    from tests.conftest import Counted
    from tests.support.golden import GoldenPartition, GoldenRoot

SOUND = [each for each in LIVE if not each.split("/", 1)[1].startswith(_HARMED)]
SEEDS = 4
MORE_SEEDS = 40
REMOTE_STORE = "remote"
"""What the case of a tiered topic has beside it, and no broker has in a log directory."""
MOST_DRAWS = 200
"""How many partitions are drawn until one has what a fault needs."""


def copy_of(partition: GoldenPartition, directory: Path) -> SoundPartition:
    """Return a writable copy of a partition, with the files of its log directory."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    for path in partition.log_directory.iterdir():
        if path.is_file() and "." not in path.name.strip("."):
            shutil.copyfile(path, directory / path.name)
    shutil.copytree(partition.directory, directory / partition.name, copy_function=shutil.copyfile)
    (directory / partition.name).chmod(0o700)  # the archive's is read-only
    return SoundPartition(directory / partition.name)


def has_finding_of(report: DoctorReport, fault: Expected) -> bool:
    return any(
        each.code == fault.code
        and each.path == str(fault.path)
        and (
            fault.position is None
            or (
                each.position is not None
                and each.position <= fault.position
                and (each.end_position is None or fault.position < each.end_position)
            )
        )
        for each in report.findings
    )


def inject(fault: Fault, golden_root: GoldenRoot, directory: Path, random: Random) -> Expected:
    """Put a fault into a copy of the first partition that has what it needs."""
    for _ in range(MOST_DRAWS):
        copy = copy_of(golden_root.partition(random.choice(SOUND)), directory)
        expected = fault.put_into(copy, random)
        if expected is not None:
            return expected
    message = f"no partition was found that {fault} can be done to"
    raise AssertionError(message)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
@pytest.mark.thorough(one_in=3)
def test_every_fault_is_found(golden_root: GoldenRoot, tmp_path: Path, fault: Fault) -> None:
    for seed in range(SEEDS):
        random = Random(f"{fault} {seed}")
        expected = inject(fault, golden_root, tmp_path / "logs", random)
        report = pylog.doctor(tmp_path / "logs", threads=1)
        assert has_finding_of(report, expected), (seed, expected, list(report.findings))


@pytest.mark.slow
@pytest.mark.thorough
def test_every_fault_is_found_in_many_places(
    golden_root: GoldenRoot, tmp_path: Path, counted: Counted
) -> None:
    outcomes: Counter[str] = Counter()
    for fault in FAULTS:
        for seed in range(SEEDS, MORE_SEEDS):
            random = Random(f"{fault} {seed}")
            expected = inject(fault, golden_root, tmp_path / "logs", random)
            report = pylog.doctor(tmp_path / "logs", threads=1)
            assert has_finding_of(report, expected), (fault, seed, expected, list(report.findings))
            outcomes[fault.code] += 1
    counted("faults found", outcomes)


def spoil(path: Path, random: Random) -> None:
    """Cut a file, or put random bytes, zeros or ones somewhere into it."""
    data = bytearray(path.read_bytes())
    at = random.randrange(len(data) + 1)
    length = random.choice([1, 8, 100, 5000])
    match random.randrange(4):
        case 0:
            del data[at:]
        case 1:
            data[at : at + length] = random.randbytes(length)
        case 2:
            data[at : at + length] = bytes(length)
        case _:
            data[at : at + length] = b"\xff" * length
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("seed", range(12))
def test_whatever_files_hold_there_is_a_report_and_a_copy(
    golden_root: GoldenRoot, tmp_path: Path, seed: int
) -> None:
    random = Random(f"spoilt {seed}")
    copy = copy_of(golden_root.partition(random.choice(LIVE)), tmp_path / "logs")
    files = sorted(path for path in copy.directory.parent.rglob("*") if path.is_file())
    for path in random.choices(files, k=random.randrange(1, 6)):
        spoil(path, random)
    pylog.doctor(tmp_path / "logs", threads=1)
    summary = pylog.repair_copy(tmp_path / "logs", tmp_path / "copy", threads=1)
    wrong = {
        each.code for each in summary.copy.findings if each.severity is pylog.results.Severity.ERROR
    }
    assert wrong <= {"missing_segment", "filled_empty_batch"}


@pytest.mark.parametrize(
    "case_id",
    sorted(set(golden_cases()) - {each.split(":")[0] for each in set(LIVE) - set(SOUND)}),
)
def test_nothing_is_wrong_with_a_directory_that_a_broker_left_sound(
    golden_root: GoldenRoot, case_id: str
) -> None:
    partitions = [each for each in LIVE if each.startswith(f"{case_id}:")]
    states = {golden_root.partition(each).log_directory for each in partitions}
    for state in sorted(states):
        found = [
            each
            for each in pylog.doctor(state).findings
            if each.severity is not pylog.results.Severity.INFO
            and each.path != str(state / REMOTE_STORE)
            and each.code != "absent_partition"  # an archive has only some of a broker's
        ]
        assert found == []
