"""Owners and modes: the verdict is for the broker's user, and not for whoever asks."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

import pylog
from pylog.errors import LogDirectoryError
from tests.support.batches import batch_v2, plain_records
from tests.support.faults.permissions import USER, give
from tests.support.log_files import mark_clean_shutdown, write_partition
from tests.support.metadata_log import (
    TOPIC_ID_TEXT,
    feature_record,
    partition_record,
    topic_record,
    write_metadata_log,
)
from tests.support.other_user import as_user

if TYPE_CHECKING:
    from collections.abc import Iterator

STRANGER = 4_000_000
BATCHES = [batch_v2(plain_records(base, 5)) for base in (0, 5)]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


@pytest.fixture
def logs() -> Iterator[Path]:
    """Give a log directory in a place that anybody can look into."""
    with tempfile.TemporaryDirectory(prefix="pylog-permissions-") as name:
        place = Path(name)
        place.chmod(0o755)
        directory = write_partition(place / "logs", {0: BATCHES[:1], 5: BATCHES[1:]})
        (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
        mark_clean_shutdown(place / "logs")
        (place / "logs" / ".lock").write_bytes(b"")
        yield place / "logs"


def refusals(logs: Path, user: str | int | None = None) -> list[tuple[str, str]]:
    report = pylog.doctor(logs, as_user=user)
    return [(each.code, each.path.removeprefix(f"{logs}/")) for each in report.refusals]


def test_the_owner_of_the_files_is_the_brokers_user(logs: Path) -> None:
    assert refusals(logs) == []
    assert pylog.doctor(logs).verdict.would_start


def test_another_user_may_not_write_there(logs: Path) -> None:
    logs.chmod(0o755)
    assert ("forbidden", ".lock") in refusals(logs, STRANGER)
    finding = pylog.doctor(logs, as_user=str(STRANGER)).refusals[0]
    assert f"user uid {STRANGER} may not read and write to" in finding.message
    assert f"(owner {os.geteuid()}, group {os.getegid()}, mode 0644)" in finding.message
    assert finding.advice.startswith("give the files to the broker's user")


def everybodys(logs: Path) -> Path:
    for path in (logs, *logs.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    return logs


@pytest.mark.parametrize(
    ("name", "mode", "is_refused"),
    [
        ("", 0o777, False),
        ("", 0o755, True),
        ("", 0o733, True),
        ("", 0o766, True),
        (".lock", 0o644, True),
        (".kafka_cleanshutdown", 0o600, False),  # who may write the directory removes it
        ("orders-0", 0o755, True),
        ("orders-0", 0o733, True),
        (f"orders-0/{0:020d}.log", 0o644, True),
        (f"orders-0/{0:020d}.log", 0o600, True),
        (f"orders-0/{5:020d}.log", 0o644, True),
        (f"orders-0/{0:020d}.index", 0o644, True),
        (f"orders-0/{0:020d}.timeindex", 0o644, True),
        ("orders-0/leader-epoch-checkpoint", 0o644, False),  # it is replaced
        ("orders-0/leader-epoch-checkpoint", 0o600, True),
        ("orders-0/notes.txt", 0o600, True),  # a broker asks whether it can read all files
        ("orders-0/notes.txt", 0o644, False),
        ("notes.txt", 0o600, False),
    ],
)
def test_a_mode_is_looked_at_as_a_broker_does(
    logs: Path, name: str, mode: int, *, is_refused: bool
) -> None:
    everybodys(logs)
    path = logs / name
    if not path.exists():
        path.write_bytes(b"")
    path.chmod(mode)
    found = refusals(logs, STRANGER)
    assert bool(found) is is_refused
    assert {code for code, _ in found} <= {"forbidden"}


@pytest.mark.parametrize("state", ["stray", "delete"])
def test_a_directory_that_is_not_live_is_loaded_too(logs: Path, state: str) -> None:
    (logs / "orders-0").rename(logs / f"orders-0.{1:032x}-{state}")
    write_partition(logs, {0: BATCHES}, name="clicks-0")
    everybodys(logs)
    assert refusals(logs, STRANGER) == []
    next(logs.glob(f"*-{state}")).joinpath(f"{0:020d}.log").chmod(0o644)
    assert [code for code, _ in refusals(logs, STRANGER)] == ["forbidden"]


def test_where_the_groups_of_a_user_matter_and_are_not_known_it_is_said(logs: Path) -> None:
    everybodys(logs)
    logs.chmod(0o775)
    [finding] = [each for each in pylog.doctor(logs, as_user=STRANGER).findings if each.effect]
    assert (finding.code, str(finding.effect)) == ("forbidden", "unknown")
    assert f"whether user uid {STRANGER} may" in finding.message
    assert pylog.doctor(logs, as_user=STRANGER).verdict.would_start is None


def test_a_user_that_nobody_knows_is_an_error(logs: Path) -> None:
    with pytest.raises(ValueError, match="is no user of this host"):
        pylog.doctor(logs, as_user="no such user")


@needs_root
class TestAsAnotherUser:
    """What is not readable for whoever asks is not known, and never left out in silence."""

    @pytest.fixture
    def logs(self, logs: Path) -> Path:
        pylog.repair_copy(logs, logs.parent / "first")  # so that all modules are imported
        give(logs, USER)
        return logs

    @staticmethod
    def asked(logs: Path) -> tuple[bool | None, list[tuple[str, str]]]:
        def ask() -> object:
            report = pylog.doctor(logs, threads=1)
            found = [(each.code, each.path) for each in report.findings if each.effect]
            return report.verdict.would_start, found

        report = as_user(USER, ask)
        return cast("tuple[bool | None, list[tuple[str, str]]]", report)

    def test_all_is_said_of_a_directory_of_ones_own(self, logs: Path) -> None:
        assert self.asked(logs) == (True, [])

    @pytest.mark.parametrize(
        "name",
        [
            f"orders-0/{0:020d}.log",
            "orders-0/leader-epoch-checkpoint",
            "recovery-point-offset-checkpoint",
            "orders-0",
        ],
    )
    def test_a_file_that_may_not_be_read_is_named(
        self, logs: Path, name: str, tmp_path: Path
    ) -> None:
        path = logs / name
        if not path.exists():
            path.write_text("0\n0\n")
        os.chown(path, 0, 0)
        path.chmod(0o700)
        started, found = self.asked(logs)
        assert started is False
        assert {code for code, _ in found} == {"forbidden", "unreadable"}
        assert all(each.startswith(str(path)) for _, each in found)

        def copy() -> object:
            try:
                pylog.repair_copy(logs, logs.parent / "copy", threads=1)
            except LogDirectoryError as error:
                return str(error.path)
            return None

        logs.parent.chmod(0o777)
        assert as_user(USER, copy) == str(path)
        assert not (logs.parent / "copy").exists()

    def test_where_the_owner_may_and_the_reader_may_not_it_is_not_known(self, logs: Path) -> None:
        give(logs, STRANGER)
        path = logs / "orders-0" / f"{0:020d}.log"
        path.chmod(0o600)
        assert self.asked(logs) == (None, [("unreadable", str(path))])

    def test_of_roots_files_another_user_does_not_know_who_starts_a_broker(
        self, logs: Path
    ) -> None:
        give(logs, 0)
        assert self.asked(logs) == (None, [("forbidden", str(logs / ".lock"))])


def test_a_file_that_a_broker_only_takes_the_number_of_may_belong_to_another_user(
    logs: Path,
) -> None:
    everybodys(logs)
    (logs / "orders-0" / "+5.log").touch(0o644)
    assert refusals(logs, STRANGER) == []


@pytest.mark.parametrize(
    ("strays", "has_lock", "starts"), [(1, False, False), (1, True, None), (2, True, False)]
)
def test_a_node_ends_that_sets_partitions_aside_on_a_disk_it_may_not_change(
    logs: Path, strays: int, *, has_lock: bool, starts: bool | None
) -> None:
    first = logs.parent / "first"
    values = [feature_record(25), topic_record("orders"), partition_record(0, 1, (1,))]
    write_metadata_log(first, values)
    for number in range(1, strays):
        write_partition(logs, {0: BATCHES}, name=f"orders-{number}")
    (logs / f"orders-{strays}").mkdir()
    for directory in (first, logs):
        meta = "version=1\ncluster.id=TGS49_DL2kqPGPzG1xseBg\nnode.id=1\n"
        (directory / "meta.properties").write_text(meta)
        for partition in directory.glob("orders-*"):
            metadata = f"version: 0\ntopic_id: {TOPIC_ID_TEXT}\n"
            (partition / "partition.metadata").write_text(metadata)
        everybodys(directory)
    (logs / ".kafka_cleanshutdown").unlink()  # or the disk is offline before it is loaded
    if not has_lock:
        (logs / ".lock").unlink()
    logs.chmod(0o555)
    verdict = pylog.doctor(first, logs, as_user=STRANGER).verdict
    assert verdict.would_start is starts
