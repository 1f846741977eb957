"""A single ``.log`` file as a path: the offsets of that segment, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import CorruptRecordError, LogDirectoryError
from tests.support.batches import ABORT, COMMIT, batch_v2, marker, plain_records
from tests.support.log_files import segment_path, write_log_start_offsets, write_partition

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Three segments of five records each."""
    segments = {base: [batch_v2(plain_records(base, 5))] for base in (0, 5, 10)}
    return write_partition(tmp_path, segments, name="orders-0")


def offsets(*paths: Path | str, **options: object) -> list[int]:
    table = pylog.scan(paths, columns=["offset"], **options).to_table()  # type: ignore[arg-type]
    return list(table["offset"].to_pylist())


@pytest.mark.parametrize("base", [0, 5, 10])
def test_a_log_file_is_its_segments_offsets(directory: Path, base: int) -> None:
    path = segment_path(directory, base)
    assert offsets(path) == [*range(base, base + 5)]
    assert pylog.scan(path).count() == 5
    row = pylog.scan(path).to_table().to_pylist()[0]
    assert (row["topic"], row["partition"]) == ("orders", 0)


def test_a_log_file_may_be_named_from_its_own_directory(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(directory)
    assert offsets("00000000000000000005.log") == [*range(5, 10)]


def test_several_log_files_of_a_partition_are_read_in_offset_order(directory: Path) -> None:
    files = [segment_path(directory, base) for base in (10, 0)]
    assert offsets(*files) == [*range(5), *range(10, 15)]
    assert offsets(*files, segment_path(directory, 5), files[0]) == [*range(15)]
    assert offsets(files[0], directory) == offsets(directory, files[0]) == [*range(15)]


def test_positions_are_those_of_the_whole_log(directory: Path) -> None:
    path = segment_path(directory, 5)
    assert offsets(path, start=7) == [7, 8, 9]
    assert offsets(path, start=2, end=6) == [5]
    assert offsets(path, start=12) == []


def test_records_below_the_log_start_offset_are_not_read(directory: Path) -> None:
    write_log_start_offsets(directory.parent, {("orders", 0): 7})
    assert offsets(segment_path(directory, 0)) == []
    assert offsets(segment_path(directory, 5)) == [7, 8, 9]


@pytest.mark.parametrize(("kind", "expected"), [(ABORT, []), (COMMIT, [0, 1, 2])])
def test_a_transaction_ends_with_its_marker_in_a_later_segment(
    tmp_path: Path, kind: int, expected: list[int]
) -> None:
    transactional = batch_v2(plain_records(0, 3), producer_id=9, is_transactional=True)
    ended = marker(3, kind, producer_id=9)
    path = write_partition(tmp_path, {0: [transactional], 3: [ended]}, name="orders-0")
    first = segment_path(path, 0)
    assert offsets(first) == [0, 1, 2]
    assert offsets(first, isolation="read_committed") == expected


def test_a_file_that_is_torn_before_the_last_segment_is_damage(directory: Path) -> None:
    path = segment_path(directory, 0)
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(CorruptRecordError):
        offsets(path)
    assert offsets(segment_path(directory, 5)) == [*range(5, 10)]


def test_a_file_in_a_directory_that_names_no_topic_is_refused(directory: Path) -> None:
    copied = directory.rename(directory.parent / "copied")
    with pytest.raises(LogDirectoryError) as caught:
        offsets(segment_path(copied, 0))
    assert str(caught.value) == (
        f"{copied}: segment files in a directory whose name does not say which partition it is: "
        "directory name 'copied' is not <topic>-<partition>; give it such a name, or make a link "
        "to it that has one"
    )


def test_a_file_that_is_not_there_is_reported(directory: Path) -> None:
    path = segment_path(directory, 99)
    with pytest.raises(LogDirectoryError, match=f"^{path}: there is no such file$"):
        offsets(path)


def test_a_segment_that_is_gone_after_it_was_named_is_an_error(directory: Path) -> None:
    scan = pylog.scan(segment_path(directory, 0))
    segment_path(directory, 0).unlink()
    scan.partitions[:] = [view.refreshed() for view in scan.partitions]
    with pytest.raises(LogDirectoryError, match="is not part of the log any more"):
        scan.count()


def test_tables_and_listings_are_about_whole_partitions(directory: Path) -> None:
    path = segment_path(directory, 0)
    for refuse in (pylog.open_directory, pylog.list_partitions):
        with pytest.raises(LogDirectoryError, match="not a directory; give a log directory"):
            refuse(path)
