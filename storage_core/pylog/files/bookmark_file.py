"""``.pylog-bookmark-<32 hex digits>``: the text of a long bookmark, for ledger and manifest.

A bookmark of up to `MOST_INLINE` characters stands in ledger and manifest as text. A longer one is
a file of its own (UTF-8), never changed, written before the manifest of its commit names it::

    {"name": ".pylog-bookmark-5f0c…", "size_bytes": 2400000, "checksum": 3405691582}

The ledger names the newest of each job. The next commit removes the others.
"""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

from pylog.errors import CorruptCheckpointError
from pylog.files.file_names import BOOKMARK_PREFIX
from pylog.files.staged_files import MAX_CRC, as_integer, as_object
from pylog.files.storage import open_file
from pylog.lazy_modules import LazyModule
from pylog.locations import join

if TYPE_CHECKING:
    from pylog.files.durable_io import DurableIO
    from pylog.native import checksum
else:
    checksum = LazyModule("pylog.native.checksum")

MOST_BOOKMARK_BYTES = 1 << 30
MOST_INLINE = 1_000
_NAME = re.compile(r"\.pylog-bookmark-[0-9a-f]{32}")
_ENCODING = "utf-8", "surrogatepass"


class BookmarkFile(NamedTuple):
    """A file with the text of a bookmark."""

    name: str
    size_bytes: int
    checksum: int


Bookmark = BookmarkFile | str


def bookmark_to_json(bookmark: Bookmark | None) -> dict[str, Any]:
    """Return the field of a ledger or manifest; none without a bookmark."""
    if bookmark is None:
        return {}
    return {"bookmark": bookmark if isinstance(bookmark, str) else bookmark._asdict()}


def as_bookmark(content: object) -> Bookmark | None:
    """Return the bookmark of that field; `ValueError` if it is none.

    Until version 2 of ledgers and manifests it was a text of any length.
    """
    if content is None or isinstance(content, str):
        return content
    fields = as_object(content, BookmarkFile._fields, "bookmark")
    if not isinstance(fields["name"], str) or _NAME.fullmatch(fields["name"]) is None:
        msg = f"{fields['name']!r} is not the name of a bookmark's file"
        raise ValueError(msg)
    return BookmarkFile(
        fields["name"],
        as_integer(fields["size_bytes"], "size_bytes", 0, MOST_BOOKMARK_BYTES),
        as_integer(fields["checksum"], "checksum", 0, MAX_CRC),
    )


def bookmark_size(text: str) -> int:
    """Return the number of bytes that a bookmark takes."""
    return len(text) if text.isascii() else len(text.encode(*_ENCODING))


def store_bookmark(io: DurableIO, log_directory: str, bookmark: Bookmark | None) -> Bookmark | None:
    """Write a long text to a file of its own, and return what names it once it is on the disk."""
    if not isinstance(bookmark, str) or len(bookmark) <= MOST_INLINE:
        return bookmark
    content = bookmark.encode(*_ENCODING)
    name = f"{BOOKMARK_PREFIX}{uuid.uuid4().hex}"
    io.write_file(_path(log_directory, name), content, sync=True)
    io.sync_directory(log_directory)
    return BookmarkFile(name, len(content), checksum.crc32c(content))


def read_bookmark(log_directory: str, bookmark: Bookmark | None) -> str | None:
    """Return the text of a bookmark."""
    if bookmark is None or isinstance(bookmark, str):
        return bookmark
    path = _path(log_directory, bookmark.name)
    with open_file(path) as file:
        size = file.size()
        content = file.read_at(0, size) if size == bookmark.size_bytes else b""
    if size != bookmark.size_bytes or checksum.crc32c(content) != bookmark.checksum:
        reason = (
            f"bookmark of a job has {size} bytes, expected {bookmark.size_bytes}, or another "
            "checksum than the ledger has; restore the file, or let the job start over"
        )
        raise CorruptCheckpointError(reason, path)
    try:
        return content.decode(*_ENCODING)
    except UnicodeDecodeError as error:
        reason = f"bookmark of a job is not UTF-8: {error.reason}"
        raise CorruptCheckpointError(reason, path, error.start) from error


def _path(log_directory: str, name: str) -> str:
    return join(log_directory, name)
