"""Files of long bookmarks: any text comes back, and damage is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import crcmod.predefined
import pytest

from pylog.errors import CorruptCheckpointError, SegmentVanishedError
from pylog.files.bookmark_file import (
    BookmarkFile,
    as_bookmark,
    bookmark_size,
    bookmark_to_json,
    read_bookmark,
    store_bookmark,
)
from tests.support.recording_io import ForgetfulIO, Kind, RecordingIO

if TYPE_CHECKING:
    from pathlib import Path

crc32c = crcmod.predefined.mkCrcFun("crc-32c")


@pytest.mark.parametrize("text", ["", "short", "x" * 1_000])
def test_a_short_bookmark_stays_a_text(tmp_path: Path, text: str) -> None:
    assert store_bookmark(ForgetfulIO(), str(tmp_path), text) == text
    assert bookmark_to_json(text) == {"bookmark": text}
    assert as_bookmark(text) == text
    assert read_bookmark(str(tmp_path), text) == text
    assert list(tmp_path.iterdir()) == []


def test_no_bookmark_is_none(tmp_path: Path) -> None:
    assert store_bookmark(ForgetfulIO(), str(tmp_path), None) is None
    assert bookmark_to_json(None) == {}
    assert as_bookmark(None) is None
    assert read_bookmark(str(tmp_path), None) is None


@pytest.mark.parametrize(
    "text", ["x" * 1_001, "grüße\n\x00" * 500, "\ud800" * 2_000, "e" * (9 << 20)]
)
def test_a_long_one_is_a_file(tmp_path: Path, text: str) -> None:
    stored = store_bookmark(ForgetfulIO(), str(tmp_path), text)
    assert isinstance(stored, BookmarkFile)
    content = text.encode("utf-8", "surrogatepass")
    assert (tmp_path / stored.name).read_bytes() == content
    assert stored[1:] == (len(content), crc32c(content))
    assert bookmark_size(text) == len(content)
    assert as_bookmark(bookmark_to_json(stored)["bookmark"]) == stored
    assert read_bookmark(str(tmp_path), stored) == text
    assert store_bookmark(ForgetfulIO(), str(tmp_path), stored) == stored


def test_it_is_on_the_disk_before_anything_names_it(tmp_path: Path) -> None:
    io = RecordingIO(tmp_path)
    store_bookmark(io, str(tmp_path), "x" * 2_000)
    assert [each.kind for each in io.operations] == [
        Kind.CREATE,
        Kind.WRITE,
        Kind.SYNC,
        Kind.SYNC_DIRECTORY,
    ]


@pytest.mark.parametrize("content", [b"", b"x" * 1_999, b"x" * 2_001, b"y" + b"x" * 1_999])
def test_a_damaged_one_is_an_error_that_names_it(tmp_path: Path, content: bytes) -> None:
    stored = store_bookmark(ForgetfulIO(), str(tmp_path), "x" * 2_000)
    assert isinstance(stored, BookmarkFile)
    (tmp_path / stored.name).write_bytes(content)
    with pytest.raises(CorruptCheckpointError, match=f"{stored.name}: .*let the job start over"):
        read_bookmark(str(tmp_path), stored)


def test_one_that_is_no_text_is_an_error(tmp_path: Path) -> None:
    content = b"\xff" * 10
    stored = BookmarkFile(f".pylog-bookmark-{'a' * 32}", len(content), crc32c(content))
    (tmp_path / stored.name).write_bytes(content)
    with pytest.raises(CorruptCheckpointError, match="is not UTF-8"):
        read_bookmark(str(tmp_path), stored)


def test_one_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SegmentVanishedError):
        read_bookmark(str(tmp_path), BookmarkFile(f".pylog-bookmark-{'a' * 32}", 1, 1))
