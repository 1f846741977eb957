from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import CorruptRecordError
from pylog.files import disk
from pylog.reading.damage import DamageReport
from pylog.reading.segments import FileAccess
from tests.support.batches import batch_v2, joined, plain_records, with_bad_crc
from tests.support.log_files import (
    offset_index_bytes,
    segment_path,
    write_log_start_offsets,
    write_partition,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pylog.reading.log_view import LogView

LOG = {base: [batch_v2(plain_records(base + i, 5)) for i in (0, 5)] for base in (10, 20, 40)}


def view(path: Path) -> LogView:
    (found,) = pylog.open_directory(path)
    return found


def test_segments_are_in_offset_order_with_their_files(tmp_path: Path) -> None:
    found = view(write_partition(tmp_path, LOG))
    assert [segment.base_offset for segment in found.segments] == [10, 20, 40]
    assert all(segment.has_time_index for segment in found.segments)
    assert not any(segment.has_transaction_index for segment in found.segments)
    assert found.size_bytes == sum(len(joined(batches)) for batches in LOG.values())
    assert [found.next_base_offset(index) for index in range(3)] == [20, 40, None]


def test_a_view_shows_what_its_listing_holds(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, LOG)
    size = sum(len(joined(batches)) for batches in LOG.values())
    assert repr(view(directory)) == (
        f"LogView('{directory}', segments=3, size_bytes={size}, local_log_start_offset=10)"
    )


@pytest.mark.parametrize(
    ("offset", "index"), [(0, None), (9, None), (10, 0), (19, 0), (20, 1), (39, 1), (99, 2)]
)
def test_the_segment_of_an_offset_is_the_last_that_does_not_begin_above_it(
    tmp_path: Path, offset: int, index: int | None
) -> None:
    assert view(write_partition(tmp_path, LOG)).find_segment(offset) == index


@pytest.mark.parametrize(("checkpoint", "start"), [(None, 10), (3, 10), (17, 17), (45, 45)])
def test_the_log_starts_at_the_larger_of_first_segment_and_checkpoint(
    tmp_path: Path, checkpoint: int | None, start: int
) -> None:
    directory = write_partition(tmp_path, LOG)
    if checkpoint is not None:
        write_log_start_offsets(tmp_path, {("orders", 1): 99, ("orders", 0): checkpoint})
    assert view(directory).log_start_offset == start


def test_a_log_never_ends_before_it_starts(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, LOG)
    write_log_start_offsets(tmp_path, {("orders", 0): 1_000})
    assert (view(directory).log_start_offset, view(directory).log_end_offset) == (1_000, 1_000)
    assert pylog.scan(directory).count() == 0


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [(49, len(LOG[40][0].data))],
        [(45, len(LOG[40][0].data))],
        [(49, 7)],
        [(49, 10**9)],
        [(9_999, len(LOG[40][0].data))],
        [(49, -5)],
    ],
)
def test_the_end_does_not_depend_on_what_the_index_says(
    tmp_path: Path, entries: list[tuple[int, int]]
) -> None:
    directory = write_partition(tmp_path, LOG, with_index=False)
    segment_path(directory, 40, ".index").write_bytes(offset_index_bytes(entries, 40))
    assert view(directory).log_end_offset == 50


def test_a_bad_checksum_in_the_last_batch_does_not_move_the_end(tmp_path: Path) -> None:
    log = LOG | {40: [LOG[40][0], with_bad_crc(LOG[40][1])]}
    directory = write_partition(tmp_path, log)
    assert view(directory).log_end_offset == 50
    with pytest.raises(CorruptRecordError, match="batch CRC stored"):
        pylog.scan(directory).to_table()


def test_a_size_that_is_too_large_is_not_a_torn_tail(tmp_path: Path) -> None:
    # Kafka would cut such a log: what it keeps are the batches before.
    for which, text in ((1, "but its checksum is that of"), (0, "but another one begins at byte")):
        batches = [bytearray(built.data) for built in LOG[40]]
        batches[which][9] ^= 1
        directory = write_partition(tmp_path, LOG, with_index=False)
        path = segment_path(directory, 40)
        path.write_bytes(b"".join(batches))
        with pytest.raises(CorruptRecordError, match=text) as caught:
            _ = view(directory).log_end_offset
        assert caught.value.position == (len(batches[0]) if which else 0)


def test_a_torn_batch_whose_value_holds_batches_is_a_torn_tail(tmp_path: Path) -> None:
    inner = joined([batch_v2(plain_records(50 + i, 1)) for i in range(3)])
    outer = batch_v2([plain_records(50, 1)[0]._replace(value=inner + bytes(range(200)))])
    directory = write_partition(tmp_path, LOG)
    with segment_path(directory, 40).open("ab") as file:
        file.write(outer.data[:-50])
    assert view(directory).log_end_offset == 50
    assert pylog.scan(directory).count() == 30


def test_side_files_that_are_missing_say_nothing(tmp_path: Path) -> None:
    found = view(write_partition(tmp_path, LOG))
    assert found.leader_epochs == []
    assert found.metadata is None


FLAGS: dict[str, object] = {
    "use_indexes": False,
    "leave_page_cache": True,
    "mode": "DROPMALFORMED",
}


@pytest.mark.parametrize("flag_count", range(len(FLAGS) + 1))
def test_no_way_of_reading_lists_a_directory_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag_count: int
) -> None:
    for partition in range(20):
        write_partition(tmp_path, LOG, name=f"orders-{partition}")
    directory = pylog.open_directory(tmp_path)
    listed: list[str] = []
    scandir = disk.scandir

    def counting(path: str) -> AbstractContextManager[Iterable[disk.Entry]]:
        listed.append(path)
        return scandir(path)

    monkeypatch.setattr(disk, "scandir", counting)
    flags: dict[str, Any] = dict(list(FLAGS.items())[:flag_count])
    scan = pylog.scan(directory, **flags)
    assert len(scan.plan()) == 20
    assert sorted(listed) == sorted(f"{tmp_path}/orders-{partition}" for partition in range(20))
    assert scan.to_table().num_rows == 20 * 30
    assert len(listed) == 20


def test_a_new_look_reads_as_the_one_before(tmp_path: Path) -> None:
    report = DamageReport(is_logged=False)
    access = FileAccess(use_indexes=False)
    before = view(write_partition(tmp_path, LOG)).read_as(access, report)
    after = before.refreshed()
    assert after is not before
    assert (after.access, after.damage) == (access, report)
    assert {segment.access for segment in after.segments} == {access}


def test_another_way_of_reading_remembers_nothing_of_the_first(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, {0: [with_bad_crc(LOG[10][0])]})
    damaged = segment_path(directory, 0).read_bytes()
    segment_path(directory, 0).write_bytes(damaged[:16] + b"\x07" + damaged[17:])
    found = view(directory)
    with pytest.raises(CorruptRecordError):
        _ = found.log_end_offset
    assert found.with_damage(DamageReport(is_logged=False)).log_end_offset == 0
    with pytest.raises(CorruptRecordError):
        _ = found.log_end_offset
    assert all(each.has_time_index for each in found.segments)
    without = found.read_as(FileAccess(use_indexes=False), None)
    assert not any(each.has_time_index for each in without.segments)
