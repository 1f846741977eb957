"""Which logs `diff` compares, and how; planted changes are in tests/property."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.errors import LogDirectoryError, UnknownTopicOrPartitionError
from pylog.jobs import diff
from tests.support.batches import Stored, batch_v2
from tests.support.damage import flip
from tests.support.log_files import segment_path, tree, write_high_watermarks
from tests.unit.recovery.test_merge import diverged, log, replica

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.comparison.diff import DiffMode
    from pylog.results import PartitionDiff

OTHER_ID = "BBECAwQFBgcICQoLDA0ODw"


def shown(found: PartitionDiff) -> list[tuple[str, int, int, int]]:
    return [
        (each.kind.value, each.start_offset, each.end_offset, each.records)
        for each in found.differences
    ]


def test_the_later_history_is_named_by_its_epochs(tmp_path: Path) -> None:
    ones = diverged(tmp_path)
    before = tree(tmp_path)
    found = diff(*ones)
    assert tree(tmp_path) == before
    same, different = found.partitions
    assert (same.is_alike, same.records) == (True, 76)
    assert different.first_offset == 45
    assert different.records == 45
    (note,) = different.notes
    assert note.startswith(f"by leader epochs, {ones[2]} is right, where epoch 3 is the last one")
    assert (found.is_alike, different.left) == (False, str(ones[0]))


def test_log_directories_are_compared_partition_by_partition(tmp_path: Path) -> None:
    for node in ("1", "2"):
        for name in ("orders-0", "orders-1"):
            replica(tmp_path / node, {0: log(0, 20)}, name=name)
    replica(tmp_path / "2", {0: log(0, 20)}, name="users-0")
    found = diff(tmp_path / "1", tmp_path / "2")
    assert [(each.topic, each.partition, each.is_alike) for each in found.partitions] == [
        *(("orders", 0, True), ("orders", 1, True), ("users", 0, False))
    ]
    assert found.partitions[2].counts == {"only-right": 1}
    assert diff(tmp_path / "1", tmp_path / "2", topics=["orders"], partitions=[1]).is_alike
    with pytest.raises(UnknownTopicOrPartitionError):
        diff(tmp_path / "1", tmp_path / "2", topics=["other"])


def test_a_follower_that_lags_is_different_unless_what_is_committed_counts(tmp_path: Path) -> None:
    one = replica(tmp_path / "1", {0: log(0, 40)})
    two = replica(tmp_path / "2", {0: log(0, 30)})
    assert shown(diff(one, two).partitions[0]) == [("only-left", 30, 40, 10)]
    write_high_watermarks(tmp_path / "2", {("orders", 0): 30})
    assert not diff(one, two).is_alike
    assert diff(one, two, only_committed=True).is_alike
    write_high_watermarks(tmp_path / "1", {("orders", 0): 25})
    segment_path(two, 0).write_bytes(b"".join(each.data for each in log(0, 20)))
    assert shown(diff(one, two, only_committed=True).partitions[0]) == [("only-left", 20, 40, 20)]


def test_a_torn_end_is_no_difference_but_where_the_other_one_has_records(tmp_path: Path) -> None:
    one = replica(tmp_path / "1", {0: log(0, 20)})
    two = replica(tmp_path / "2", {0: log(0, 20)})
    path = segment_path(two, 0)
    path.write_bytes(path.read_bytes() + b"\0" * 100)
    assert diff(one, two).is_alike
    path.write_bytes(path.read_bytes()[: len(b"".join(each.data for each in log(0, 20))) - 9])
    assert shown(diff(one, two).partitions[0]) == [("damaged-right", 15, 20, 5)]


def test_the_same_damage_in_both_is_told(tmp_path: Path) -> None:
    ones = [replica(tmp_path / name, {0: log(0, 20)}) for name in "ab"]
    for each in ones:
        flip(segment_path(each, 0), 70)
    assert diff(*ones).partitions[0].counts == {"damaged-left": 5, "damaged-right": 5}
    assert diff(*ones, only_headers=True).is_alike


def test_compacted_logs_are_the_latest_values_of_their_keys(tmp_path: Path) -> None:
    def keyed(*pairs: tuple[bytes, bytes | None]) -> list[Stored]:
        return [Stored(at, 1000 + at, key, value) for at, (key, value) in enumerate(pairs)]

    full = keyed((b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"c", b"1"), (b"b", None))
    cleaned = batch_v2([full[2], full[3]], base_offset=0, last_offset=4)
    one = replica(tmp_path / "1", {0: [batch_v2(full)]})
    two = replica(tmp_path / "2", {0: [cleaned]})
    assert not diff(one, two).is_alike
    found = diff(one, two, mode="compacted")
    assert (found.is_alike, found.partitions[0].records) == (True, 2)
    text = "0\n1\norders 0 5\n"
    (tmp_path / "2" / "cleaner-offset-checkpoint").write_text(text)
    assert diff(one, two).partitions[0].mode == "compacted"
    other = [full[2]._replace(value=b"3"), full[3]._replace(key=b"d")]
    three = replica(tmp_path / "3", {0: [batch_v2(other, base_offset=0, last_offset=4)]})
    (different,) = diff(one, three, mode="compacted").partitions
    assert shown(different) == [
        *(("latest", 2, 3, 1), ("only-left", 3, 4, 1), ("only-right", 3, 4, 1))
    ]
    assert [each.detail for each in different.differences] == ["key a", "key c", "key d"]


def test_a_copy_may_begin_later_and_topics_of_two_ids_are_copies(tmp_path: Path) -> None:
    records = [Stored(at, at, None, b"%d" % at) for at in range(500)]
    one = replica(tmp_path / "1", {0: [batch_v2(records)]})
    later = [each._replace(offset=each.offset - 300, timestamp=9) for each in records[300:]]
    two = replica(tmp_path / "2", {0: [batch_v2(later)]}, name="copy-0", topic_id=OTHER_ID)
    (found,) = diff(one, two).partitions
    assert (found.mode, found.records) == ("copies", 200)
    assert found.counts == {"only-left": 300, "record": 200}
    assert "offsets of the left log are 300 higher at the first match" in found.notes


def test_what_cannot_be_read_is_an_error_and_so_are_arguments_that_make_no_sense(
    tmp_path: Path,
) -> None:
    one = replica(tmp_path / "1", {0: log(0, 20)})
    with pytest.raises(LogDirectoryError):
        diff(one, tmp_path / "none")
    for paths, options in (
        ([one], {}),
        ([one, one], {"mode": "same"}),
        ([one, one, one], {"offset_map": tmp_path / "map"}),
        ([one, one], {"isolation": "none"}),
    ):
        with pytest.raises(ValueError, match=r".+"):
            diff(*paths, **options)
    segment_path(one, 0).unlink()
    segment_path(one, 0).mkdir()
    segment_path(one, 0, ".index").write_bytes(b"\0" * 8)
    two = replica(tmp_path / "2", {0: log(0, 20)})
    with pytest.raises(LogDirectoryError):
        diff(one, two)


@pytest.mark.parametrize("mode", ["replicas", "copies", "compacted"])
@pytest.mark.parametrize("at", [0, 1])
def test_damage_of_one_log_is_told_in_each_mode(mode: DiffMode, at: int, tmp_path: Path) -> None:
    logs = [replica(tmp_path / str(number), {0: log(0, 20)}) for number in range(2)]
    path = segment_path(logs[at], 0)
    data = bytearray(path.read_bytes())
    data[sum(len(each.data) for each in log(0, 10)) - 1] ^= 1  # the second of four batches
    path.write_bytes(data)
    [found] = diff(*logs, mode=mode).partitions
    kind = ("damaged-left", "damaged-right")[at]
    [damaged] = [each for each in found.differences if each.kind == kind]
    assert (damaged.start_offset, damaged.end_offset) == (5, 10)
    assert found.records == 15
