"""What is done for each segment does not list the directory of all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pylog
from pylog.files import disk
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def listings_of_a_start(directory: Path, segments: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how often the directory is listed when a start tries to recover all segments."""
    built = {each: [batch_v2(plain_records(each, 1))] for each in range(segments)}
    partition = write_partition(directory, built)
    listed: list[str] = []
    scandir = disk.scandir

    def counting(path: str) -> object:
        listed.append(path)
        return scandir(path)

    with monkeypatch.context() as patch:
        patch.setattr(disk, "scandir", counting)
        [report] = pylog.doctor(directory).partitions
    assert report.start is not None
    assert report.start.log_end_offset == segments
    return sum(each.endswith(partition.name) for each in listed)


def test_a_start_lists_a_directory_as_often_for_many_segments_as_for_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = (
        listings_of_a_start(tmp_path / str(count), count, monkeypatch) for count in (3, 12)
    )
    assert 0 < few == many
