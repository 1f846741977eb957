"""Which copy of the metadata goes furthest, and up to where others are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.recovery.metadata_copies import find_copies, metadata_of, seed_of, shared_end
from pylog.writing.node import nodes_of
from tests.support.metadata_log import (
    METADATA,
    config_record,
    feature_record,
    write_snapshot,
)
from tests.unit.recovery.test_cluster_info import voting

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.recovery.metadata_copies import MetadataCopy


def test_the_copy_that_goes_furthest_is_the_seed(tmp_path: Path) -> None:
    short = voting(tmp_path / "1", 1, [feature_record(21)], (1, 2, 3))
    more = [feature_record(21), config_record(4, "", "log.retention.ms", "5")]
    long = voting(tmp_path / "2", 2, more, (1, 2, 3))
    found = pylog.info(short, long)
    assert (found.node_id, found.seed) == (1, str(long / METADATA))
    assert [(each.end_offset, each.is_seed) for each in found.metadata_copies] == [
        (2, False),
        (3, True),
    ]
    assert found.metadata_copies[0].same_up_to == 2
    assert found.broker_configs[0].configs == {"log.retention.ms": "5"}


def test_a_snapshot_beyond_the_end_of_the_log_counts(tmp_path: Path) -> None:
    short = voting(tmp_path / "1", 1, [feature_record(21)], (1, 2, 3))
    snapshot = voting(tmp_path / "2", 2, [], (1, 2, 3))
    write_snapshot(snapshot / METADATA, 70, [feature_record(25)])
    found = pylog.info(short, snapshot)
    assert (found.metadata_version, found.metadata_copies[1].end_offset) == (25, 70)


def test_a_damaged_copy_is_an_error_and_the_other_one_is_read(tmp_path: Path) -> None:
    good = voting(tmp_path / "1", 1, [feature_record(21)], (1, 2, 3))
    bad = voting(tmp_path / "2", 2, [feature_record(21)] * 9, (1, 2, 3))
    log = bad / METADATA / f"{0:020d}.log"
    log.write_bytes(log.read_bytes()[:-1] + b"\xff")
    found = pylog.info(good, bad)
    assert found.errors
    assert found.metadata_version == 21


def copies(tmp_path: Path, *logs: tuple[int, list[tuple[int, int]]]) -> list[MetadataCopy]:
    """Return copies by how many records each has, and its leader epochs."""
    disks = []
    for number, (count, epochs) in enumerate(logs, start=1):
        disk = voting(tmp_path / str(number), number, [feature_record(21)] * count, (1, 2, 3))
        lines = "".join(f"{epoch} {start}\n" for epoch, start in epochs)
        text = f"0\n{len(epochs)}\n{lines}"
        (disk / METADATA / "leader-epoch-checkpoint").write_text(text)
        disks.append(str(disk))
    found, errors = find_copies(nodes_of(disks).values())
    assert errors == []
    return found


@pytest.mark.parametrize(
    ("logs", "seed", "ends"),
    [
        ([(1, [(0, 0)]), (4, [(0, 0)])], 1, [2, 5]),
        ([(4, [(0, 0)]), (4, [(0, 0)])], 0, [5, 5]),  # the first of equals
        ([(4, [(0, 0), (1, 2)]), (4, [(0, 0)])], 0, [5, 2]),  # they part where epoch 1 begins
        ([(4, [(0, 0), (1, 2)]), (4, [(0, 0), (1, 3)])], 0, [5, 2]),
        ([(4, [(0, 0)]), (4, [(1, 0)])], 1, [0, 5]),  # none of its epochs is one of the seed's
        ([(4, [(0, 0)]), (4, [])], 0, [5, 0]),
    ],
)
def test_a_copy_is_the_same_up_to_where_the_epochs_part(
    logs: list[tuple[int, list[tuple[int, int]]]], seed: int, ends: list[int], tmp_path: Path
) -> None:
    found = copies(tmp_path, *logs)
    best = seed_of(found)
    assert best is found[seed]
    assert [shared_end(each, best) for each in found] == ends


def test_a_copy_that_cannot_be_read_is_told_and_the_others_are_given(tmp_path: Path) -> None:
    disks = [voting(tmp_path / str(each), each, [feature_record(21)], (1, 2)) for each in (1, 2)]
    (disks[0] / METADATA / "leader-epoch-checkpoint").write_text("nonsense")
    found, errors = find_copies(nodes_of(map(str, disks)).values())
    assert [each.node.node_id for each in found] == [2]
    assert ["leader-epoch-checkpoint" in str(each) for each in errors] == [True]


@pytest.mark.parametrize(
    ("counts", "committed"),
    [
        ((4,), 0),  # one of three
        ((4, 4), 5),
        ((4, 2), 1),  # the leader's change; the batch after it is on one as a whole
        ((2, 4, 4), 5),
        ((1, 2, 4), 1),
    ],
)
def test_what_most_voters_have_is_agreed_on(
    counts: tuple[int, ...], committed: int, tmp_path: Path
) -> None:
    found = copies(tmp_path, *((count, [(0, 0)]) for count in counts))
    assert metadata_of(seed_of(found), found).committed_end_offset == committed
