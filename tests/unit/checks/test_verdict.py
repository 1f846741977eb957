"""What findings of some partitions mean for others: `pylog.checks.verdict`."""

from __future__ import annotations

import base64
import shutil
import struct
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import COMMIT, batch_v2, crc32c, marker, plain_records
from tests.support.log_files import segment_path, write_partition
from tests.support.metadata_log import (
    TOPIC_ID_TEXT,
    partition_record,
    register_broker_record,
    topic_record,
    write_metadata_log,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

IDS = tuple(bytes(15) + bytes([number]) for number in (200, 201))
OTHER_ID = TOPIC_ID_TEXT[::-1]
STRANGER = "4000000"
PLACES = (0, 1, 1)
"""The disk of each partition."""


@pytest.fixture
def disks(tmp_path: Path) -> list[Path]:
    """Give the two disks of a node: the metadata and orders-0, orders-1 and orders-2."""
    return disks_in(tmp_path)


def disks_in(directory: Path) -> list[Path]:
    found = [directory / "d1", directory / "d2"]
    for disk, directory_id in zip(found, IDS, strict=True):
        disk.mkdir()
        text = base64.urlsafe_b64encode(directory_id).decode().rstrip("=")
        properties = f"version=1\nnode.id=1\ncluster.id=c\ndirectory.id={text}\n"
        (disk / "meta.properties").write_text(properties)
        (disk / ".kafka_cleanshutdown").write_bytes(b"")
        (disk / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    for number, place in enumerate(PLACES):
        segments = {base: [batch_v2(plain_records(base, 3))] for base in (0, 3, 6)}
        partition = write_partition(found[place], segments, name=f"orders-{number}")
        (partition / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID_TEXT}")
    records = [
        register_broker_record(1, IDS),
        topic_record("orders"),
        *(partition_record(number, 1, (1,), (IDS[at],)) for number, at in enumerate(PLACES)),
    ]
    write_metadata_log(found[0], records, voters=(1,))
    return found


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize(
    ("number", "affected"),
    [
        (0, {"__cluster_metadata-0", "orders-0", "orders-1", "orders-2"}),
        (1, {"orders-1", "orders-2"}),
    ],
    ids=["beside the metadata", "on another disk"],
)
def test_a_folder_in_the_place_of_an_index_costs_all_partitions_once_somebody_reads_it(
    disks: list[Path], suffix: str, number: int, affected: set[str]
) -> None:
    index = segment_path(disks[PLACES[number]] / f"orders-{number}", 3, suffix)
    index.unlink()
    index.mkdir()
    verdict = pylog.doctor(*disks).verdict
    assert verdict.would_start
    places = [(each.name, each.from_offset, each.to_offset) for each in verdict.consumers]
    assert (f"orders-{number}", 3, 6) in places
    others = [each for each in verdict.consumers if each.from_offset is None]
    assert {each.name for each in others} == affected
    word = "ends" if number == 0 else "offline"
    assert all(f"{index}: " in each.reason and word in each.reason for each in others)


def test_a_transaction_is_looked_up_in_a_directory_that_may_be_offline_by_then(
    disks: list[Path],
) -> None:
    (disks[1] / "orders-1" / "leader-epoch-checkpoint").write_text("0\n1\n 0 0\n")
    verdict = pylog.doctor(*disks).verdict
    assert verdict.would_start
    assert [each.name for each in verdict.unserved] == ["orders-1", "orders-2"]
    committed = [
        batch_v2(plain_records(9, 3), producer_id=7, producer_epoch=0, is_transactional=True),
        marker(12, COMMIT, producer_id=7),
    ]
    place = write_partition(disks[1], {9: committed}, name="orders-2")
    none_open = bytes(4)
    snapshot = struct.pack(">hI", 1, crc32c(none_open)) + none_open
    (place / f"{9:020d}.snapshot").write_bytes(snapshot)
    verdict = pylog.doctor(*disks).verdict
    assert verdict.would_start is None
    assert [each.name for each in verdict.not_known] == ["orders-2"]


def test_a_folder_in_the_place_of_an_index_that_a_start_builds_again_takes_the_disk_offline(
    disks: list[Path],
) -> None:
    index = segment_path(disks[1] / "orders-1", 6, ".timeindex")
    index.unlink()
    index.mkdir()
    (disks[1] / ".kafka_cleanshutdown").unlink()
    verdict = pylog.doctor(*disks).verdict
    assert verdict.would_start
    assert [each.name for each in verdict.unserved] == ["orders-1", "orders-2"]
    index = segment_path(disks[0] / "orders-0", 6, ".timeindex")
    index.unlink()
    index.mkdir()
    (disks[0] / ".kafka_cleanshutdown").unlink()
    assert pylog.doctor(*disks).verdict.would_start is False


def test_a_partition_is_set_aside_in_a_directory_that_may_be_offline_by_then(
    disks: list[Path],
) -> None:
    for name in ("orders-1", "orders-2"):
        (disks[1] / name / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (disks[1] / "orders-2" / "partition.metadata").write_text(f"version: 0\ntopic_id: {OTHER_ID}")
    verdict = pylog.doctor(*disks).verdict
    assert (verdict.would_start, [each.name for each in verdict.stray_partitions]) == (
        True,
        ["orders-2"],
    )
    (disks[1] / "orders-1" / "leader-epoch-checkpoint").write_text("0\n1\n 0 0\n")
    verdict = pylog.doctor(*disks).verdict
    assert (verdict.would_start, [each.name for each in verdict.not_known]) == (None, ["orders-2"])


def test_a_directory_whose_partitions_wait_elsewhere_may_be_offline(disks: list[Path]) -> None:
    live = disks[1] / "orders-1"
    shutil.copytree(disks[0] / "orders-0", disks[1] / "orders-0")  # assigned to the other disk
    shutil.rmtree(disks[0] / "orders-0")
    (live / "leader-epoch-checkpoint").write_text("0\n1\n 0 0\n")
    verdict = pylog.doctor(*disks).verdict
    assert verdict.would_start is None
    names = {each.name for each in verdict.not_known if each.path.startswith(f"{disks[1]}/")}
    assert names == {"orders-0", "orders-1", "orders-2"}


class TestOfAnotherUser:
    """Everybody may do anything with the disks, but for what a test takes away."""

    @pytest.fixture
    def disks(self) -> Iterator[list[Path]]:
        with tempfile.TemporaryDirectory(prefix="pylog-verdict-") as name:
            Path(name).chmod(0o755)
            disks = disks_in(Path(name))
            for disk in disks:
                (disk / ".lock").write_bytes(b"")
                for path in (disk, *disk.rglob("*")):
                    path.chmod(0o777 if path.is_dir() else 0o666)
            assert pylog.doctor(*disks, as_user=STRANGER).verdict.unserved == []
            yield disks

    @pytest.mark.parametrize(
        ("mode", "starts"), [(0o711, True), (0o700, False)], ids=["may look into", "may not"]
    )
    def test_a_log_directory_that_cannot_be_listed_is_passed_over(
        self, disks: list[Path], mode: int, *, starts: bool
    ) -> None:
        disks[0].chmod(mode)
        verdict = pylog.doctor(*disks, as_user=STRANGER).verdict
        assert verdict.would_start is starts
        names = {each.name for each in verdict.unserved} - {"__cluster_metadata-0"}
        assert names == ({"orders-0"} if starts else set())

    def test_a_log_is_recovered_from_its_start_where_its_recovery_point_is_forbidden(
        self, disks: list[Path]
    ) -> None:
        path = disks[1] / "recovery-point-offset-checkpoint"
        path.write_text("0\n1\norders 1 9\n")
        (disks[1] / ".kafka_cleanshutdown").unlink()
        for mode, names in ((0o666, 1), (0o600, 3)):
            path.chmod(mode)
            [start] = [
                each.start
                for each in pylog.doctor(*disks, as_user=STRANGER).partitions
                if each.topic_partition == ("orders", 1)
            ]
            assert start is not None
            assert len(start.recovered) == names
