"""Two replicas side by side: what is the same without decoding, and what records tell."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pylog.comparison.replica_diff import diff_replicas
from pylog.comparison.replica_log import ReplicaLog
from pylog.errors import LogDirectoryError
from pylog.reading.discovery import discover_partitions
from tests.support.batches import Stored, batch_v2, plain_records
from tests.support.damage import with_flip
from tests.support.log_files import segment_path, write_partition
from tests.support.replica_histories import write_epochs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pylog.results import PartitionDiff
    from tests.support.batches import Built

A, B, C = (plain_records(at, 5) for at in (0, 5, 10))
OTHER = [each._replace(value=b"another") for each in B]
SAME = [batch_v2(each) for each in (A, B, C)]


def compared(
    directory: Path,
    one: Sequence[Built],
    other: Sequence[Built],
    epochs: Sequence[list[tuple[int, int]]] = ((), ()),  # type: ignore[assignment]
    *,
    verifies: bool = True,
    end: int | None = None,
) -> PartitionDiff:
    replicas = []
    for name, batches, entries in zip("ab", (one, other), epochs, strict=True):
        path = write_partition(directory / name, {0: batches})
        write_epochs(path, list(entries))
        [found] = discover_partitions(path)
        replicas.append(ReplicaLog(found))
    return diff_replicas(*replicas, verifies=verifies, end_offset=end)


def shown(found: PartitionDiff) -> list[tuple[str, int, int, str]]:
    return [(str(each.kind), *each[1:3], each.detail) for each in found.differences]


def changed(batch: Sequence[Stored], **fields: object) -> list[Stored]:
    return [each._replace(**fields) for each in batch]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other", "records", "expected"),
    [
        (SAME, SAME, 15, []),
        ([], [], 0, []),
        (SAME, SAME[:2], 10, [("only-left", 10, 15, "epoch 0")]),
        (SAME[1:], SAME, 10, [("only-right", 0, 5, "epoch 0")]),
        (SAME[::2], SAME, 10, [("only-right", 5, 10, "epoch 0")]),
        (SAME, [SAME[0], batch_v2(OTHER), SAME[2]], 10, [("record", 5, 10, "value")]),
        (
            SAME,
            [SAME[0], batch_v2(changed(B, key=b"k", timestamp=3)), SAME[2]],
            10,
            [("record", 5, 10, "timestamp, key")],
        ),
        (
            SAME,
            [SAME[0], batch_v2(changed(B, headers=(("h", b"1"),))), SAME[2]],
            10,
            [("record", 5, 10, "headers")],
        ),
        (SAME, [SAME[0], batch_v2(B, codec="gzip"), SAME[2]], 10, [("batch", 5, 10, "")]),
        (SAME, [batch_v2([*A, *B]), SAME[2]], 5, [("batch", 0, 10, "")]),
        (
            SAME,
            [SAME[0], batch_v2(B, leader_epoch=2), SAME[2]],
            10,
            [("epoch", 5, 10, "epoch 0 and 2")],
        ),
        # Of records that differ in a batch, those that are the same are not told of.
        (
            SAME,
            [SAME[0], batch_v2([*B[:2], *OTHER[2:3], *B[3:]]), SAME[2]],
            10,
            [("record", 7, 8, "value")],
        ),
        # What a cleaner has taken out.
        (
            SAME,
            [SAME[0], batch_v2([B[0], B[4]]), SAME[2]],
            10,
            [("only-left", 6, 9, "")],
        ),
        (
            [SAME[0], batch_v2([B[0], B[4]]), SAME[2]],
            SAME,
            10,
            [("only-right", 6, 9, "")],
        ),
    ],
)
def test_each_kind_of_difference(
    one: list[Built],
    other: list[Built],
    records: int,
    expected: list[tuple[str, int, int, str]],
    tmp_path: Path,
) -> None:
    found = compared(tmp_path, one, other)
    assert (found.mode, shown(found)) == ("replicas", expected)
    assert found.records == records
    assert sum(found.counts.values()) == sum(end - start for _, start, end, _ in expected)


@pytest.mark.parametrize(
    ("end", "expected"), [(None, [(10, 15)]), (15, [(10, 15)]), (11, [(10, 15)]), (10, [])]
)
def test_nothing_counts_from_an_offset_on(
    end: int | None, expected: list[tuple[int, int]], tmp_path: Path
) -> None:
    found = compared(tmp_path, SAME, SAME[:2], end=end)
    assert [each[1:3] for each in found.differences] == expected


def test_damage_shows_by_checksums_alone(tmp_path: Path) -> None:
    flipped = [SAME[0], with_flip(SAME[1], 80), SAME[2]]
    seen = compared(tmp_path / "1", SAME, flipped)
    [damaged] = seen.differences
    assert (damaged.kind, *damaged[1:4]) == ("damaged-right", 5, 10, 5)
    assert f"at byte {len(SAME[0].data)}: " in damaged.detail
    assert compared(tmp_path / "2", SAME, flipped, verifies=False).is_alike
    single = batch_v2(plain_records(0, 1))
    found = compared(tmp_path / "one", [single], [with_flip(single, 70)])
    assert [each[:4] for each in found.differences] == [("damaged-right", 0, 1, 1)]
    # A size that makes no sense is seen all the same, and then checksums are looked at.
    torn = [SAME[0], with_flip(SAME[1], 8), SAME[2]]
    found = compared(tmp_path / "3", SAME, torn, verifies=False)
    assert [each.kind for each in found.differences] == ["damaged-right"]


@pytest.mark.parametrize("damaged", [0, 1])
def test_damage_hides_only_what_the_other_one_has_there(damaged: int, tmp_path: Path) -> None:
    """The other one has two records of the five offsets, and one batch that is nowhere else."""
    hurt = [SAME[0], with_flip(SAME[1], 80)]
    whole = [SAME[0], batch_v2([B[0], B[4]]), SAME[2]]
    pair = (hurt, whole) if damaged == 0 else (whole, hurt)
    found = compared(tmp_path, *pair)
    sides = ("left", "right")
    torn = [hurt[0], batch_v2(B), SAME[2], batch_v2(plain_records(15, 5))]
    assert found.counts[f"damaged-{sides[damaged]}"] >= 2
    other = [with_flip(SAME[0], 80), *SAME[1:]]
    pair = (other, torn) if damaged == 0 else (torn, other)
    found = compared(tmp_path / "2", *pair)
    assert found.counts == {
        f"damaged-{sides[damaged]}": 5,
        f"only-{sides[1 - damaged]}": 5,
    }


def test_leader_epochs_tell_which_one_is_right(tmp_path: Path) -> None:
    new = [*SAME[:1], batch_v2(OTHER, leader_epoch=1)]
    epochs = ([(0, 0)], [(0, 0), (1, 5)])
    [note] = compared(tmp_path / "1", SAME, new, epochs).notes
    assert note.startswith("by leader epochs, ")
    assert "b/orders-0 is right, where epoch 1 is the last one: offsets 5 to 14" in note
    [note] = compared(tmp_path / "2", SAME, [SAME[0], batch_v2(OTHER)]).notes
    assert note.startswith("epochs do not tell which one is right: ")


def test_a_log_that_cannot_be_listed_is_an_error(tmp_path: Path) -> None:
    path = write_partition(tmp_path / "a", {0: SAME})
    [found] = discover_partitions(path)
    segment_path(path, 0).unlink()
    path.rename(tmp_path / "gone")
    gone = ReplicaLog(found)
    with pytest.raises(LogDirectoryError):
        diff_replicas(gone, gone, verifies=True)


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize(
    ("change", "end", "kinds"),
    [
        (lambda batch: with_flip(batch, 80), None, ["damaged"]),  # a record
        (lambda batch: with_flip(batch, 11, 4), None, ["damaged"]),  # the size
        (lambda batch: with_flip(batch, 80), 11, ["damaged"]),
        (lambda batch: with_flip(batch, 80), 10, []),  # beyond what is compared
        (lambda batch: replace(batch, data=batch.data[:-5]), None, []),  # torn
        (lambda batch: replace(batch, data=bytes(99)), None, []),  # preallocated
    ],
)
def test_damage_at_the_end_counts_where_the_other_one_ends_before_it(
    tmp_path: Path,
    side: int,
    change: Callable[[Built], Built],
    end: int | None,
    kinds: list[str],
) -> None:
    logs = [[*SAME[:2], change(SAME[2])], SAME[:2]]
    one, other = logs[side], logs[1 - side]
    found = compared(tmp_path, one, other, end=end)
    assert [str(each.kind) for each in found.differences] == [
        f"{each}-{('left', 'right')[side]}" for each in kinds
    ]
    assert [each.start_offset for each in found.differences] == [10 for _ in kinds]
    assert found.records == 10
