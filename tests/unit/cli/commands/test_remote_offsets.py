"""Tiered topics: what only remote storage has is said wherever the local start could mislead."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import OffsetOutOfRangeError
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_log_start_offsets, write_partition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.golden import GoldenRoot
    from tests.unit.cli.conftest import Outcome

NOTE = "offsets {} to {} are only in remote storage"
TIERED = [("4.3.0/tiered:archive-0", 0, 145), ("4.3.0/tiered:archive-txn-0", 0, 178)]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Give a log whose first local segment begins at 100."""
    (tmp_path / "remote-log-index-cache").mkdir()
    return write_partition(tmp_path, {100: [batch_v2(plain_records(100, 5, timestamp=1000))]})


def remote_offsets_finding(directory: Path) -> dict[str, Any] | None:
    rows = pylog.read_table(directory, "findings").to_pylist()
    found = [row for row in rows if row["code"] == "remote_offsets"]
    assert len(found) <= 1
    return found[0] if found else None


def write_epochs(directory: Path, *entries: tuple[int, int]) -> None:
    lines = ["0", str(len(entries)), *(f"{epoch} {start}" for epoch, start in entries)]
    (directory / "leader-epoch-checkpoint").write_text("\n".join(lines) + "\n", "utf-8")


@pytest.mark.parametrize(("partition_id", "start", "end"), TIERED)
def test_what_a_broker_has_uploaded_is_a_note_with_its_offsets(
    golden_root: GoldenRoot, partition_id: str, start: int, end: int
) -> None:
    directory = golden_root.partition(partition_id).directory
    row = remote_offsets_finding(directory)
    assert row is not None
    assert (row["severity"], row["path"]) == ("info", str(directory))
    assert (row["next_offset"], row["end_offset"]) == (start, end)
    assert row["message"].startswith(NOTE.format(start, end - 1))


@pytest.mark.parametrize(("partition_id", "start", "end"), TIERED)
@pytest.mark.parametrize("position", ["earliest", pylog.Timestamp(0), -2])
def test_a_read_from_the_beginning_says_what_it_does_not_begin_with(
    golden_root: GoldenRoot,
    caplog: pytest.LogCaptureFixture,
    partition_id: str,
    start: int,
    end: int,
    position: object,
) -> None:
    directory = golden_root.partition(partition_id).directory
    scan = pylog.scan(directory, start=position, columns=["offset"])  # type: ignore[arg-type]
    assert scan.to_table()[0].to_pylist()[0] == end
    (record,) = caplog.records
    topic_partition = partition_id.rpartition(":")[2]
    assert record.getMessage().startswith(f"{topic_partition}: {NOTE.format(start, end - 1)}")


def test_reads_that_begin_in_local_segments_need_no_warning(
    golden_root: GoldenRoot, caplog: pytest.LogCaptureFixture
) -> None:
    directory = golden_root.partition("4.3.0/tiered:archive-0").directory
    for position in (145, 147, "latest", "max_timestamp"):
        pylog.scan(directory, start=position).count()
    assert caplog.records == []
    with pytest.raises(OffsetOutOfRangeError):
        pylog.scan(directory, start=144).count()
    assert NOTE.format(0, 144) in caplog.text


def test_ls_notes_what_is_only_in_remote_storage(
    golden_root: GoldenRoot, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("ls", golden_root.case("4.3.0/tiered"))
    assert done.status == 0
    lines = {line.split()[0]: line for line in done.lines[1:-1]}
    assert lines["archive"].split()[1:4] == ["0", "145", "150"]
    assert NOTE.format(0, 144) in lines["archive"]
    assert NOTE.format(0, 177) in lines["archive-txn"]
    assert "remote storage" not in lines["__remote_log_metadata"]
    found = json.loads(pylog_run("ls", "--json", golden_root.case("4.3.0/tiered")).output)
    notes = {row["topic"]: (len(row["notes"]), row["findings"]) for row in found["partitions"]}
    assert notes == {"__remote_log_metadata": (0, []), "archive": (1, []), "archive-txn": (1, [])}


def test_the_topic_of_remote_log_metadata_is_internal(golden_root: GoldenRoot) -> None:
    directory = pylog.open_directory(golden_root.case("4.3.0/tiered"))
    assert {view.topic for view in directory.select()} == {"archive", "archive-txn"}
    assert len(directory.select(topics=["__remote_log_metadata"])) == 1


def test_the_log_start_offset_checkpoint_gives_where_the_remote_part_begins(
    directory: Path,
) -> None:
    write_epochs(directory, (0, 3), (1, 100))
    write_log_start_offsets(directory.parent, {("orders", 0): 40})
    row = remote_offsets_finding(directory)
    assert row is not None
    assert (row["next_offset"], row["end_offset"]) == (40, 100)
    write_log_start_offsets(directory.parent, {("orders", 0): 102})
    assert remote_offsets_finding(directory) is None


def test_without_that_checkpoint_the_first_leader_epoch_tells_it(directory: Path) -> None:
    assert remote_offsets_finding(directory) is None
    write_epochs(directory, (0, 100))
    assert remote_offsets_finding(directory) is None
    write_epochs(directory, (0, 3), (1, 100))
    row = remote_offsets_finding(directory)
    assert row is not None
    assert (row["next_offset"], row["end_offset"]) == (3, 100)


def test_side_files_that_cannot_be_read_give_no_remote_offsets(directory: Path) -> None:
    (directory.parent / "log-start-offset-checkpoint").write_bytes(b"\xff")
    (directory / "leader-epoch-checkpoint").write_bytes(b"\xff")
    assert remote_offsets_finding(directory) is None
