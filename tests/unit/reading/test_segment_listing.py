"""Which segments count while compaction replaces some, and while the directory changes."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import LogDirectoryError
from pylog.files import storage
from pylog.reading import log_end, segment_listing
from pylog.reading.segments import LogSegmentView
from tests.support.batches import Built, batch_v2, joined, plain_records
from tests.support.log_files import (
    offset_entries,
    offset_index_bytes,
    segment_path,
    write_partition,
)
from tests.support.reading import scanned
from tests.unit.reading.listed import OLD, cleaned, offsets

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pylog.files.byte_source import ByteSource
    from pylog.files.storage import DirectoryEntry
    from pylog.log_file.proved_positions import ProvedPosition
    from tests.support.golden import GoldenRoot


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_partition(tmp_path, OLD)


def write_log_file(
    directory: Path, base_offset: int, batches: Sequence[Built], suffix: str
) -> None:
    segment_path(directory, base_offset, f".log{suffix}").write_bytes(joined(batches))


def test_a_swap_file_takes_the_place_of_the_segments_in_its_range(directory: Path) -> None:
    write_log_file(directory, 0, cleaned(1, 4, 9), ".swap")
    assert offsets(directory) == [1, 4, 9, *range(10, 20)]
    (view,) = pylog.open_directory(directory)
    assert [(each.base_offset, each.state) for each in view.segments] == [
        (0, ".swap"),
        (10, ""),
        (15, ""),
    ]


def test_swap_files_take_the_place_of_all_between_them(directory: Path) -> None:
    write_log_file(directory, 0, cleaned(3), ".swap")
    write_log_file(directory, 10, cleaned(12), ".swap")
    assert offsets(directory) == [3, 12, *range(15, 20)]


def test_an_empty_swap_file_takes_the_place_of_the_segment_of_its_name(directory: Path) -> None:
    write_log_file(directory, 5, [], ".swap")
    assert offsets(directory) == [*range(5), *range(10, 20)]


def test_a_swap_file_whose_segments_are_gone_already_counts(directory: Path) -> None:
    write_log_file(directory, 0, cleaned(2, 8), ".swap")
    for base in (0, 5):
        for path in directory.glob(f"{base:020d}.*"):
            if not path.name.endswith(".swap"):
                path.rename(path.with_name(path.name + ".deleted"))
    assert offsets(directory) == [2, 8, *range(10, 20)]


@pytest.mark.parametrize(
    ("cleaned_bases", "is_counted"),
    [((), True), ((5,), True), ((0,), False), ((0, 10), False), ((10, 15), True)],
)
def test_a_swap_file_at_or_above_a_cleaned_one_does_not_count(
    directory: Path, cleaned_bases: tuple[int, ...], *, is_counted: bool
) -> None:
    write_log_file(directory, 0, cleaned(7), ".swap")
    for base in cleaned_bases:
        write_log_file(directory, base, cleaned(base), ".cleaned")
    assert offsets(directory) == ([7, *range(10, 20)] if is_counted else list(range(20)))


def test_the_lowest_cleaned_file_decides_also_if_that_is_of_offset_0(directory: Path) -> None:
    write_log_file(directory, 0, cleaned(0), ".cleaned")
    write_log_file(directory, 10, cleaned(10), ".cleaned")
    write_log_file(directory, 5, cleaned(7), ".swap")
    assert offsets(directory) == list(range(20))


def test_a_cleaned_index_counts_as_a_cleaned_file(directory: Path) -> None:
    write_log_file(directory, 0, cleaned(7), ".swap")
    segment_path(directory, 0, ".index.cleaned").write_bytes(b"")
    assert offsets(directory) == list(range(20))


@pytest.mark.parametrize("case", ["4.3.0/compacted-keep-tombstones", "0.11.0.3/compacted-txn"])
def test_swap_files_give_what_kafka_serves_after_the_compaction(
    golden_root: GoldenRoot, tmp_path: Path, case: str
) -> None:
    name = "profiles-txn-0" if case.endswith("txn") else "profiles-0"
    before = golden_root.partition(f"{case}:before/{name}").directory
    after = golden_root.partition(f"{case}:after/{name}").directory
    directory = tmp_path / name
    shutil.copytree(before, directory)
    directory.chmod(0o755)
    (*replaced, _) = sorted(after.glob("*.log"))
    for path in replaced:
        for each in after.glob(f"{path.stem}.*"):
            shutil.copy(each, directory / f"{each.name}.swap")
    for isolation in ("read_uncommitted", "read_committed"):
        found = scanned(directory, isolation=isolation)
        expected = scanned(after, isolation=isolation)
        last = [each.offset for each in found][-1]
        assert [each for each in expected if each.offset <= last] == found
        assert len(found) < len(scanned(before, isolation=isolation))


def test_a_crash_of_the_cleaner_leaves_what_kafka_serves_after_recovery(
    golden_root: GoldenRoot,
) -> None:
    before = golden_root.partition("4.3.0/crash-mid-clean:before/mid-clean-0")
    after = golden_root.partition("4.3.0/crash-mid-clean:after/mid-clean-0")
    assert list(before.directory.glob("*.cleaned"))
    assert scanned(before.directory) == scanned(after.directory)


@dataclass
class Listings:
    """Does something between the listing of a directory and what is done with it."""

    meanwhile: list[Callable[[], object]]
    looks: int = 0

    def list_directory(self, location: str) -> Sequence[DirectoryEntry]:
        entries = storage.list_directory(location)
        self.looks += 1
        if self.meanwhile:
            self.meanwhile.pop(0)()
        return entries


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Listings:
    listings = Listings([])
    monkeypatch.setattr(segment_listing, "list_directory", listings.list_directory)
    return listings


def test_a_segment_that_is_renamed_between_listing_and_stat_is_not_left_out(
    directory: Path, between: Listings
) -> None:
    write_log_file(directory, 0, cleaned(1, 4, 9), ".swap")

    def finish() -> None:
        for base in (0, 5):
            path = segment_path(directory, base)
            path.rename(path.with_name(path.name + ".deleted"))
        segment_path(directory, 0, ".log.swap").rename(segment_path(directory, 0))

    between.meanwhile.append(finish)
    found = segment_listing.list_segments(str(directory)).segments
    assert [(each.base_offset, each.state) for each in found] == [(0, ""), (10, ""), (15, "")]
    assert between.looks == 2


def test_a_segment_that_is_rolled_while_the_directory_is_listed_is_seen(
    directory: Path, between: Listings
) -> None:
    between.meanwhile.append(lambda: write_log_file(directory, 20, cleaned(20), ""))
    found = segment_listing.list_segments(str(directory)).segments
    assert [each.base_offset for each in found] == [0, 5, 10, 15, 20]


def test_a_swap_file_that_is_renamed_before_it_is_read_is_looked_for_again(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log_file(directory, 0, cleaned(1, 4, 9), ".swap")
    opened = LogSegmentView.open_log

    def renamed_first(self: LogSegmentView) -> ByteSource:
        swap = segment_path(directory, 0, ".log.swap")
        if swap.exists():
            for base in (0, 5):
                segment_path(directory, base).unlink()
            swap.rename(segment_path(directory, 0))
        return opened(self)

    monkeypatch.setattr(LogSegmentView, "open_log", renamed_first)
    found = segment_listing.list_segments(str(directory)).segments
    assert [(each.base_offset, each.state) for each in found] == [(0, ""), (10, ""), (15, "")]


def test_a_directory_that_never_stops_changing_is_reported(
    directory: Path, between: Listings
) -> None:
    def touch() -> None:
        (directory / f"{between.looks}.tmp").write_bytes(b"")
        between.meanwhile.append(touch)

    between.meanwhile.append(touch)
    with pytest.raises(LogDirectoryError, match="files come and go faster than the directory can"):
        segment_listing.list_segments(str(directory))


def test_a_log_that_grows_while_its_end_is_looked_for_ends_where_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = [batch_v2(plain_records(offset, 5)) for offset in range(0, 30, 5)]
    directory = write_partition(tmp_path, {0: batches[:2]})
    looked_up = LogSegmentView.last_indexed_position

    def grown_first(
        self: LogSegmentView, source: ByteSource, end: int, *, is_sound: bool
    ) -> ProvedPosition:
        with segment_path(directory, 0).open("ab") as file:
            file.write(joined(batches[2:]))
        entries = offset_index_bytes(offset_entries(batches), 0)
        segment_path(directory, 0, ".index").write_bytes(entries)
        return looked_up(self, source, end, is_sound=is_sound)

    (view,) = pylog.open_directory(directory)
    monkeypatch.setattr(LogSegmentView, "last_indexed_position", grown_first)
    found = log_end.find_log_end(view.segments[0])
    assert (found.end_position, found.defect) == (len(joined(batches[:2])), None)
    assert found.last is not None
    assert found.last.header.last_offset == 9
