"""A disk that forgets: whatever is done through it, the directory is as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.errors import SegmentVanishedError
from pylog.files.durable_io import ForgettingIO

if TYPE_CHECKING:
    from pathlib import Path


def test_nothing_that_is_done_through_it_changes_a_directory(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_bytes(b"content")
    kept.chmod(0o444)  # it is opened to be read only
    modified = kept.stat().st_mtime_ns
    io = ForgettingIO()
    with io.open(kept) as file:
        assert file.read_at(0, 7) == b"content"
        file.write_at(0, b"other")
        file.truncate(3)
        file.sync()
        assert file.read_at(0, 7) == b"content"
    io.write_atomically(kept, b"other")
    io.write_file(kept, b"other")
    io.write_file(tmp_path / "new", b"other", sync=True)
    io.replace(kept, tmp_path / "renamed")
    io.remove(kept)
    io.make_directory(tmp_path / "directory")
    io.remove_directory(tmp_path)
    io.set_last_modified(str(kept), 1)
    io.sync_directory(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert kept.read_bytes() == b"content"
    assert kept.stat().st_mtime_ns == modified


def test_a_file_that_is_not_there_is_not_found_unless_it_is_to_be_made(tmp_path: Path) -> None:
    with pytest.raises(SegmentVanishedError):
        ForgettingIO().open(tmp_path / "new")
    with ForgettingIO().open(tmp_path / "new", create=True) as file:
        assert file.size() == 0
    assert not list(tmp_path.iterdir())
