"""A log and its copy, by content: a table of what copies lack, repeat and change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.comparison import copy_diff
from pylog.comparison.copy_diff import OffsetMapFile, diff_copies
from pylog.comparison.replica_log import ReplicaLog
from pylog.model import IsolationLevel, TopicPartition
from pylog.reading.discovery import discover_partitions
from tests.support.batches import ABORT, Stored, batch_v2, marker
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.results import PartitionDiff

READ_ALL = IsolationLevel.READ_UNCOMMITTED


def log_of(path: Path, contents: str, *, base: int = 0, later: int = 0) -> ReplicaLog:
    """Write a log with a record a letter, in batches of four."""
    records = [
        Stored(base + at, ord(letter) + later, None, letter.encode())
        for at, letter in enumerate(contents)
    ]
    write_partition(
        path, {base: [batch_v2(records[at : at + 4]) for at in range(0, len(records), 4)]}
    )
    [found] = discover_partitions(path)
    return ReplicaLog(found)


def shown(found: PartitionDiff) -> list[tuple[str, int, int, int | None]]:
    return [(str(each.kind), *each[1:3], each.other_offset) for each in found.differences]


@pytest.mark.parametrize(
    ("left", "right", "same", "expected"),
    [
        ("abcdef", "abcdef", 6, []),
        ("", "", 0, []),
        ("abc", "", 0, [("only-left", 0, 3, None)]),
        ("", "abc", 0, [("only-right", 0, 3, None)]),
        ("abcdef", "cdef", 4, [("only-left", 0, 2, None)]),
        ("abcdef", "abcd", 4, [("only-left", 4, 6, None)]),
        ("abcdef", "abcxdef", 6, [("only-right", 3, 4, None)]),
        ("abcdef", "abef", 4, [("only-left", 2, 4, None)]),
        ("abcdef", "abcabcdef", 6, [("only-right", 3, 6, None)]),  # some were copied twice
        ("abcdefgh", "abcXdefgh", 8, [("only-right", 3, 4, None)]),
        ("abcdefgh", "abcXefgh", 7, [("record", 3, 4, 3)]),
        ("abcdefgh", "abXYefgh", 6, [("record", 2, 4, 2)]),
        # Two of a kind do not join logs again; three do, or all that are left.
        ("abcdefg", "abXcdYefg", 5, [("record", 2, 4, 2), ("only-right", 4, 6, None)]),
        ("abcd", "abXd", 3, [("record", 2, 3, 2)]),
        ("abc", "xyz", 0, [("record", 0, 3, 0)]),
    ],
)
def test_what_a_copy_lacks_repeats_and_changes(
    left: str,
    right: str,
    same: int,
    expected: list[tuple[str, int, int, int | None]],
    tmp_path: Path,
) -> None:
    one, other = log_of(tmp_path / "a", left), log_of(tmp_path / "b", right)
    matches: list[tuple[int, int]] = []
    found = diff_copies(one, other, isolation=READ_ALL, on_match=lambda *at: matches.append(at))
    assert (found.mode, found.records, shown(found)) == ("copies", same, expected)
    assert all(left[mine] == right[yours] for mine, yours in matches)
    assert len(matches) == same


def test_offsets_may_be_others_and_notes_say_how(tmp_path: Path) -> None:
    one = log_of(tmp_path / "a", "abcdefgh", base=100)
    found = diff_copies(one, log_of(tmp_path / "b", "abcdefgh"), isolation=READ_ALL)
    assert found.is_alike
    assert found.notes == ["offsets of the left log are 100 higher at the first match"]
    found = diff_copies(one, log_of(tmp_path / "c", "abcXdefgh"), isolation=READ_ALL)
    assert found.notes[1] == "and 99 higher at the last one"


def test_a_copy_with_times_of_its_own_is_matched_by_key_and_value(tmp_path: Path) -> None:
    one, other = log_of(tmp_path / "a", "abcd"), log_of(tmp_path / "b", "bcd", later=5)
    found = diff_copies(one, other, isolation=READ_ALL)
    assert found.records == 3
    assert found.counts == {"only-left": 1, "record": 3}
    assert {each.detail for each in found.differences} == {"", "timestamp"}


def test_logs_are_joined_again_within_a_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_diff, "_WINDOW", 4)
    one, other = log_of(tmp_path / "a", "abcdef"), log_of(tmp_path / "b", "abXYZcdef")
    found = diff_copies(one, other, isolation=READ_ALL)
    assert found.records == 6 - found.counts.get("only-left", 0) - found.counts.get("record", 0)
    assert found.records >= 2


def test_aborted_records_are_of_no_copy(tmp_path: Path) -> None:
    records = [Stored(at, at, None, b"x") for at in range(3)]
    data = batch_v2(
        records, producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    write_partition(tmp_path / "a", {0: [data, marker(3, ABORT)]})
    [found] = discover_partitions(tmp_path / "a")
    one, other = ReplicaLog(found), log_of(tmp_path / "b", "")
    assert diff_copies(one, other, isolation=IsolationLevel.READ_COMMITTED).is_alike
    assert diff_copies(one, other, isolation=READ_ALL).counts == {"only-left": 3}


def test_damage_is_left_out_and_told(tmp_path: Path) -> None:
    one, other = log_of(tmp_path / "a", "abcdefgh"), log_of(tmp_path / "b", "abcdefgh")
    data = (tmp_path / "b/orders-0/00000000000000000000.log").read_bytes()
    half = len(data) // 2
    (tmp_path / "b/orders-0/00000000000000000000.log").write_bytes(
        data[: half + 70] + bytes([data[half + 70] ^ 1]) + data[half + 71 :]
    )
    found = diff_copies(one, other, isolation=READ_ALL)
    assert found.records == 4
    assert {str(each.kind) for each in found.differences} == {"only-left", "damaged-right"}


def test_the_map_has_a_line_for_each_match(tmp_path: Path) -> None:
    with OffsetMapFile(str(tmp_path / "map.csv")) as found:
        write = found.lines_of(TopicPartition("a,b", 3))
        write(1, 2)
        write(3, 5)
    assert (tmp_path / "map.csv").read_bytes() == (
        b'topic,partition,old_offset,new_offset\n"a,b",3,1,2\n"a,b",3,3,5\n'
    )


@pytest.mark.parametrize(
    ("headers", "kinds"),
    [
        ((("h", b"1"), ("g", b"2")), {}),
        ((("g", b"2"), ("h", b"1")), {"record": 1}),
        ((("h", b"1"),), {"record": 1}),
        ((("h", b"1"), ("g", None)), {"record": 1}),
        ((), {"record": 1}),
    ],
)
def test_headers_of_a_record_and_its_copy_are_compared(
    tmp_path: Path, headers: tuple[tuple[str, bytes | None], ...], kinds: dict[str, int]
) -> None:
    ones = [Stored(at, at, None, b"%d" % at, (("h", b"1"), ("g", b"2"))) for at in range(4)]
    others = [each._replace(offset=each.offset + 9) for each in ones]
    others[2] = others[2]._replace(headers=headers)
    logs = []
    for name, records in (("a", ones), ("b", others)):
        write_partition(tmp_path / name, {records[0].offset: [batch_v2(records)]})
        [found] = discover_partitions(tmp_path / name)
        logs.append(ReplicaLog(found))
    compared = diff_copies(*logs, isolation=READ_ALL)
    assert compared.counts == kinds
    places = [(each.start_offset, each.other_offset, each.detail) for each in compared.differences]
    assert places == ([(2, 11, "headers")] if kinds else [])
