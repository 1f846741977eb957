"""What interrupted changes leave in a directory, and what a load makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.errors import UnexpectedFileError
from tests.unit.log.loaded_logs import file_of, load, names, owned, values
from tests.unit.log.owned_log import OwnedLog, one_batch

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["owned"]


def test_indexes_without_a_log_are_removed(owned: OwnedLog) -> None:
    for suffix in (".index", ".timeindex", ".txnindex"):
        file_of(owned, 100, suffix).write_bytes(bytes(24))
    load(owned, is_clean=True, recovery_point=12)
    assert names(owned, f"{100:020d}*") == []
    assert owned.base_offsets == [0, 3, 6, 9]


def test_deleted_and_cleaned_files_are_removed(owned: OwnedLog) -> None:
    left = [
        f"{base:020d}{suffix}{state}"
        for base, state in ((0, ".deleted"), (3, ".deleted"), (20, ".cleaned"))
        for suffix in (".log", ".index", ".timeindex", ".txnindex")
    ]
    left.append(f"{3:020d}.snapshot.deleted")
    for name in left:
        (owned.directory / name).write_bytes(b"")
    load(owned, is_clean=True, recovery_point=12)
    assert set(names(owned)) & set(left) == set()
    assert values(owned) == [b"%02d" % number for number in range(12)]


def swap(owned: OwnedLog, base_offset: int, kept: list[int]) -> None:
    """Leave a ``.log.swap`` of what compaction has kept, with its indexes."""
    data = b"".join(one_batch(b"%02d" % each, base_offset=each) for each in kept)
    file_of(owned, base_offset, ".log.swap").write_bytes(data)
    file_of(owned, base_offset, ".index.swap").write_bytes(b"")
    file_of(owned, base_offset, ".timeindex.swap").write_bytes(b"")


def test_a_swap_file_replaces_the_segments_in_its_range(owned: OwnedLog) -> None:
    owned.log.close()
    swap(owned, 0, [1, 4])
    load(owned, is_clean=False, recovery_point=12)
    assert owned.base_offsets == [0, 6, 9]
    assert values(owned) == [b"01", b"04"] + [b"%02d" % number for number in range(6, 12)]
    assert names(owned, "*.swap") == []


def test_swap_files_of_a_rewrite_that_was_not_complete_go(owned: OwnedLog) -> None:
    owned.log.close()
    swap(owned, 3, [4])
    file_of(owned, 0, ".log.cleaned").write_bytes(b"")
    load(owned, is_clean=False, recovery_point=12)
    assert values(owned) == [b"%02d" % number for number in range(12)]
    assert names(owned, "*.swap") + names(owned, "*.cleaned") == []


def test_swap_files_below_the_unfinished_rewrite_count(owned: OwnedLog) -> None:
    owned.log.close()
    swap(owned, 0, [1])
    file_of(owned, 6, ".log.cleaned").write_bytes(b"")
    load(owned, is_clean=False, recovery_point=12)
    assert values(owned) == [b"01"] + [b"%02d" % number for number in range(3, 12)]


def test_of_two_unfinished_rewrites_the_lower_one_decides(owned: OwnedLog) -> None:
    owned.log.close()
    swap(owned, 3, [4])
    for base_offset in (0, 9):
        file_of(owned, base_offset, ".log.cleaned").write_bytes(b"")
    load(owned, is_clean=False, recovery_point=12)
    assert values(owned) == [b"%02d" % number for number in range(12)]


def test_an_index_whose_log_has_been_swapped_already_takes_its_place(owned: OwnedLog) -> None:
    owned.log.close()
    original = file_of(owned, 3, ".index").read_bytes()
    file_of(owned, 3, ".index").rename(file_of(owned, 3, ".index.swap"))
    file_of(owned, 3, ".index").write_bytes(bytes(8))
    load(owned, is_clean=True, recovery_point=12)
    assert file_of(owned, 3, ".index").read_bytes() == original


@pytest.mark.parametrize("name", ["x.log.swap", "x.log.cleaned"])
def test_a_leftover_without_an_offset_in_its_name_does_not_fail_the_disk(
    tmp_path: Path, name: str
) -> None:
    owned = OwnedLog(tmp_path)
    (owned.directory / name).touch()
    with pytest.raises(UnexpectedFileError, match=f"{name}: .* move the file"):
        load(owned, is_clean=False)
