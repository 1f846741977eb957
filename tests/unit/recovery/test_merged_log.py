"""Which bytes a merged log is made of, and what its side files say."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from pylog.comparison.batch_join import BatchJoin, BatchPlace, BatchStretch
from pylog.comparison.lineage import Taken
from pylog.comparison.replica_log import ReplicaLog
from pylog.files.durable_io import DurableIO
from pylog.model import TopicPartition
from pylog.reading.discovery import discover_partitions
from pylog.recovery import merged_log
from pylog.recovery.merged_log import MergedLog
from pylog.writing.owned_directory import own_log_directory
from tests.support.batches import Built, batch_v2, plain_records
from tests.support.log_files import tree, write_partition

if TYPE_CHECKING:
    from pathlib import Path

PLACE = TopicPartition("orders", 0)


def log(start: int, end: int, epoch: int = 0) -> list[Built]:
    return [batch_v2(plain_records(at, 5), leader_epoch=epoch) for at in range(start, end, 5)]


def replica(path: Path, *segments: list[Built]) -> ReplicaLog:
    write_partition(
        path,
        {each[0].base_offset: each for each in segments},
        with_index=False,
        with_time_index=False,
    )
    [found] = discover_partitions(path)
    return ReplicaLog(found)


def joined(*replicas: ReplicaLog) -> list[BatchStretch]:
    rows = [each.rows(skips_damage=True) for each in replicas]
    return BatchJoin(rows, [each.epochs for each in replicas]).run()


def merged(replicas: list[ReplicaLog], *, root: int | None = 0, rule: str = "leader") -> MergedLog:
    taken = [Taken(each, rule) for each in joined(*replicas)]
    return MergedLog(PLACE, replicas, taken, root, uuid.UUID(int=1))


def written(found: MergedLog, place: Path) -> dict[str, bytes]:
    place.mkdir()
    found.prepare(DurableIO(), str(place))
    with own_log_directory(place, high_watermark="log-end") as manager:
        found.write(manager.get_log(PLACE))
    return tree(place / "orders-0")


def test_segments_are_those_of_the_leader_and_its_bytes(tmp_path: Path) -> None:
    one = replica(tmp_path / "1", log(0, 20), log(20, 30, 2))
    two = replica(tmp_path / "2", [*log(0, 20), *log(20, 30, 2)])
    for root, names in ((0, [0, 20]), (1, [0])):
        found = merged([one, two], root=root)
        files = written(found, tmp_path / f"out{root}")
        assert [name for name in files if name.endswith(".log")] == [
            f"{at:020d}.log" for at in names
        ]
        data = b"".join(files[f"{at:020d}.log"] for at in names)
        assert data == b"".join(each.data for each in [*log(0, 20), *log(20, 30, 2)])
        assert found.size_bytes == len(data)
        assert files["leader-epoch-checkpoint"] == b"0\n2\n0 0\n2 20\n"
        assert b"topic_id: AAAAAAAAAAAAAAAAAAAAAQ" in files["partition.metadata"]
        source = (one, two)[root].path
        assert found.ranges == [(0, 30, source, "leader")]


def test_what_the_leader_lacks_is_of_the_replica_that_was_copied_last(tmp_path: Path) -> None:
    one = replica(tmp_path / "1", log(0, 10))
    two = replica(tmp_path / "2", log(10, 20), log(30, 40))
    three = replica(tmp_path / "3", log(0, 40))
    found = merged([one, two, three])
    expected = [(0, 10, one.path), (10, 20, two.path), (20, 30, three.path), (30, 40, three.path)]
    # At 30 the second one has it, too; what was copied before is gone on with.
    shown: list[tuple[int, int, str]] = []
    for start, end, path in expected:
        if shown and shown[-1][2] == path:
            shown[-1] = (shown[-1][0], end, path)
        else:
            shown.append((start, end, path))
    assert [each[:3] for each in found.ranges] == shown
    files = written(found, tmp_path / "out")
    data = b"".join(data for name, data in files.items() if name.endswith(".log"))
    assert data == b"".join(each.data for each in log(0, 40))


def test_a_segment_ends_for_its_size_or_for_its_offsets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(log(0, 5)[0].data)
    far = 2**31  # offsets that a segment can have
    stretches = [
        BatchStretch(at, at + 5, 0, 1, 5, size, 5, 9, {0: BatchPlace(0, place * size + 1)})
        for place, at in enumerate((0, 5, 10, far - 6, far - 5, far + 1_000))
    ]
    one = replica(tmp_path / "1", log(0, 20))
    taken = [Taken(each, "leader") for each in stretches]
    found = MergedLog(PLACE, [one], taken, 0, None)
    assert [each.base_offset for each in found.segments] == [0, far - 5]
    monkeypatch.setattr(merged_log, "_SEGMENT_BYTES", 2 * size)
    found = MergedLog(PLACE, [one], taken, 0, None)
    assert [each.base_offset for each in found.segments] == [0, 10, far - 5]
    assert [len(each.pieces) for each in found.segments] == [1, 1, 1]  # neighbours in the file


def test_a_batch_with_a_wrong_base_offset_gets_the_right_one(tmp_path: Path) -> None:
    batches = log(0, 15)
    wrong = batches[1].data.replace((5).to_bytes(8, "big"), (1 << 40).to_bytes(8, "big"), 1)
    one = replica(tmp_path / "1", batches)
    path = tmp_path / "1" / "orders-0" / f"{0:020d}.log"
    path.write_bytes(batches[0].data + wrong + batches[2].data)
    files = written(merged([one]), tmp_path / "out")
    assert files[f"{0:020d}.log"] == b"".join(each.data for each in batches)


@pytest.mark.parametrize(
    ("starts", "expected"),
    [((None, None), None), ((0, None), None), ((5, None), 5), ((5, 7), 7), ((None, 7), 7)],
)
def test_the_start_of_the_log_is_written_where_records_below_it_are_left(
    starts: tuple[int | None, ...], expected: int | None, tmp_path: Path
) -> None:
    replicas = [replica(tmp_path / str(at), log(0, 10)) for at in range(2)]
    for each, start in zip(replicas, starts, strict=True):
        each.log_start_offset = start
    found = merged(replicas)
    assert found.log_start_offset == (expected or 0)
    written(found, tmp_path / "out")
    stored = tree(tmp_path / "out").get("log-start-offset-checkpoint")
    assert stored == (b"0\n0\n" if expected is None else b"0\n1\norders 0 %d\n" % expected)


def test_a_log_of_nothing_is_empty(tmp_path: Path) -> None:
    files = written(MergedLog(PLACE, [], [], None, None), tmp_path / "out")
    assert files[f"{0:020d}.log"] == b""
    assert sum(name.endswith(".log") for name in files) == 1


def test_a_log_of_which_all_was_deleted_begins_where_it_would_go_on(tmp_path: Path) -> None:
    one = replica(tmp_path / "1", log(0, 10))
    one.log_start_offset = 30
    files = written(merged([one]), tmp_path / "out")
    assert {name: data for name, data in files.items() if name.endswith(".log")} == {
        f"{30:020d}.log": b""
    }
