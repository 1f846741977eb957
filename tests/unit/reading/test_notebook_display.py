"""What a notebook shows of a directory, a log and a scan."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.reading import log_view
from pylog.reading.segment_listing import list_segments
from tests.support.batches import batch_v2, joined, plain_records
from tests.support.log_files import replace_with_same, segment_path, write_partition

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.reading.log_view import LogView
    from pylog.reading.segment_listing import SegmentListing


def cells(shown: object) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", html(shown))[1:]
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows]


def notes(shown: object) -> list[str]:
    return re.findall(r"<div>([^<]*)</div>", html(shown))


def html(shown: object) -> str:
    text = shown._repr_html_()  # type: ignore[attr-defined]
    assert isinstance(text, str)
    return text


def write_topic(directory: Path, name: str, *, first: int, count: int, timestamp: int) -> int:
    """Write a partition of two segments; return how many bytes they have."""
    half = count // 2
    segments = {
        first: [batch_v2(plain_records(first, half, timestamp=timestamp))],
        first + half: [
            batch_v2(plain_records(first + half, count - half, timestamp=timestamp + half))
        ],
    }
    write_partition(directory, segments, name=name)
    return sum(len(joined(batches)) for batches in segments.values())


@pytest.fixture
def sizes(tmp_path: Path) -> list[int]:
    return [
        write_topic(tmp_path, "orders-0", first=10, count=20, timestamp=1_000_000),
        write_topic(tmp_path, "orders-1", first=0, count=6, timestamp=9_000_000),
        write_topic(tmp_path, "payments-0", first=0, count=4, timestamp=5_000_000),
    ]


def test_a_directory_shows_its_topics(tmp_path: Path, sizes: list[int]) -> None:
    directory = pylog.open_directory(tmp_path)
    assert cells(directory) == [
        ["orders", "2", "26", f"{sum(sizes[:2]):,}", "1970-01-01 00:16:40", "1970-01-01 02:30:00"],
        ["payments", "1", "4", f"{sizes[2]:,}", "1970-01-01 01:23:20", "1970-01-01 01:23:20"],
    ]
    assert f"LogDirectory {tmp_path}: 2 topics, 3 partitions" in html(directory)
    assert notes(directory) == []


def test_a_log_shows_its_segments(tmp_path: Path, sizes: list[int]) -> None:
    view = pylog.open_directory(tmp_path)["orders", 0]
    first, second = (row[:2] + row[3:] for row in cells(view))
    assert first == ["10", "10", "1970-01-01 00:16:40", ".index .log .timeindex"]
    assert second == ["20", "10", "1970-01-01 00:16:40", ".index .log .timeindex"]
    assert sum(int(row[2]) for row in cells(view)) == sizes[0]
    assert "orders-0: 2 segments, start offset 10, end offset 30" in html(view)


def test_a_scan_shows_the_logs_and_once_it_is_planned_what_it_reads(
    tmp_path: Path, sizes: list[int]
) -> None:
    scan = pylog.scan(tmp_path, assign={"orders": [0]}, start=20)
    assert cells(scan) == [["orders", "0", "10", "30", f"{sizes[0]}"]]
    assert "1 partition, not planned yet" in html(scan)
    assert "start=20, end=&#x27;latest&#x27;" in html(scan)
    (task,) = scan.plan()
    assert cells(scan) == [["orders", "0", "20", "30", f"{task.size_bytes}"]]
    assert task.size_bytes < sizes[0]
    assert f"1 task, {task.size_bytes} bytes" in html(scan)


def test_a_look_at_a_scan_neither_plans_it_nor_fails_where_a_plan_would(
    tmp_path: Path, sizes: list[int]
) -> None:
    assert sizes
    scan = pylog.scan(tmp_path, assign={"orders": [0]}, start=1_000)
    assert cells(scan)[0][:4] == ["orders", "0", "10", "30"]
    with pytest.raises(pylog.LogStorageError):
        scan.plan()
    assert "not planned yet" in html(scan)


def test_a_scan_of_logs_whose_files_are_replaced_meanwhile_looks_at_them_again(
    tmp_path: Path, sizes: list[int]
) -> None:
    scan = pylog.scan(tmp_path, assign={"payments": [0]})
    replace_with_same(segment_path(tmp_path / "payments-0", 0))
    replace_with_same(segment_path(tmp_path / "payments-0", 2))
    assert cells(scan) == [["payments", "0", "0", "4", f"{sizes[2]}"]]
    assert not any("Unreadable" in each for each in notes(scan))


def test_a_directory_whose_files_are_replaced_meanwhile_is_looked_at_again(
    tmp_path: Path, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def first_timestamp(view: LogView) -> int | None:
        if files:
            replace_with_same(files.pop())
        return log_view.first_timestamp(view)

    files = [segment_path(tmp_path / "payments-0", 0)]
    monkeypatch.setattr("pylog.reading.notebook_display.first_timestamp", first_timestamp)
    directory = pylog.open_directory(tmp_path / "payments-0")
    assert cells(directory)[0][3:5] == [f"{sizes[2]:,}", "1970-01-01 01:23:20"]
    assert (files, notes(directory)) == ([], [])


def test_twenty_rows_are_shown_and_the_others_counted(tmp_path: Path) -> None:
    segments = {number: [batch_v2(plain_records(number, 1))] for number in range(25)}
    write_partition(tmp_path, segments, name="orders-0")
    for number in range(24):
        write_partition(tmp_path, {0: [batch_v2(plain_records(0, 1))]}, name=f"t{number:02}-0")
    directory = pylog.open_directory(tmp_path)
    for shown in (directory, directory["orders", 0], pylog.scan(directory)):
        assert len(cells(shown)) == 20
        assert notes(shown)[0] == "… 5 more"
    assert cells(directory["orders", 0])[19][:2] == ["19", "1"]


def test_a_look_at_many_partitions_opens_a_hundred(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(99):
        write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]}, name=f"a-{number}")
    for number in range(2):
        write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]}, name=f"b-{number}")
    listed: list[str] = []

    def noted(path: str) -> SegmentListing:
        listed.append(path)
        return list_segments(path)

    monkeypatch.setattr("pylog.reading.log_view.list_segments", noted)
    directory = pylog.open_directory(tmp_path)
    assert [row[:3] for row in cells(directory)] == [["a", "99", "198"], ["b", "2", ""]]
    assert len(listed) == 99
    assert notes(directory) == [
        "Sizes, offsets and times are those of topics among the first 100 partitions."
    ]


def test_damage_is_a_note_and_what_it_hides_an_empty_cell(tmp_path: Path, sizes: list[int]) -> None:
    last = tmp_path / "orders-0" / f"{20:020}.log"
    last.write_bytes(b"\xff" * 100)
    (tmp_path / "orders-0" / f"{20:020}.index").unlink()
    directory = pylog.open_directory(tmp_path)
    orders, payments = cells(directory)
    assert orders[:3] == ["orders", "2", ""]
    assert payments[2:4] == ["4", f"{sizes[2]}"]
    assert len(notes(directory)) == 1
    assert notes(directory)[0].startswith(f"Unreadable: {last} at byte 0: ")
    view = directory["orders", 0]
    assert [row[1] for row in cells(view)] == ["10", ""]
    assert notes(view)[0].startswith(f"Unreadable: {last} at byte 0: ")
    assert cells(pylog.scan(directory, topics="orders"))[0][:4] == ["orders", "0", "10", ""]


def test_a_directory_that_vanished_still_shows_what_is_known(
    tmp_path: Path, sizes: list[int]
) -> None:
    assert sizes
    listed, fresh = pylog.open_directory(tmp_path), pylog.open_directory(tmp_path)
    view, scan = listed["orders", 0], pylog.scan(listed)
    shutil.rmtree(tmp_path)
    assert [row[0] for row in cells(fresh)] == ["orders", "payments"]
    assert all(note.startswith("Unreadable: ") for note in notes(fresh))
    assert [row[0] for row in cells(view)] == ["10", "20"]
    assert cells(scan)[0][:2] == ["orders", "0"]


def test_what_is_not_live_is_counted_after_the_table(tmp_path: Path, sizes: list[int]) -> None:
    assert sizes
    write_topic(tmp_path, "old-0.0123456789abcdef-delete", first=0, count=2, timestamp=0)
    directory = pylog.open_directory(tmp_path)
    assert [row[0] for row in cells(directory)] == ["orders", "payments"]
    assert notes(directory) == ["Not live, and not counted: 1 (delete)"]


def test_markup_in_a_path_is_escaped(tmp_path: Path) -> None:
    odd = tmp_path / "<img src=x>"
    odd.mkdir()
    write_topic(odd, "orders-0", first=0, count=2, timestamp=0)
    directory = pylog.open_directory(odd)
    for shown in (directory, directory["orders", 0], pylog.scan(directory)):
        assert "<img" not in html(shown)
        assert "&lt;img src=x&gt;" in html(shown)


def test_the_logs_of_an_object_store_are_not_looked_at(
    tmp_path: Path, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sizes
    directory = pylog.open_directory(tmp_path)
    view = directory["orders", 0]
    scan = pylog.scan(directory)
    monkeypatch.setattr("pylog.reading.notebook_display.is_remote", lambda _: True)
    monkeypatch.setattr("pylog.reading.log_view.is_remote", lambda _: True)
    shutil.rmtree(tmp_path)  # a look at any file would be a note
    assert cells(directory)[0] == ["orders", "2", "", "", "", ""]
    assert notes(directory) == [
        "Sizes, offsets and times of an object store are not looked up here."
    ]
    assert [row[3] for row in cells(view)] == ["", ""]
    assert notes(view) == []
    assert cells(scan)[0] == ["orders", "0", "", "", ""]
