"""A file is known by more than its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import SegmentVanishedError
from tests.support.batches import joined
from tests.support.log_files import segment_path, write_partition
from tests.unit.reading.listed import OLD, cleaned, offsets

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_partition(tmp_path, OLD)


def test_another_file_of_the_same_name_is_not_read_as_the_one_listed(directory: Path) -> None:
    (view,) = pylog.open_directory(directory)
    replaced = segment_path(directory, 5)
    other = replaced.with_suffix(".new")
    other.write_bytes(joined(cleaned(6)))
    other.rename(replaced)
    with pytest.raises(SegmentVanishedError, match="file was replaced"):
        view.segments[1].open_log()
    assert offsets(directory) == [*range(5), 6, *range(10, 20)]
