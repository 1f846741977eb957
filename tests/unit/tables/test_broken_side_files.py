"""Every metadata table next to every side file, broken in every way: reported, never hidden."""

from __future__ import annotations

import struct
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.tables import TABLE_NAMES
from tests.support.batches import ABORT, batch_v2, crc32c, joined, marker, plain_records
from tests.support.faults.odd_files import KINDS, deadline, put
from tests.support.log_files import (
    TIME_ENTRY,
    TRANSACTION_ENTRY,
    segment_path,
    write_log_start_offsets,
    write_partition,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.reading.damage import ReadModeName

Rows = list[dict[str, Any]]

BATCHES = [
    batch_v2(plain_records(10, 5, timestamp=1000)),
    batch_v2(
        plain_records(15, 5, timestamp=2000), producer_id=7, base_sequence=3, is_transactional=True
    ),
    marker(20, ABORT, producer_id=7),
]
_SNAPSHOT = struct.pack(">i", 1) + struct.pack(">qhiqiqiq", 7, 0, 2, 9, 0, 1000, -1, -1)
SNAPSHOT = struct.pack(">hI", 1, crc32c(_SNAPSHOT)) + _SNAPSHOT

LOG_START_CHECKPOINT = "log-start-offset-checkpoint"
OFFSET_CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
# Where each side file's trouble shows up: in a table's column, besides a finding's code.
COLUMNS: dict[str, list[tuple[str, str]]] = {
    ".index": [("segments", "offset_index"), ("index_entries", "defect")],
    ".timeindex": [("segments", "time_index"), ("index_entries", "defect")],
    ".txnindex": [("segments", "transaction_index"), ("index_entries", "defect")],
    ".snapshot": [("producers", "defect")],
    "leader-epoch-checkpoint": [("leader_epochs", "defect"), ("partitions", "defects")],
    "partition.metadata": [("partitions", "defects")],
    LOG_START_CHECKPOINT: [("partitions", "defects"), ("cleaning", "defects")],
    **{name: [] for name in OFFSET_CHECKPOINTS},
}
CODES = {
    ".index": "damaged_index",
    ".timeindex": "damaged_time_index",
    ".txnindex": "damaged_transaction_index",
    ".snapshot": "damaged_snapshot",
    "partition.metadata": "damaged_metadata",
}
# As a broker leaves them, too: checkpoints before their first entry, indexes that are preallocated,
# a transaction index whose last entry was not written whole.
SOUND = {
    *((name, "empty") for name in COLUMNS if name not in {".snapshot", "partition.metadata"}),
    (".index", "sparse"),
    (".txnindex", "cut"),
}


def write_side_files(log_directory: Path, directory: Path) -> None:
    segment_path(directory, 10, ".txnindex").write_bytes(TRANSACTION_ENTRY.pack(0, 7, 15, 20, 21))
    segment_path(directory, 10, ".snapshot").write_bytes(SNAPSHOT)
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 10\n", "utf-8")
    text = "version: 0\ntopic_id: 7bGSu7gYRDuEkZTQ2w4F_g"
    (directory / "partition.metadata").write_text(text, "utf-8")
    write_log_start_offsets(log_directory, {("orders", 0): 12, ("orders", 1): 12})
    for name in OFFSET_CHECKPOINTS:
        text = "0\n2\norders 0 15\norders 1 15\n"
        (log_directory / name).write_text(text, "utf-8")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for name in ("orders-0", "orders-1"):
        directory = write_partition(tmp_path, {10: BATCHES}, name=name)
        write_side_files(tmp_path, directory)
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=1\n")
    return tmp_path


def path_of(logs: Path, name: str) -> Path:
    if name.startswith("."):
        return segment_path(logs / "orders-0", 10, name)
    if name in OFFSET_CHECKPOINTS or name == LOG_START_CHECKPOINT:
        return logs / name
    return logs / "orders-0" / name


STRUCTURE = [name for name in TABLE_NAMES if name != "latest"]
"""The tables about structure: where a log's start is not known, nobody can tell its records."""


def tables(logs: Path, mode: ReadModeName = "FAILFAST") -> dict[str, Rows]:
    return {name: pylog.read_table(logs, name, mode=mode).to_pylist() for name in STRUCTURE}


def rows_of_partition(rows: Rows, partition: int) -> Rows:
    return [row for row in rows if row["partition"] == partition]


def reasons_in(rows: Rows, column: str) -> list[str]:
    """Return the reasons that a column gives: texts, lists of texts, or index states."""
    reasons: list[str] = []
    for row in rows:
        value = row[column]
        if isinstance(value, dict):
            value = value["reason"] if value["state"] == "damaged" else None
        reasons += value if isinstance(value, list) else [value] if value else []
    return reasons


def without(rows: Rows, *columns: str) -> Rows:
    return [{name: row[name] for name in row if name not in columns} for row in rows]


def test_sound_side_files_are_not_reported(logs: Path) -> None:
    found = tables(logs)
    assert {row["code"] for row in found["findings"]} == {"high_watermark_below_log_end"}
    for columns in COLUMNS.values():
        for table, column in columns:
            assert reasons_in(found[table], column) == []
    assert [row["log_start_offset"] for row in found["partitions"]] == [12, 12]
    assert [row["begins_before_log_start"] for row in found["transactions"]] == [False, False]


@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.thorough(one_in=5)
def test_a_broken_side_file_is_reported_in_rows_and_hides_nothing(
    logs: Path, name: str, kind: str, mode: str
) -> None:
    sound = tables(logs)
    put(path_of(logs, name), kind)
    with deadline(logs):
        found = tables(logs, mode)  # type: ignore[arg-type]
    is_sound = (name, kind) in SOUND
    for table, column in COLUMNS[name]:
        if mode == "DROPMALFORMED" and name == LOG_START_CHECKPOINT:
            continue  # a warning, and the first segment's base offset
        assert bool(reasons_in(rows_of_partition(found[table], 0), column)) is not is_sound, table
    codes = {row["code"] for row in found["findings"] if row["partition"] in (0, None)}
    assert (CODES.get(name, "damaged_checkpoint") in codes) is not is_sound
    # What no side file can change.
    assert found["batches"] == sound["batches"]
    assert without(found["transactions"], "begins_before_log_start") == without(
        sound["transactions"], "begins_before_log_start"
    )
    assert [row["log_end_offset"] for row in found["partitions"]] == [21, 21]
    # The other partition, which shares the log directory's checkpoints.
    shared = name == LOG_START_CHECKPOINT or name in OFFSET_CHECKPOINTS
    for table in STRUCTURE:
        if not shared:
            assert rows_of_partition(found[table], 1) == rows_of_partition(sound[table], 1), table


def test_what_cannot_be_told_without_a_checkpoint_is_null(logs: Path) -> None:
    (logs / LOG_START_CHECKPOINT).write_bytes(b"\xff")
    rows = pylog.read_table(logs, "partitions").to_pylist()
    for row in rows:
        assert (row["log_start_offset"], row["last_stable_offset"]) == (None, None)
        assert (row["log_end_offset"], row["segments"]) == (21, 1)
        (defect,) = row["defects"]
        assert defect.startswith(f"{logs / LOG_START_CHECKPOINT} at byte 0: text file is not utf-8")
    transactions = pylog.read_table(logs, "transactions").to_pylist()
    assert [row["begins_before_log_start"] for row in transactions] == [None, None]


def test_several_broken_side_files_are_all_reported_in_one_row(logs: Path) -> None:
    for name in ("partition.metadata", "leader-epoch-checkpoint"):
        (logs / "orders-0" / name).write_bytes(b"nonsense\n")
    rows = pylog.read_table(logs, "partitions").to_pylist()
    assert [len(row["defects"]) for row in rows] == [2, 0]
    assert (rows[0]["topic_id"], rows[0]["leader_epoch"]) == (None, None)
    assert (rows[0]["log_start_offset"], rows[0]["last_stable_offset"]) == (12, 21)


def test_a_damaged_log_is_a_value_of_the_partitions_row(logs: Path) -> None:
    path = segment_path(logs / "orders-0", 10)
    path.write_bytes(joined(BATCHES) + b"\xee" * 100)
    first, second = pylog.read_table(logs, "partitions").to_pylist()
    assert (first["log_start_offset"], first["log_end_offset"]) == (12, None)
    (defect,) = first["defects"]
    assert defect.startswith(f"{path} at byte {len(joined(BATCHES))}: ")
    assert (second["log_end_offset"], second["defects"]) == (21, [])
    (epoch,) = pylog.read_table(logs, "leader_epochs", assign={"orders": [0]}).to_pylist()
    assert (epoch["epoch"], epoch["start_offset"], epoch["end_offset"]) == (0, 10, None)
    assert epoch["defect"] == defect


def test_entries_of_a_damaged_index_come_with_a_row_that_says_so(logs: Path) -> None:
    path = segment_path(logs / "orders-0", 10, ".timeindex")
    path.write_bytes(TIME_ENTRY.pack(2000, 9) + TIME_ENTRY.pack(1000, 10))
    rows = pylog.read_table(logs, "index_entries", assign={"orders": [0]}).to_pylist()
    described = [
        (row["entry"], row["offset"], row["defect"]) for row in rows if row["file"] == path.name
    ]
    assert described[:2] == [(0, 19, None), (1, 20, None)]
    assert described[2][:2] == (None, None)
    assert described[2][2].startswith("last index timestamp 1000 is below the first one, 2000")


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex"])
def test_huge_index_files_take_little_memory(logs: Path, suffix: str) -> None:
    path = segment_path(logs / "orders-0", 10, suffix)
    with path.open("r+b") as file:
        file.truncate(12 << 26)
        file.seek(-8, 2)
        file.write(b"\x01" * 8)  # so that what precedes it is not a preallocated tail
    tracemalloc.start()
    try:
        for table in ("segments", "index_entries", "findings", "transactions"):
            assert pylog.read_table(logs, table).num_rows > 0
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()
