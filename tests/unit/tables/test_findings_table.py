"""Each finding by itself: what was done to a sound log, and the row that tells it."""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.files.looks import LIVE_PAUSES
from pylog.native.checksum import crc32c
from tests.support.batches import (
    ABORT,
    Built,
    batch_v2,
    batch_v2_of,
    joined,
    marker,
    message,
    plain_records,
    with_bad_crc,
    wrapper,
)
from tests.support.damage import with_size
from tests.support.log_files import (
    OFFSET_ENTRY,
    TIME_ENTRY,
    TRANSACTION_ENTRY,
    Transactions,
    segment_path,
    write_log_start_offsets,
    write_partition,
)

if TYPE_CHECKING:
    from pathlib import Path

FIRST = [batch_v2(plain_records(o, 5, timestamp=1000 + 10 * o), leader_epoch=1) for o in (0, 5)]
SECOND = [batch_v2(plain_records(o, 5, timestamp=1000 + 10 * o), leader_epoch=2) for o in (10, 15)]
SIZE = len(FIRST[0].data)
NO_PRODUCERS = struct.pack(">hIi", 1, crc32c(bytes(4)), 0)
"""A producer snapshot."""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    found = write_partition(tmp_path, {0: FIRST, 10: SECOND})
    (found / "leader-epoch-checkpoint").write_text("0\n2\n1 0\n2 10\n", "utf-8")
    return found


def findings(directory: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pylog.read_table(directory, "findings").to_pylist()
    return rows


def only_finding(directory: Path) -> dict[str, Any]:
    (row,) = findings(directory)
    return row


def codes(directory: Path) -> list[tuple[str, str]]:
    return [(row["severity"], row["code"]) for row in findings(directory)]


def test_a_sound_log_has_none(directory: Path) -> None:
    assert findings(directory) == []


def test_a_damaged_batch_is_an_error_with_bytes_and_offsets(directory: Path) -> None:
    path = segment_path(directory, 0)
    path.write_bytes(joined([FIRST[0], with_bad_crc(FIRST[1])]))
    row = only_finding(directory)
    assert row.pop("message").startswith("batch CRC stored 0x")
    assert row.pop("broker_action") == (
        f"it cuts the file off at byte {SIZE}, and deletes the 1 segment after it"
    )
    assert row.pop("advice").startswith("read another replica")
    times = [row.pop(each).timestamp() * 1_000 for each in ("from_time", "to_time")]
    assert times == [FIRST[0].max_timestamp, SECOND[0].visible[0].timestamp]
    assert row == {
        "topic": "orders",
        "partition": 0,
        "severity": "error",
        "code": "damaged_batches",
        "path": str(path),
        "position": SIZE,
        "end_position": 2 * SIZE,
        "next_offset": 5,
        "end_offset": 10,
    }


def test_damage_at_the_log_end_is_an_error_with_no_end_offset(directory: Path) -> None:
    segment_path(directory, 10).write_bytes(joined([SECOND[0], with_bad_crc(SECOND[1])]))
    row = only_finding(directory)
    assert (row["next_offset"], row["end_offset"]) == (15, None)


def test_records_that_cannot_be_decoded_are_an_error(directory: Path) -> None:
    bad = batch_v2_of(
        b"\xff" * 40, base_offset=5, last_offset_delta=4, record_count=5, leader_epoch=1
    )
    built = Built(bad, (), 2, 5, 9)
    segment_path(directory, 0).write_bytes(joined([FIRST[0], built]))
    assert codes(directory) == [("error", "damaged_batches")]


def test_a_middle_segment_that_is_torn_is_an_error(directory: Path) -> None:
    path = segment_path(directory, 0)
    path.write_bytes(joined(FIRST)[:-5])
    row = only_finding(directory)
    assert (row["position"], row["next_offset"], row["end_offset"]) == (SIZE, 5, 10)


@pytest.mark.parametrize(
    ("tail", "code"), [(bytes(700), "zero_tail"), (SECOND[0].data[:50], "torn_tail")]
)
def test_what_stands_after_the_last_batch_is_information(
    directory: Path, tail: bytes, code: str
) -> None:
    with segment_path(directory, 10).open("ab") as file:
        file.write(tail)
    row = only_finding(directory)
    assert (row["severity"], row["code"], row["next_offset"]) == ("info", code, 20)
    end = len(joined(SECOND))
    assert (row["position"], row["end_position"]) == (end, end + len(tail))


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_missing_index_is_a_warning(directory: Path, suffix: str) -> None:
    path = segment_path(directory, 0, suffix)
    path.unlink()
    row = only_finding(directory)
    kind = "index" if suffix == ".index" else "time_index"
    assert (row["severity"], row["code"]) == ("warning", f"missing_{kind}")
    assert row["path"] == str(path)


def without_time_indexes(log_directory: Path, *segments: list[Built]) -> Path:
    bases = [0, 10][: len(segments)]
    directory = write_partition(log_directory, dict(zip(bases, segments, strict=True)))
    for base in bases:
        segment_path(directory, base, ".timeindex").unlink(missing_ok=True)
    return directory


@pytest.mark.parametrize("magic", [0, 1])
def test_a_log_of_old_formats_without_time_indexes_is_worth_one_line(
    tmp_path: Path, magic: int
) -> None:
    first = [wrapper(plain_records(0, 10), magic=magic, codec="gzip")]
    second = [message(plain_records(10, 1)[0], magic=magic)]
    directory = without_time_indexes(tmp_path, first, second)
    row = only_finding(directory)
    assert (row["severity"], row["code"]) == ("info", "no_time_indexes")
    assert row["path"] == str(directory)
    assert "brokers before 0.10.1" in row["message"]


def test_a_batch_of_format_v2_tells_that_time_indexes_are_missing(tmp_path: Path) -> None:
    old = [wrapper(plain_records(0, 10), magic=1, codec="gzip")]
    directory = without_time_indexes(tmp_path, old, [batch_v2(plain_records(10, 5))])
    assert codes(directory) == [("warning", "missing_time_index")] * 2
    assert [row["path"] for row in findings(directory)] == [
        str(segment_path(directory, base, ".timeindex")) for base in (0, 10)
    ]


def test_one_time_index_tells_that_another_is_missing(tmp_path: Path) -> None:
    old = [[wrapper(plain_records(base, 10), magic=1, codec="gzip")] for base in (0, 10)]
    directory = without_time_indexes(tmp_path, *old)
    segment_path(directory, 10, ".timeindex").write_bytes(b"")
    rows = pylog.read_table(directory, "findings").to_pylist()
    assert {(row["severity"], row["code"], row["path"]) for row in rows} == {
        ("warning", "missing_time_index", str(segment_path(directory, 0, ".timeindex"))),
        ("info", "empty_time_index", str(segment_path(directory, 10, ".timeindex"))),
    }


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        ([(9, SIZE)], None),
        ([(5, SIZE)], None),
        ([(9, 0)], None),
        ([(9, SIZE), (0, 0)], None),
        ([(3, 0)], "wrong_index"),
        ([(7, SIZE)], "wrong_index"),
        ([(4, SIZE)], "wrong_index"),
        ([(9, SIZE - 1)], "wrong_index"),
        ([(9, 2 * SIZE)], "wrong_index"),
        ([(9, SIZE), (8, 2 * SIZE)], "damaged_index"),
        ([(4, 0), (4, SIZE)], "damaged_index"),
        ([(-9, SIZE)], "damaged_index"),
    ],
)
def test_entries_of_an_offset_index_are_held_against_batches(
    directory: Path, entries: list[tuple[int, int]], code: str | None
) -> None:
    data = b"".join(OFFSET_ENTRY.pack(*entry) for entry in entries)
    segment_path(directory, 0, ".index").write_bytes(data)
    assert codes(directory) == ([] if code is None else [("warning", code)])


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        ([(1004, 4), (1054, 9)], None),
        ([(1004, 0), (1054, 5)], None),
        ([(1005, 4), (1054, 9)], "wrong_time_index"),
        ([(1004, 4)], "wrong_time_index"),
        ([(1004, 4), (1054, 10)], "wrong_time_index"),
        ([(1054, 9), (1004, 10)], "damaged_time_index"),
        ([(1054, 9), (1055, 4)], "damaged_time_index"),
    ],
)
def test_entries_of_a_time_index_are_held_against_batches(
    directory: Path, entries: list[tuple[int, int]], code: str | None
) -> None:
    data = b"".join(TIME_ENTRY.pack(*entry) for entry in entries)
    segment_path(directory, 0, ".timeindex").write_bytes(data)
    assert codes(directory) == ([] if code is None else [("warning", code)])


def test_a_first_entry_of_which_a_broker_has_written_half_is_waited_for(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = segment_path(directory, 10, ".timeindex")
    half, whole = (TIME_ENTRY.pack(1154, relative_offset) for relative_offset in (0, 5))
    last.write_bytes(half + bytes(240))
    monkeypatch.setattr(time, "sleep", lambda _: last.write_bytes(whole + bytes(240)))
    assert findings(directory) == []


def test_a_first_entry_that_stays_half_written_is_wrong(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = segment_path(directory, 10, ".timeindex")
    last.write_bytes(TIME_ENTRY.pack(1154, 0) + bytes(240))
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    assert codes(directory) == [("warning", "wrong_time_index")]
    assert pauses == [*LIVE_PAUSES]


def test_an_index_of_torn_length_is_damaged(directory: Path) -> None:
    segment_path(directory, 0, ".index").write_bytes(b"\0" * 7)
    assert codes(directory) == [("warning", "damaged_index")]


def test_indexes_of_old_formats_are_borne_out_by_the_last_offset(tmp_path: Path) -> None:
    batches = [
        message(plain_records(0, 1)[0], magic=1),
        wrapper(plain_records(1, 4), magic=1, codec="gzip"),
        wrapper(plain_records(5, 4), magic=1, codec="gzip"),
    ]
    directory = write_partition(tmp_path, {0: batches})
    assert findings(directory) == []
    entry = OFFSET_ENTRY.pack(2, len(batches[0].data))  # the first offset, which is inside
    segment_path(directory, 0, ".index").write_bytes(entry)
    assert findings(directory) == []


def aborting(directory: Path) -> list[Built]:
    data = batch_v2(plain_records(0, 2), producer_id=7, is_transactional=True)
    batches = [data, marker(2, ABORT, producer_id=7)]
    write_partition(directory, {0: batches})
    return batches


def test_a_transaction_index_that_agrees_is_sound(tmp_path: Path) -> None:
    content = Transactions(aborting(tmp_path)).index_bytes(0, 99)
    segment_path(tmp_path / "orders-0", 0, ".txnindex").write_bytes(content)
    assert findings(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "code", "text"),
    [
        (None, "wrong_transaction_index", "no entry for producer 7, aborted at offset 2"),
        (b"", "wrong_transaction_index", "no entry for producer 7"),
        (TRANSACTION_ENTRY.pack(0, 8, 0, 2, 3), "wrong_transaction_index", "no entry for prod"),
        (TRANSACTION_ENTRY.pack(0, 7, 1, 2, 3), "wrong_transaction_index", "begins at 1, its"),
        (TRANSACTION_ENTRY.pack(9, 7, 0, 2, 3), "damaged_transaction_index", "has version 9"),
    ],
)
def test_a_transaction_index_is_held_against_the_markers(
    tmp_path: Path, content: bytes | None, code: str, text: str
) -> None:
    aborting(tmp_path)
    if content is not None:
        segment_path(tmp_path / "orders-0", 0, ".txnindex").write_bytes(content)
    rows = findings(tmp_path)
    assert {(row["severity"], row["code"]) for row in rows} == {("warning", code)}
    assert text in rows[0]["message"]


@pytest.mark.parametrize("content", [None, b""])
def test_an_entry_that_a_broker_writes_after_the_marker_is_waited_for(
    tmp_path: Path, content: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Transactions(aborting(tmp_path)).index_bytes(0, 99)
    path = segment_path(tmp_path / "orders-0", 0, ".txnindex")
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setattr(time, "sleep", lambda _: path.write_bytes(whole))
    assert findings(tmp_path) == []


def test_entries_that_come_while_another_is_waited_for_are_about_later_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Transactions(aborting(tmp_path)).index_bytes(0, 99)
    path = segment_path(tmp_path / "orders-0", 0, ".txnindex")
    later = TRANSACTION_ENTRY.pack(0, 8, 3, 5, 6)
    monkeypatch.setattr(time, "sleep", lambda _: path.write_bytes(whole + later))
    path.write_bytes(b"")
    assert findings(tmp_path) == []
    assert codes(tmp_path) == [("warning", "wrong_transaction_index")]


def test_a_leader_epoch_that_goes_back_is_a_warning(tmp_path: Path) -> None:
    batches = [batch_v2(plain_records(o, 5), leader_epoch=e) for o, e in ((0, 3), (5, 2), (10, 1))]
    directory = write_partition(tmp_path, {0: batches[:1], 5: batches[1:]})
    row = only_finding(directory)
    assert (row["severity"], row["code"]) == ("warning", "leader_epoch_back")
    assert (row["path"], row["position"]) == (str(segment_path(directory, 5)), 0)
    assert (row["next_offset"], row["end_offset"]) == (5, 10)
    assert row["message"] == "batch has leader epoch 2, but the one before it has 3"


def test_a_checkpoint_with_another_epoch_is_a_warning(directory: Path) -> None:
    path = directory / "leader-epoch-checkpoint"
    path.write_text("0\n2\n1 0\n2 15\n", "utf-8")
    row = only_finding(directory)
    assert (row["code"], row["path"], row["next_offset"]) == (
        "leader_epoch_disagrees",
        str(path),
        10,
    )


@pytest.mark.parametrize("kept", [0, 5])
def test_a_snapshot_that_a_broker_is_just_writing_is_waited_for(
    directory: Path, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = segment_path(directory, 10, ".snapshot")
    path.write_bytes(NO_PRODUCERS[:kept])
    monkeypatch.setattr(time, "sleep", lambda _: path.write_bytes(NO_PRODUCERS))
    assert findings(directory) == []


def test_a_broker_does_not_start_without_its_leader_epochs(directory: Path) -> None:
    (directory / "leader-epoch-checkpoint").write_text("nonsense\n", "utf-8")
    assert codes(directory) == [("error", "damaged_checkpoint")]


def test_side_files_that_cannot_be_read_are_told(directory: Path) -> None:
    segment_path(directory, 10, ".snapshot").write_bytes(b"\0\1")
    (directory / "partition.metadata").write_text("nonsense\n", "utf-8")
    (directory.parent / "replication-offset-checkpoint").write_text("7\n", "utf-8")
    (directory.parent / "log-start-offset-checkpoint").write_text("0\n5\n", "utf-8")
    assert codes(directory) == [
        ("warning", "damaged_snapshot"),
        ("error", "damaged_metadata"),
        ("error", "damaged_checkpoint"),
        ("error", "damaged_checkpoint"),
    ]


@pytest.mark.parametrize(
    ("name", "severity", "code"),
    [
        ("replication-offset-checkpoint", "error", "high_watermark_above_log_end"),
        ("recovery-point-offset-checkpoint", "error", "recovery_point_above_log_end"),
        ("cleaner-offset-checkpoint", "warning", "cleaner_offset_above_log_end"),
    ],
)
def test_offsets_above_the_log_end_are_findings(
    directory: Path, name: str, severity: str, code: str
) -> None:
    path = directory.parent / name
    path.write_text("0\n1\norders 0 20\n", "utf-8")
    assert findings(directory) == []
    path.write_text("0\n1\norders 0 21\n", "utf-8")
    row = only_finding(directory)
    assert (row["severity"], row["code"], row["path"]) == (severity, code, str(path))
    assert "of orders-0 is 21, but its batches end at 20" in row["message"]


def test_a_log_start_offset_above_the_log_end_costs_all_records(directory: Path) -> None:
    write_log_start_offsets(directory.parent, {("orders", 0): 20})
    assert findings(directory) == []
    write_log_start_offsets(directory.parent, {("orders", 0): 30})
    assert codes(directory) == [
        ("error", "lost_at_start"),
        ("warning", "log_start_offset_above_log_end"),
    ]


def test_leftover_files_are_worth_knowing(directory: Path) -> None:
    for suffix in (".log.deleted", ".index.cleaned", ".timeindex.swap"):
        segment_path(directory, 5, suffix).write_bytes(b"")
    assert codes(directory) == [("info", "leftover_file")] * 3


def test_findings_do_not_depend_on_windows(tmp_path: Path) -> None:
    batches = [batch_v2(plain_records(o, 1, value_size=900)) for o in range(2_000)]
    write_partition(tmp_path, {0: batches})
    assert findings(tmp_path) == []
    batches[1_500] = with_size(batches[1_500], -1)
    segment_path(tmp_path / "orders-0", 0).write_bytes(joined(batches))
    row = only_finding(tmp_path)
    assert (row["severity"], row["next_offset"], row["end_offset"]) == ("error", 1_500, 1_501)
