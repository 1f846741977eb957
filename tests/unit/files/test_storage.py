"""Whatever lies in the place of a file: never a wait, and an error that says what it is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pylog.config.stored_topic_configs import read_topic_configs
from pylog.errors import SegmentVanishedError, UnreadableFileError
from pylog.files.checkpoint_file import read_offset_checkpoint
from pylog.files.clean_shutdown import read_clean_shutdown
from pylog.files.leader_epochs import read_leader_epoch_checkpoint
from pylog.files.meta_properties import read_meta_properties
from pylog.files.offset_index import OffsetIndexEntries
from pylog.files.partition_metadata import read_partition_metadata
from pylog.files.producer_snapshot import read_producer_snapshot
from pylog.files.storage import open_file
from pylog.files.transaction_index import read_transaction_index
from tests.support.faults.odd_files import NOT_READABLE, deadline, put

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

READERS: list[Callable[[Path], object]] = [
    open_file,
    read_offset_checkpoint,
    read_clean_shutdown,
    read_leader_epoch_checkpoint,
    read_meta_properties,
    read_partition_metadata,
    read_producer_snapshot,
    read_topic_configs,
    read_transaction_index,
]
REASONS = {
    "fifo": "not a regular file but a FIFO",
    "directory": "not a regular file but a directory",
    "socket": "not a regular file but a socket",
    "zeros": "not a regular file but a character device",
    "random": "not a regular file but a character device",
    "circular link": "Too many levels of symbolic links",
    "broken link": "link leads to a file that does not exist",
    "forbidden": "Permission denied",
}


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
@pytest.mark.parametrize("kind", NOT_READABLE)
def test_what_is_not_a_readable_file_is_refused_at_once(
    tmp_path: Path, kind: str, read: Callable[[Path], object]
) -> None:
    path = tmp_path / "odd"
    put(path, kind)
    with deadline(tmp_path), pytest.raises(UnreadableFileError, match=REASONS[kind]) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("kind", NOT_READABLE)
def test_an_index_that_cannot_be_read_has_no_entries(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "odd"
    put(path, kind)
    with deadline(tmp_path), OffsetIndexEntries.open(path, 7) as index:
        assert list(index) == []
        assert index.lookup(9) == (7, 0)
        assert REASONS[kind] in (index.find_defect() or "")


def test_links_to_regular_files_are_followed(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "file")
    (tmp_path / "second").symlink_to("link")
    with open_file(tmp_path / "second") as file:
        assert file.read_at(0, 100) == b"content"


def test_a_file_that_is_gone_is_not_a_broken_link(tmp_path: Path) -> None:
    with pytest.raises(SegmentVanishedError, match="file is gone"):
        open_file(tmp_path / "gone")


def test_a_refused_file_leaves_no_descriptor_open(tmp_path: Path) -> None:
    put(tmp_path / "odd", "directory")
    before = len(os.listdir("/dev/fd"))  # noqa: PTH208 - the listing's own descriptor counts
    for _ in range(5):
        with pytest.raises(UnreadableFileError):
            open_file(tmp_path / "odd")
    assert len(os.listdir("/dev/fd")) == before  # noqa: PTH208
