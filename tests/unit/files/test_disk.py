"""Looks at the disk, or at an overlay of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pylog.errors import LogStorageError, SegmentVanishedError
from pylog.files import disk
from pylog.files.overlay import Overlay
from pylog.files.storage import list_directory, open_file
from pylog.locations import without_overlay
from tests.unit.files.overlaid import tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def over() -> Iterator[Overlay]:
    with Overlay() as made:
        yield made


def test_paths_of_an_overlay_are_looked_at_as_those_of_the_disk(
    tmp_path: Path, over: Overlay
) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "loop").symlink_to("loop")
    base = over.path(tmp_path)
    entries = list_directory(base)
    assert [each.name for each in entries] == ["file", "link", "loop", "t-0"]
    assert without_overlay(base) == str(tmp_path)
    for name in ("file", "link", "loop", "t-0", "missing"):
        path, real = f"{base}/{name}", str(tmp_path / name)
        for ask in (disk.exists, disk.lexists, disk.is_dir, disk.is_file, disk.is_link):
            assert ask(path) == ask(real), (name, ask)
    assert disk.readlink(f"{base}/link") == "file"
    with open_file(f"{base}/link") as file:
        assert file.read_at(0, 100) == b"content"
    with pytest.raises(SegmentVanishedError):
        open_file(f"{base}/missing")
    with pytest.raises(LogStorageError, match="symbolic link to 'file'"):
        over.open(f"{base}/link")
    over.remove(f"{base}/link")
    assert [each.name for each in list_directory(base)] == ["file", "loop", "t-0"]
    assert (tmp_path / "link").is_symlink()


def test_a_directory_of_the_disk_is_listed_once(
    tmp_path: Path, over: Overlay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is simulated is of one moment, and many partitions take many listings."""
    (tmp_path / "a").write_bytes(b"12")
    listed: list[str] = []
    scandir = os.scandir

    def seen(path: str) -> object:
        listed.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", seen)
    place = over.path(tmp_path)
    assert list(tree(place)) == ["a"]
    (tmp_path / "late").write_bytes(b"3")
    assert list(tree(place)) == ["a"]
    assert not disk.exists(f"{place}/late")
    with over.open(f"{place}/late", create=True):
        pass
    assert tree(place) == {"a": b"12", "late": b""}
    over.unlink(f"{place}/a")
    assert list(tree(place)) == ["late"]
    assert listed == [str(tmp_path)]
