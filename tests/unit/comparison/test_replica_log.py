from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from pylog.comparison.replica_log import (
    BASE,
    EPOCH,
    FLAGS,
    IS_CLEANED,
    IS_LEGACY,
    IS_MOVED,
    JUMPS,
    LAST,
    ReplicaLog,
    read_ahead,
)
from pylog.errors import CorruptRecordError
from pylog.files.byte_source import LocalFile
from pylog.reading.discovery import discover_partitions
from tests.support.batches import Stored, batch_v2, message, plain_records
from tests.support.damage import with_base_offset, with_flip
from tests.support.log_files import segment_path, write_partition

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pylog.comparison.replica_log import Rows
    from tests.support.batches import Built


def replica(path: Path) -> ReplicaLog:
    (found,) = discover_partitions(path)
    return ReplicaLog(found)


def rows(log: ReplicaLog, *, skips_damage: bool = True) -> Rows:
    return np.concatenate([*log.rows(skips_damage=skips_damage)], axis=1)


def batches(count: int) -> list[Built]:
    return [batch_v2(plain_records(5 * at, 5), leader_epoch=at // 2) for at in range(count)]


def test_its_batches_come_with_offsets_and_epochs(tmp_path: Path) -> None:
    made = batches(6)
    write_partition(tmp_path, {0: made[:4], 20: made[4:]})
    found = rows(replica(tmp_path))
    assert found[BASE].tolist() == [0, 5, 10, 15, 20, 25]
    assert found[LAST].tolist() == [4, 9, 14, 19, 24, 29]
    assert found[EPOCH].tolist() == [0, 0, 1, 1, 2, 2]
    assert not found[FLAGS].any()


def test_a_damaged_batch_is_left_out_or_an_error_where_headers_show_it(tmp_path: Path) -> None:
    made = batches(4)
    made[1] = with_flip(made[1], 70)
    write_partition(tmp_path, {0: made})
    log = replica(tmp_path)
    assert rows(log)[BASE].tolist() == [0, 10, 15]
    assert [(each.next_offset, each.end_offset) for each in log.damage] == [(5, 10)]
    assert rows(replica(tmp_path), skips_damage=False)[BASE].tolist() == [0, 5, 10, 15]
    data = bytearray(segment_path(tmp_path / "orders-0", 0).read_bytes())
    data[len(made[0].data) + 8] = 0xFF
    segment_path(tmp_path / "orders-0", 0).write_bytes(data)
    with pytest.raises(CorruptRecordError):
        rows(replica(tmp_path), skips_damage=False)


def test_what_is_odd_about_a_batch_is_flagged(tmp_path: Path) -> None:
    made = batches(4)
    cleaned = batch_v2([Stored(22, 1, b"k", b"v")], base_offset=20, last_offset=24)
    wrong = with_base_offset(made[1], 5 + (1 << 30))
    far = batch_v2(plain_records(70, 5))
    write_partition(tmp_path, {0: [made[0], wrong, *made[2:], cleaned, far]})
    found = rows(replica(tmp_path))
    assert found[BASE].tolist() == [0, 5, 10, 15, 20, 70]
    assert found[FLAGS].tolist() == [0, IS_MOVED, 0, 0, IS_CLEANED, JUMPS]
    write_partition(tmp_path, {0: [message(Stored(3, 1, b"k", b"v"), magic=1)]}, name="old-0")
    assert rows(replica(tmp_path / "old-0"))[FLAGS].tolist() == [IS_LEGACY]


def test_side_files_that_cannot_be_read_say_nothing(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: batches(1)})
    for name in ("leader-epoch-checkpoint", "partition.metadata"):
        (tmp_path / "orders-0" / name).write_text("0\nnonsense\n")
    (tmp_path / "replication-offset-checkpoint").write_text("nonsense")
    log = replica(tmp_path)
    assert (log.epochs, log.topic_id, log.high_watermark, log.node_id) == ([], None, None, None)


def large(offset: int, count: int = 2, **options: object) -> Built:
    value = b"v" * 6000
    records = [Stored(at, 1000 + at, b"k", value) for at in range(offset, offset + count)]
    return batch_v2(records, **options)  # type: ignore[arg-type]


LOGS: dict[str, list[Built]] = {
    "plain": [large(at, leader_epoch=at // 10) for at in range(0, 40, 2)],
    "cleaned": [large(0), large(2, delete_horizon=9), large(8), large(30, append_time=5)],
    "old": [message(each, magic=1) for each in plain_records(0, 5)],
    "old ones first": [*(message(each, magic=1) for each in plain_records(0, 5)), large(5)],
    "small": batches(400),
    "small ones last": [*(large(at) for at in range(0, 20, 2)), *batches(400)[4:]],
}


@pytest.mark.parametrize("name", LOGS)
def test_headers_that_are_read_one_by_one_give_the_rows_of_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    made = LOGS[name]
    half = len(made) // 2
    write_partition(tmp_path, {0: made[:half], made[half].base_offset: made[half:]})
    one_by_one = rows(replica(tmp_path), skips_damage=False)
    monkeypatch.setattr(LocalFile, "is_read_by_kernels", False)
    assert one_by_one.tolist() == rows(replica(tmp_path), skips_damage=False).tolist()
    assert one_by_one.shape[1] == len(made)


def test_damage_that_headers_show_is_the_error_of_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [large(at) for at in range(0, 20, 2)]
    made[6] = with_base_offset(made[6], 3)
    write_partition(tmp_path, {0: made})
    with pytest.raises(CorruptRecordError) as caught:
        rows(replica(tmp_path), skips_damage=False)
    monkeypatch.setattr(LocalFile, "is_read_by_kernels", False)
    with pytest.raises(CorruptRecordError) as expected:
        rows(replica(tmp_path), skips_damage=False)
    assert str(caught.value) == str(expected.value)


def test_what_is_read_ahead_comes_in_order_and_an_error_where_it_is() -> None:
    def numbered() -> Iterator[Rows]:
        for at in range(3):
            yield np.full((1, 1), at)
        raise KeyError

    found = []
    ahead = read_ahead(numbered())
    with pytest.raises(KeyError):
        found += [int(each[0, 0]) for each in ahead]
    assert [int(each[0, 0]) for each in read_ahead(iter([np.ones((1, 1), dtype=np.int64)]))] == [1]
    one = read_ahead(numbered())
    assert int(next(one)[0, 0]) == 0
    one.close()  # type: ignore[attr-defined]
