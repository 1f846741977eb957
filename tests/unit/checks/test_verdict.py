"""What findings of some partitions mean for others: `pylog.checks.verdict`."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.log_files import segment_path, write_topic_id
from tests.support.metadata_log import TOPIC_ID_TEXT
from tests.unit.checks.two_disks import disks_in, node_with_two_disks

if TYPE_CHECKING:
    from collections.abc import Iterator

OTHER_ID = TOPIC_ID_TEXT[::-1]
STRANGER = "4000000"


@pytest.fixture
def disks(tmp_path: Path) -> list[Path]:
    return node_with_two_disks(tmp_path)


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
    write_topic_id(disks[1] / "orders-2", OTHER_ID)
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
