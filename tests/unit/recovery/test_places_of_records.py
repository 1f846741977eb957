"""Which files of disks can have records, and what is counted in each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.model import TopicPartition
from pylog.recovery.places_of_records import (
    PlaceOfRecords,
    files_with_batches,
    live_partition_of,
    look_through,
)
from tests.support.batches import batch_v2, joined, plain_records
from tests.support.damage import with_flip

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.record.batch_scan import Window

BATCHES = [batch_v2(plain_records(at, 5)) for at in (0, 5)]
DATA = joined(BATCHES)
SIZE = len(BATCHES[0].data)
LOG = "00000000000000000000.log"
ID = "0123456789abcdef0123456789abcdef"

FILES = {
    f"t-0/{LOG}": ("live", TopicPartition("t", 0)),
    f"t-0/{LOG}.deleted": ("other", None),
    f"t-0/{LOG}.swap": ("other", None),
    f"t-0/{LOG}.cleaned": ("other", None),
    "t-0/00000000000000000000.snapshot.deleted": (None, None),
    "t-0/leader-epoch-checkpoint": (None, None),
    f"t-10/{LOG}": ("live", TopicPartition("t", 10)),
    f"t-0.{ID}-delete/{LOG}": ("other", None),
    f"t-0.{ID}-stray/{LOG}": ("other", None),
    f"t-1.{ID}-future/{LOG}": ("other", None),
    f"tt-0/{LOG}": (None, TopicPartition("tt", 0)),
    ".pylog-staged-job-0-0.batches": ("other", None),
    ".pylog-staged-job-0-0.json": (None, None),
    "other.batches": (None, None),
    LOG: (None, None),
}


def test_segments_with_any_suffix_and_staged_batches_are_found(tmp_path: Path) -> None:
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    found = set(files_with_batches(str(tmp_path), ["t"]))
    assert found == {str(tmp_path / name) for name, (kind, _) in FILES.items() if kind}
    for name, (_, place) in FILES.items():
        assert live_partition_of(str(tmp_path / name)) == place, name
    staged = {str(tmp_path / ".pylog-staged-job-0-0.batches")}
    assert set(files_with_batches(str(tmp_path), [])) == staged


def records_in(window: Window) -> int:
    return int(window.headers.record_counts.sum())


@pytest.mark.parametrize(
    ("data", "records", "problem"),
    [
        (b"", 0, None),
        (DATA, 10, None),
        (DATA + bytes(500), 10, None),  # what a broker has preallocated
        (DATA[:-1], 5, f"byte {SIZE}: a batch is cut short by the end of the file"),
        (DATA + b"\0" * 20 + b"\1", 10, f"byte {2 * SIZE}: "),
        (BATCHES[0].data + with_flip(BATCHES[1], 90).data, None, f"byte {SIZE}: "),
        (with_flip(BATCHES[0], 90).data + BATCHES[1].data, 0, "byte 0: "),
        (with_flip(BATCHES[0], 8).data + BATCHES[1].data, 0, "byte 0: "),  # its size
    ],
)
def test_what_cannot_be_looked_through_is_said(
    data: bytes, records: int | None, problem: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "t-3" / LOG
    path.parent.mkdir()
    path.write_bytes(data)
    seen = set()

    def count(place: TopicPartition, window: Window) -> int:
        seen.add(place)
        return records_in(window)

    found = look_through(str(path), count)
    assert found.path == str(path)
    if records is not None:
        assert found.records == records
    assert (found.problem is None) is (problem is None)
    assert (found.problem or "").startswith(problem or "")
    assert seen <= {TopicPartition("t", 3)}


def test_a_file_that_is_gone_or_of_no_partition_is_no_error(tmp_path: Path) -> None:
    gone = look_through(str(tmp_path / "t-0" / LOG), lambda *_: 1)
    assert gone.records == 0
    assert gone.problem is not None
    staged = tmp_path / ".pylog-staged-job-0-0.batches"
    staged.write_bytes(DATA)
    found = look_through(str(staged), lambda place, window: records_in(window) * (place[0] == ""))
    assert found == PlaceOfRecords(str(staged), 10)
