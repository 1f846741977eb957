"""Latest values of keys: a table of two logs each, a letter and a digit a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.comparison.key_diff import diff_latest
from pylog.comparison.replica_log import ReplicaLog
from pylog.model import IsolationLevel
from pylog.reading.discovery import discover_partitions
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path

READ_ALL = IsolationLevel.READ_UNCOMMITTED


def log_of(path: Path, contents: str) -> ReplicaLog:
    """Write pairs of key and value; ``-`` is null, as key or value."""
    records = []
    for at, pair in enumerate(contents.split()):
        key, value = (None if each == "-" else each.encode() for each in pair)
        records.append(Stored(at, at, key, value))
    write_partition(path, {0: [batch_v2([each]) for each in records]})
    [found] = discover_partitions(path)
    return ReplicaLog(found)


@pytest.mark.parametrize(
    ("left", "right", "same", "expected"),
    [
        ("a1 b2", "b2 a1", 2, []),
        ("", "", 0, []),
        ("a1 a2", "a2", 1, []),
        ("a1 a2", "a1", 0, [("latest", 1, 0)]),
        ("a1 b1", "b1", 1, [("only-left", 0, None)]),
        ("b1", "a1 b1 c1", 1, [("only-right", 0, None), ("only-right", 2, None)]),
        ("a1 a-", "", 0, []),  # a tombstone is a key that is not there
        ("a1 a-", "a1", 0, [("only-right", 0, None)]),
        ("a1 a- a3", "a3", 1, []),
        ("a-", "b-", 0, []),
        ("-1 a1", "-2 a1", 1, []),  # records without a key are never compacted
        ("c1 a1 b1", "c2 a2 b2", 0, [("latest", 0, 0), ("latest", 1, 1), ("latest", 2, 2)]),
    ],
)
def test_the_latest_value_of_each_key_counts(
    left: str,
    right: str,
    same: int,
    expected: list[tuple[str, int, int | None]],
    tmp_path: Path,
) -> None:
    one, other = log_of(tmp_path / "a", left), log_of(tmp_path / "b", right)
    found = diff_latest(one, other, isolation=READ_ALL)
    assert (found.mode, found.records) == ("compacted", same)
    shown = [(str(each.kind), each.start_offset, each.other_offset) for each in found.differences]
    assert shown == expected
    assert all(each.end_offset == each.start_offset + 1 for each in found.differences)


def test_keys_are_shown_as_text_and_cut(tmp_path: Path) -> None:
    records = [
        Stored(0, 1, b"k" * 40, b"v"),
        Stored(1, 1, b"k" * 41, b"v"),
        Stored(2, 1, b"\xff", b""),
    ]
    write_partition(tmp_path / "a", {0: [batch_v2(records)]})
    [found] = discover_partitions(tmp_path / "a")
    shown = diff_latest(ReplicaLog(found), log_of(tmp_path / "b", ""), isolation=READ_ALL)
    assert [each.detail for each in shown.differences] == [
        *("key " + "k" * 40, "key " + "k" * 40 + "…", "key \\xff")
    ]


def test_headers_of_the_latest_value_count(tmp_path: Path) -> None:
    logs = []
    for name, header in (("a", b"1"), ("b", b"2")):
        records = [
            Stored(0, 1, b"k", b"v", (("h", header),)),
            Stored(1, 1, b"l", b"v", (("h", header),)),
            Stored(2, 1, b"l", b"v", (("h", b"1"),)),
        ]
        write_partition(tmp_path / name, {0: [batch_v2(records)]})
        [found] = discover_partitions(tmp_path / name)
        logs.append(ReplicaLog(found))
    compared = diff_latest(*logs, isolation=READ_ALL)
    assert [(each.kind, each.start_offset, each.detail) for each in compared.differences] == [
        ("latest", 0, "key k: headers")
    ]
    assert compared.records == 1


@pytest.mark.parametrize(
    ("left", "right", "same", "expected"),
    [
        ("a1 b1 c1 a2", "a1 b1 c1", 2, []),  # a has a record from offset 3 on
        ("a1 b1 c1 b-", "a1 b1 c1", 2, []),
        ("a1 b1 c2 d1", "a1 b1 c1 e1", 2, [("latest", 2, 2)]),
        ("a1 b1 c1 a2", "b1 c1 d1 a2", 2, [("only-right", 2, None)]),
        ("a1 b1 -1 -2", "a1 b1 -1 -3", 2, []),
    ],
)
def test_a_key_that_changes_above_the_high_watermark_is_not_compared(
    left: str,
    right: str,
    same: int,
    expected: list[tuple[str, int, int | None]],
    tmp_path: Path,
) -> None:
    one, other = log_of(tmp_path / "a", left), log_of(tmp_path / "b", right)
    found = diff_latest(one, other, isolation=READ_ALL, end_offset=3)
    assert found.records == same
    shown = [(str(each.kind), each.start_offset, each.other_offset) for each in found.differences]
    assert shown == expected
