"""Reads that leave the page cache as it was, on systems that do so themselves and on others."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pylog.errors import LogDirectoryError
from pylog.files import uncached_file
from pylog.files.storage import open_file
from pylog.files.uncached_file import UncachedFile
from tests.support.page_cache import PAGE_BYTES, bring_in, cached_pages, can_be_dropped

if TYPE_CHECKING:
    from pathlib import Path

NO_FLAG = 1 << 30
"""A flag that no system knows: what an older one says of `RWF_DONTCACHE`."""
PAGES = 512
CACHED = range(20, 30)


@pytest.fixture(params=["by the system", "by ourselves"])
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.param == "by ourselves":
        monkeypatch.setattr(uncached_file, "RWF_DONTCACHE", NO_FLAG)
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(os.urandom(PAGES * PAGE_BYTES - 100))
    if not can_be_dropped(path):
        pytest.skip("pages of this file system cannot be dropped")
    bring_in(path, CACHED)
    assert cached_pages(path) == list(CACHED)
    return path


def test_what_was_cached_stays_and_what_was_read_goes(path: Path) -> None:
    with UncachedFile(path) as file:
        buffer = bytearray(100 * PAGE_BYTES)
        assert file.read_into(5 * PAGE_BYTES + 1, memoryview(buffer)) == len(buffer)
        assert cached_pages(path) == list(CACHED)
        at_end = file.read_at((PAGES - 3) * PAGE_BYTES + 7, 10 * PAGE_BYTES)
        assert cached_pages(path) == list(CACHED)
    content = path.read_bytes()
    assert buffer == content[5 * PAGE_BYTES + 1 : 105 * PAGE_BYTES + 1]
    assert at_end == content[(PAGES - 3) * PAGE_BYTES + 7 :]


def test_many_small_reads_leave_nothing(path: Path) -> None:
    with UncachedFile(path) as file:
        for position in range(0, 100 * PAGE_BYTES, 1000):
            assert len(file.read_at(position, 61)) == 61
    assert cached_pages(path) == list(CACHED)


def test_a_file_that_becomes_shorter_gives_what_there_is(path: Path) -> None:
    with UncachedFile(path) as file:
        os.truncate(path, 3 * PAGE_BYTES)
        assert file.read_at(10 * PAGE_BYTES, 100) == b""
        assert len(file.read_at(2 * PAGE_BYTES, 2 * PAGE_BYTES)) == PAGE_BYTES


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can be another user")
def test_who_is_not_shown_what_is_cached_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uncached_file, "RWF_DONTCACHE", NO_FLAG)
    for each in (path, *path.parents[:3]):
        each.chmod(0o755 if each.is_dir() else 0o644)
    with UncachedFile(path) as file:
        os.seteuid(65534)
        try:
            with pytest.raises(LogDirectoryError, match="only to the file's owner") as caught:
                file.read_at(0, 10)
        finally:
            os.seteuid(0)
    assert caught.value.path == str(path)


def test_other_systems_are_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uncached_file, "RWF_DONTCACHE", NO_FLAG)
    monkeypatch.setattr("sys.platform", "darwin")
    with UncachedFile(path) as file, pytest.raises(LogDirectoryError, match="only Linux"):
        file.read_at(0, 10)


def test_a_file_is_opened_so_only_if_that_is_asked_for(path: Path) -> None:
    with open_file(path) as plain, open_file(path, leaves_page_cache=True) as asked:
        assert not isinstance(plain, UncachedFile)
        assert isinstance(asked, UncachedFile)
