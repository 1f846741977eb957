"""Files and directories of an object store or cluster file system, through ``pyarrow.fs``.

Every read is a ranged request of its own over the network, so there are to be few and large ones:
look-ups in indexes and headers, which ask for some bytes here and there, are served from cached
blocks; windows of a ``.log`` file are read as they are asked for, and no byte twice.

Credentials are found by the usual means of each store (for S3: environment, profile, instance
role), or stand in the URI. No message of this module shows them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa
import pyarrow.fs as pa_fs

from pylog.errors import LogDirectoryError, SegmentVanishedError
from pylog.files.byte_source import ByteSource
from pylog.locations import join, split_query

BLOCK_BYTES = 1 << 16
"""Smaller reads fetch the whole block around them."""

_CACHED_BLOCKS = 8
_STORE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+://[^/?]*)/?(.*)", re.DOTALL)
_AWS_CAUSE = re.compile(r"AWS Error [A-Z_]+(?: \(HTTP status \d+\))?(?: during \w+ operation)?")


class RemoteStatus(NamedTuple):
    """Length of a remote file; object stores have no inode numbers."""

    st_size: int
    st_ino: int = 0


class RemoteEntry(NamedTuple):
    """One entry of a listed remote directory."""

    name: str
    path: str
    size_bytes: int
    has_entries: bool

    def is_dir(self) -> bool:
        """Whether this is a directory."""
        return self.has_entries

    def stat(self) -> RemoteStatus:
        """Return what the listing told of the file."""
        return RemoteStatus(self.size_bytes)


class RemoteFile(ByteSource):
    """`ByteSource` of a remote file. One thread.

    Raises
    ------
    SegmentVanishedError
        The file does not exist (any more).
    LogDirectoryError
        It cannot be opened; the text says why.
    """

    __slots__ = ("_blocks", "_file", "_size", "path")

    def __init__(self, location: str) -> None:
        self.path = location
        self._blocks: dict[int, bytes] = {}
        try:
            file_system, key = _place(location)
            self._file: pa.NativeFile | None = file_system.open_input_file(key)
            self._size = int(self._file.size())
        except FileNotFoundError as error:
            reason = "file is gone (deleted or renamed since the directory was listed)"
            raise SegmentVanishedError(reason, location) from error
        except (OSError, pa.ArrowException) as error:
            reason = f"cannot open file: {_cause(error)}"
            raise LogDirectoryError(reason, location) from None

    def size(self) -> int:
        """Return the file's length in bytes, as it was when it was opened."""
        return self._size

    def read_at(self, position: int, length: int) -> bytes:
        """Return the bytes ``[position, position + length)``, fewer where the file ends before."""
        end = min(position + length, self._size)
        if end <= position:
            return b""
        if end - position >= BLOCK_BYTES:
            return bytes(self._request(position, end - position))
        first, last = position // BLOCK_BYTES, (end - 1) // BLOCK_BYTES
        data = b"".join(self._block(number) for number in range(first, last + 1))
        inside = position - first * BLOCK_BYTES
        return data[inside : inside + end - position]

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill ``buffer`` from ``position`` on; return how many bytes there were."""
        count = max(0, min(len(buffer), self._size - position))
        if count:
            data = self._request(position, count)
            count = len(data)
            buffer[:count] = data
        return count

    def next_data(self, position: int) -> int | None:
        """Return ``position``: an object store knows nothing of holes."""
        return position if position < self._size else None

    def _block(self, number: int) -> bytes:
        block = self._blocks.pop(number, None)
        if block is None:
            start = number * BLOCK_BYTES
            block = bytes(self._request(start, min(BLOCK_BYTES, self._size - start)))
            if len(self._blocks) >= _CACHED_BLOCKS:
                del self._blocks[next(iter(self._blocks))]  # the least recently used
        self._blocks[number] = block
        return block

    def _request(self, position: int, length: int) -> memoryview:
        if self._file is None:
            msg = f"read of a closed file: {self.path}"
            raise ValueError(msg)
        try:
            return memoryview(self._file.read_at(length, position))
        except FileNotFoundError as error:
            reason = "file is gone (deleted since it was opened)"
            raise SegmentVanishedError(reason, self.path, position) from error
        except (OSError, pa.ArrowException) as error:
            reason = f"cannot read {length} bytes: {_cause(error)}"
            raise LogDirectoryError(reason, self.path, position) from None

    def close(self) -> None:
        """Release the file; a second call does nothing."""
        if self._file is not None:
            self._file.close()
            self._file = None


def list_remote(location: str) -> list[RemoteEntry]:
    """Return the entries of a remote directory, sorted by name.

    Raises
    ------
    LogDirectoryError
        The directory does not exist, is empty in a store without directories, or cannot be read.
    """
    try:
        file_system, key = _place(location)
        infos = file_system.get_file_info(pa_fs.FileSelector(key))
    except FileNotFoundError as error:
        reason = "no such directory"
        raise LogDirectoryError(reason, location) from error
    except (OSError, pa.ArrowException) as error:
        reason = f"cannot list directory: {_cause(error)}"
        raise LogDirectoryError(reason, location) from None
    entries = [
        RemoteEntry(
            info.base_name,
            join(location, info.base_name),
            0 if info.size is None else info.size,
            info.type == pa_fs.FileType.Directory,
        )
        for info in infos
    ]
    return sorted(entries)


def _place(location: str) -> tuple[pa_fs.FileSystem, str]:
    """Return the file system of a location, and its path there."""
    base, query = split_query(location)
    found = _STORE.fullmatch(base)
    store, key = (found[1], found[2]) if found else (base, "")
    file_system, root = _file_system(store, query)
    return file_system, f"{root}/{key}".rstrip("/") if root else f"/{key}"


@lru_cache(maxsize=32)
def _file_system(store: str, query: str) -> tuple[pa_fs.FileSystem, str]:
    """Return the file system of a store, made once a process, and the path of its root there."""
    file_system, root = pa_fs.FileSystem.from_uri(f"{store}/{query}" if query else f"{store}/")
    return file_system, root.rstrip("/")


def _cause(error: BaseException) -> str:
    """Return why a request failed, in words that hold no secret."""
    if found := _AWS_CAUSE.search(str(error)):
        return found[0]
    if isinstance(error, OSError) and error.strerror and error.errno:
        return error.strerror
    if isinstance(error, pa.ArrowInvalid | pa.ArrowNotImplementedError):
        return f"{type(error).__name__}: the URI is not one that pyarrow.fs understands"
    return f"{type(error).__name__} from the store; is it reached, and are the credentials right?"
