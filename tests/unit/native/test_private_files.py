from __future__ import annotations

import os
from pathlib import Path

import pytest

from pylog.native.kernel_cache import (
    is_private_directory,
    make_private_directory,
    read_private_file,
    write_private_file,
)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "a" / "b"
    assert make_private_directory(made)
    return made


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777, 0o1777])
def test_a_directory_that_others_may_write_to_is_not_private(directory: Path, mode: int) -> None:
    directory.chmod(mode)
    assert not is_private_directory(directory)


@pytest.mark.parametrize(
    ("mode", "is_private"),
    [(0o755, True), (0o700, True), (0o775, False), (0o757, False), (0o1777, True), (0o1775, True)],
)
def test_its_parents_count_except_that_entries_are_safe_in_one_with_the_sticky_bit(
    directory: Path, mode: int, *, is_private: bool
) -> None:
    directory.parent.chmod(mode)
    assert is_private_directory(directory) is is_private


def test_a_directory_of_somebody_else_is_not_private(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() == 0:
        os.chown(directory, 12345, 0)
    else:
        monkeypatch.setattr("os.geteuid", lambda: 12345)
    assert not is_private_directory(directory)


def test_a_parent_of_somebody_else_counts_whatever_its_permissions(directory: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory away")
    os.chown(directory.parent, 12345, 0)
    assert not is_private_directory(directory)


def test_a_symbolic_link_is_not_a_private_directory(directory: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(directory)
    assert not is_private_directory(link)
    assert is_private_directory(link.resolve())


def test_what_is_missing_or_relative_is_not_private(tmp_path: Path) -> None:
    assert not is_private_directory(tmp_path / "missing")
    assert not is_private_directory(Path("tests"))


def test_a_file_is_read_as_it_was_written(directory: Path) -> None:
    assert write_private_file(directory / "file", b"first")
    assert write_private_file(directory / "file", b"second")
    assert read_private_file(directory / "file", 100) == b"second"
    assert [each.name for each in directory.iterdir()] == ["file"]


def test_others_can_read_a_file_whatever_the_umask(directory: Path) -> None:
    before = os.umask(0o077)
    try:
        write_private_file(directory / "file", b"code")
    finally:
        os.umask(before)
    assert (directory / "file").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_file_that_others_may_write_to_is_not_read(directory: Path, mode: int) -> None:
    write_private_file(directory / "file", b"code")
    (directory / "file").chmod(mode)
    assert read_private_file(directory / "file", 100) is None


def test_what_is_no_regular_file_is_not_read(directory: Path) -> None:
    write_private_file(directory / "file", b"code")
    (directory / "link").symlink_to(directory / "file")
    (directory / "folder").mkdir()
    os.mkfifo(directory / "pipe")
    for name in ("link", "folder", "pipe", "missing"):
        assert read_private_file(directory / name, 100) is None


def test_a_file_that_is_too_large_is_not_read(directory: Path) -> None:
    write_private_file(directory / "file", bytes(101))
    assert read_private_file(directory / "file", 100) is None


def test_a_directory_that_cannot_be_made_or_written_is_said_to_be_none(directory: Path) -> None:
    (directory / "file").write_bytes(b"")
    assert not make_private_directory(directory / "file" / "below")
    assert not write_private_file(directory / "missing" / "file", b"code")


def test_parents_that_are_made_are_private_whatever_the_umask(directory: Path) -> None:
    before = os.umask(0o002)
    try:
        assert make_private_directory(directory / "cache" / "pylog")
    finally:
        os.umask(before)
