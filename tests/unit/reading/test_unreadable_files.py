"""Reading logs in which something lies that is not a file: FIFOs, devices, links, directories."""

from __future__ import annotations

import errno
import logging
import os
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import CorruptRecordError, LogDirectoryError, UnreadableFileError
from pylog.files.byte_source import LocalFile
from tests.support.batches import (
    ABORT,
    COMMIT,
    batch_v2,
    joined,
    marker,
    plain_records,
)
from tests.support.faults.odd_files import LINKS, NOT_READABLE, deadline, put
from tests.support.log_files import Transactions, segment_path, write_partition, write_topic_id

if TYPE_CHECKING:
    from pathlib import Path

SEGMENTS = {
    base: [
        batch_v2(plain_records(base, 3, timestamp=1000 + base)),
        batch_v2(
            plain_records(base + 3, 5, timestamp=1000 + base), producer_id=7, is_transactional=True
        ),
        marker(base + 8, ABORT if base else COMMIT, producer_id=7),
        batch_v2(plain_records(base + 9, 1, timestamp=1009 + base)),
    ]
    for base in (0, 10, 20)
}
INDEXES = (".index", ".timeindex", ".txnindex", ".snapshot")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    found = write_partition(tmp_path, SEGMENTS)
    known = Transactions([built for batches in SEGMENTS.values() for built in batches])
    for base in (10, 20):
        content = known.index_bytes(base, base + 10)
        segment_path(found, base, ".txnindex").write_bytes(content)
    write_partition(tmp_path, {0: SEGMENTS[0]}, name="orders-1")
    return found


def offsets(path: Path, **options: Any) -> list[int]:  # noqa: ANN401 - of pylog.scan
    found: list[int] = pylog.scan(path, columns=["offset"], **options).to_table()[0].to_pylist()
    return found


def data(*bases: int) -> list[int]:
    return [offset for base in bases for offset in (*range(base, base + 8), base + 9)]


@pytest.mark.parametrize("kind", NOT_READABLE)
@pytest.mark.parametrize("suffix", INDEXES)
@pytest.mark.parametrize("base", [0, 10, 20])
@pytest.mark.thorough(one_in=5)
def test_a_hint_that_cannot_be_read_changes_no_row(
    directory: Path, suffix: str, kind: str, base: int
) -> None:
    questions: list[dict[str, Any]] = [
        {},
        {"isolation": "read_committed"},
        {"start": 14, "end": 23},
        {"start": pylog.Timestamp(1019)},
        {"start": "max_timestamp"},
        {"max_partition_bytes": 100},
    ]
    expected = [offsets(directory, **question) for question in questions]
    assert expected[:2] == [
        data(0, 10, 20),
        [*data(0), 10, 11, 12, 19, 20, 21, 22, 29],
    ]
    put(segment_path(directory, base, suffix), kind)
    with deadline(directory):
        assert [offsets(directory, **question) for question in questions] == expected


@pytest.mark.parametrize("kind", NOT_READABLE)
@pytest.mark.parametrize("base", [0, 10, 20])
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_a_log_file_that_cannot_be_read_is_an_error_with_its_name(
    directory: Path, base: int, kind: str, isolation: str
) -> None:
    path = segment_path(directory, base)
    put(path, kind)
    with deadline(directory):
        with pytest.raises(UnreadableFileError) as caught:
            offsets(directory, isolation=isolation)
        assert caught.value.path == str(path)
        with pytest.raises(UnreadableFileError):
            pylog.scan(directory).count()
        assert offsets(directory.parent, assign={"orders": [1]}) == data(0)


@pytest.mark.parametrize("kind", NOT_READABLE)
def test_a_log_file_outside_the_range_asked_for_is_not_looked_at(
    directory: Path, kind: str
) -> None:
    put(segment_path(directory, 0), kind)
    with deadline(directory):
        assert offsets(directory, start=10) == data(10, 20)


@pytest.mark.parametrize("kind", NOT_READABLE)
@pytest.mark.parametrize(
    ("base", "end_offset"), [(0, 10), (10, 20), (20, None)], ids=["first", "middle", "last"]
)
def test_a_log_file_that_cannot_be_read_is_reported_where_damage_is_skipped(
    directory: Path, base: int, end_offset: int | None, kind: str
) -> None:
    path = segment_path(directory, base)
    put(path, kind)
    with deadline(directory):
        scan = pylog.scan(directory, mode="DROPMALFORMED", columns=["offset"])
        rest = [each for each in (0, 10, 20) if each != base]
        assert scan.to_table()[0].to_pylist() == data(*rest)
        (found,) = scan.damage.ranges
        assert (found.path, found.next_offset, found.end_offset) == (str(path), base, end_offset)
        assert f"{path}: cannot be read; " in str(found)
        assert "damaged" not in str(found)
        assert pylog.scan(directory, mode="DROPMALFORMED").count() == 18
        options: dict[str, Any] = {"mode": "PERMISSIVE", "columns": ["offset", "_corrupt_record"]}
        rows = pylog.scan(directory, **options).to_table().to_pylist()
        assert [row["offset"] for row in rows].count(None) == 1
        committed = pylog.scan(directory, mode="DROPMALFORMED", isolation="read_committed")
        assert set(committed.to_table()["offset"].to_pylist()) <= set(data(*rest))
        assert len(committed.damage.ranges) == 1
        for start in (pylog.Timestamp(1000), "max_timestamp"):
            found_offsets = offsets(directory, mode="DROPMALFORMED", start=start)
            assert set(found_offsets) <= set(data(*rest))


@pytest.mark.parametrize("kind", NOT_READABLE)
def test_the_only_log_file_that_cannot_be_read_is_not_taken_for_an_empty_one(
    directory: Path, kind: str
) -> None:
    path = segment_path(directory.parent / "orders-1", 0)
    put(path, kind)
    with deadline(directory.parent):
        with pytest.raises(UnreadableFileError):
            offsets(directory.parent, assign={"orders": [1]})
        scan = pylog.scan(path.parent, mode="DROPMALFORMED", columns=["offset"])
        assert scan.to_table().num_rows == 0
        assert [each.path for each in scan.damage.ranges] == [str(path)]


def test_a_last_segment_of_which_nothing_is_sound_is_reported(directory: Path) -> None:
    path = segment_path(directory, 20)
    path.write_bytes(b"\xee" * 500)
    scan = pylog.scan(directory, mode="DROPMALFORMED", columns=["offset"])
    assert scan.to_table()[0].to_pylist() == data(0, 10)
    (found,) = scan.damage.ranges
    assert (found.path, found.position, found.end_position) == (str(path), 0, 500)
    assert offsets(directory, mode="DROPMALFORMED", end=15) == [*data(0), *range(10, 15)]


@pytest.mark.parametrize("kind", NOT_READABLE)
def test_a_log_file_that_cannot_be_read_is_a_finding(directory: Path, kind: str) -> None:
    path = segment_path(directory, 10)
    put(path, kind)
    with deadline(directory):
        rows = pylog.read_table(directory, "findings").to_pylist()
        found = [row for row in rows if row["severity"] == "error"]
        assert [
            (row["code"], row["path"], row["next_offset"], row["end_offset"]) for row in found
        ] == [("unreadable", str(path), 10, 20)]
        (row,) = pylog.read_table(directory, "partitions").to_pylist()
        assert [defect.startswith(f"{path}: ") for defect in row["defects"]] == [True]
        assert row["log_end_offset"] == 30
        for table in ("segments", "batches", "transactions"):
            with pytest.raises(UnreadableFileError):
                pylog.read_table(directory, table)
        bases = pylog.read_table(directory, "batches", mode="DROPMALFORMED")["base_offset"]
        assert [base // 10 for base in bases.to_pylist()] == [0] * 4 + [2] * 4


def test_links_to_segments_on_another_disk_are_read(directory: Path) -> None:
    disk = directory.parent.parent / "disk"
    disk.mkdir(exist_ok=True)
    for suffix in (".log", ".index"):
        path = segment_path(directory, 0, suffix)
        path.rename(disk / path.name)
        path.symlink_to(disk / path.name)
    assert offsets(directory) == data(0, 10, 20)
    assert pylog.read_table(directory, "findings").num_rows == 0


@pytest.mark.parametrize("target", ["orders-9", "nowhere"], ids=["circular", "broken"])
def test_a_partition_that_is_a_link_to_nowhere_is_not_passed_over(
    directory: Path, target: str
) -> None:
    (directory.parent / "orders-9").symlink_to(directory.parent / target)
    logs = directory.parent
    assert [view.partition for view in pylog.open_directory(logs)] == [0, 1, 9]
    with pytest.raises(LogDirectoryError, match="orders-9"):
        pylog.scan(logs).count()
    assert offsets(logs, assign={"orders": [1]}) == data(0)
    rows = pylog.read_table(logs, "partitions").to_pylist()
    assert [row["log_end_offset"] for row in rows] == [30, 10, None]
    assert [len(row["defects"]) for row in rows] == [0, 0, 1]
    found = pylog.read_table(logs, "findings").to_pylist()
    assert [(row["severity"], row["code"], row["partition"]) for row in found] == [
        ("error", "unreadable", 9)
    ]
    with pytest.raises(LogDirectoryError):
        pylog.read_table(logs, "segments")


def test_what_keeps_a_partition_from_being_read_is_a_warning_where_damage_is_skipped(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logs = directory.parent
    (logs / "orders-9").symlink_to(logs / "nowhere")
    for table in ("segments", "batches", "transactions", "producers", "leader_epochs"):
        caplog.clear()
        rows = pylog.read_table(logs, table, mode="DROPMALFORMED").to_pylist()
        assert 9 not in {row["partition"] for row in rows}
        (record,) = caplog.records
        assert record.levelno == logging.WARNING
        assert f"table {table} has not all of orders-9: " in record.getMessage()


def test_index_files_without_a_log_are_an_error_and_a_finding(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for base in SEGMENTS:
        segment_path(directory, base).unlink()
    for path in (directory, directory.parent):
        with pytest.raises(CorruptRecordError, match=r"no \.log file is here, but index files"):
            offsets(path)
    assert offsets(directory, mode="DROPMALFORMED") == []
    assert "the records are gone" in caplog.text
    (row,) = pylog.read_table(directory, "findings").to_pylist()
    assert (row["severity"], row["code"], row["next_offset"]) == ("error", "missing_log", 0)
    assert "have no .log file beside them, at base offsets 0, 10, 20" in row["message"]
    first, second = pylog.read_table(directory.parent, "partitions").to_pylist()
    assert (first["log_end_offset"], len(first["defects"])) == (None, 1)
    assert (second["log_end_offset"], second["defects"]) == (10, [])


@pytest.mark.parametrize(
    "names", [[".index"], [".timeindex"], [".index", ".timeindex"]], ids=" ".join
)
@pytest.mark.parametrize("has_metadata", [True, False])
def test_index_files_that_were_made_for_an_empty_log_are_no_loss(
    tmp_path: Path, names: list[str], *, has_metadata: bool
) -> None:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    if has_metadata:
        write_topic_id(directory, "AAAAAAAAAAAAAAAAAAAAAQ")
    for name in names:
        segment_path(directory, 0, name).write_bytes(bytes(240))
    assert offsets(directory) == []
    (row,) = pylog.read_table(directory, "findings").to_pylist()
    assert (row["severity"], row["code"]) == ("warning", "missing_log")
    assert row["message"].endswith("they were made for an empty log, and have no entry")


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({(0, ".index"): bytes(240), (0, ".timeindex"): b"\1" * 24 + bytes(216)}, "an entry"),
        ({(0, ".index"): b"\1" * 16 + bytes(224)}, "an entry"),
        ({(0, ".index"): b""}, "closed with the log"),
        ({(0, ".index"): bytes(240), (0, ".timeindex"): b""}, "closed with the log"),
        ({(10, ".index"): bytes(240)}, "records before it"),
        ({(0, ".index"): bytes(240), (10, ".index"): bytes(240)}, "a second segment"),
        ({(0, ".index"): bytes(240), (5, ".snapshot"): b""}, "producers have written"),
        ({(0, ".index"): bytes(240), (0, ".txnindex"): b""}, "a transaction was aborted"),
        ({(0, ".index"): bytes(240), (0, ".log.deleted"): b""}, "a segment was deleted"),
        ({(0, ".index"): bytes(240), "leader-epoch-checkpoint": b"0\n0\n"}, "a leader"),
    ],
)
def test_other_index_files_without_a_log_are_a_loss(
    tmp_path: Path, files: dict[tuple[int, str] | str, bytes], why: str
) -> None:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    for name, content in files.items():
        path = directory / name if isinstance(name, str) else segment_path(directory, *name)
        path.write_bytes(content)
    with pytest.raises(CorruptRecordError, match="the records are gone"):
        pytest.fail(f"{offsets(directory)}, although there was {why}")


def test_indexes_without_their_log_file_show_that_the_first_segment_is_gone(
    directory: Path,
) -> None:
    segment_path(directory, 0).unlink()
    rows = pylog.read_table(directory, "findings").to_pylist()
    assert [(row["severity"], row["code"], row["next_offset"]) for row in rows] == [
        ("warning", "missing_log", 0),
        ("error", "missing_segment", 0),
    ]
    assert offsets(directory) == data(10, 20)


def test_indexes_of_segments_that_a_compaction_replaced_are_not_without_a_log(
    directory: Path,
) -> None:
    segment_path(directory, 10).unlink()
    segment_path(directory, 0).unlink()
    content = joined([*SEGMENTS[0], *SEGMENTS[10]])
    segment_path(directory, 0, ".log.swap").write_bytes(content)
    codes = [row["code"] for row in pylog.read_table(directory, "findings").to_pylist()]
    assert "missing_log" not in codes
    assert offsets(directory) == data(0, 10, 20)


@pytest.mark.parametrize("name", ["0.log", "0" * 21 + ".log", "\u0660" * 20 + ".log", "-1.log"])
def test_a_file_with_nearly_the_name_of_a_segment_is_a_finding(directory: Path, name: str) -> None:
    (directory / name).write_bytes(joined(SEGMENTS[0]))
    assert offsets(directory) == data(0, 10, 20)
    (row,) = pylog.read_table(directory, "findings").to_pylist()
    assert (row["severity"], row["code"]) == ("error", "misnamed_log")
    assert row["path"] == str(directory / name)


def test_a_disk_that_fails_is_a_finding_of_its_partition(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = segment_path(directory, 10)
    sound = LocalFile.read_into

    def failing(file: LocalFile, position: int, buffer: memoryview) -> int:
        if file.path == str(path):
            reason = f"cannot read {len(buffer)} bytes: {os.strerror(errno.EIO)}"
            raise UnreadableFileError(reason, file.path, position)
        return sound(file, position, buffer)

    monkeypatch.setattr(LocalFile, "read_into", failing)
    segment_path(directory.parent / "orders-1", 0, ".index").unlink()
    found = pylog.read_table(directory.parent, "findings").to_pylist()
    rows = {(row["partition"], row["severity"], row["code"]): row for row in found}
    assert (1, "warning", "missing_index") in rows
    assert rows[0, "error", "unreadable"]["path"] == str(path)
    assert "Input/output error" in rows[0, "error", "unreadable"]["message"]


@pytest.mark.parametrize("kind", LINKS)
def test_a_directory_that_cannot_be_listed_holds_up_no_other_one(
    directory: Path, kind: str
) -> None:
    path = directory.parent / "aaa-0"  # the first one that is planned
    put(path, kind)
    with pytest.raises(LogDirectoryError):
        offsets(directory.parent)
    questions: list[tuple[dict[str, Any], int]] = [
        ({}, 36),
        ({"where": pylog.RecordFilter(min_timestamp=1010)}, 18),
        ({"start": pylog.Timestamp(1005)}, 20),
        ({"isolation": "read_committed"}, 26),
        ({"start": "latest"}, 0),
        ({"fail_on_data_loss": False}, 36),
    ]
    for question, rows in questions:
        scan = pylog.scan(directory.parent, mode="DROPMALFORMED", columns=["offset"], **question)
        assert scan.to_table().num_rows == rows
        (found,) = scan.damage.ranges
        assert str(found).startswith(
            f"{path}: cannot be read; records from offset 0 on are missing: "
        )
    scan = pylog.scan(directory.parent, mode="PERMISSIVE", columns=["topic", "_corrupt_record"])
    table = scan.to_table().to_pylist()
    assert [row["topic"] for row in table if row["_corrupt_record"] is not None] == ["aaa"]
    assert pylog.scan(directory.parent, mode="DROPMALFORMED").count() == 36


@pytest.mark.parametrize("kind", NOT_READABLE)
def test_nothing_is_said_of_an_end_that_nobody_could_read(directory: Path, kind: str) -> None:
    (directory.parent / "replication-offset-checkpoint").write_text("0\n1\norders 0 30\n")
    put(segment_path(directory, 20), kind)
    with deadline(directory):
        rows = pylog.read_table(directory, "findings").to_pylist()
    codes = {row["code"] for row in rows if row["partition"] == 0}
    assert "unreadable" in codes
    assert not [each for each in codes if each.endswith("log_end")]
