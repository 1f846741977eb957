"""Whose offsets a finding is about: those of one partition, or of all that a disk holds."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.batches import COMMIT, batch_v2, crc32c, marker, plain_records
from tests.support.log_files import segment_path, write_partition
from tests.unit.checks.two_disks import PLACES, node_with_two_disks

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def disks(tmp_path: Path) -> list[Path]:
    return node_with_two_disks(tmp_path)


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
