"""A file system of ``pyarrow.fs`` as a store."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow.fs as pa_fs

from pylog.files.remote_store import ListedFile, RemoteVersion, file_id

if TYPE_CHECKING:
    from pylog.files.remote_store import RangedFile


class ArrowStore:
    """A `RemoteStore` of any file system of ``pyarrow.fs``. Any number of threads."""

    def __init__(self, file_system: pa_fs.FileSystem) -> None:
        self._file_system = file_system

    def entries(self, key: str) -> list[ListedFile]:
        """Return the entries of a directory."""
        infos = self._file_system.get_file_info(pa_fs.FileSelector(key))
        return [listed_file(info) for info in infos]

    def open(self, key: str) -> tuple[RangedFile, RemoteVersion]:
        """Return a file and which one it is; one request."""
        file = self._file_system.open_input_file(key)
        size_bytes = int(file.size())
        metadata = file.metadata() or {}
        changed = _time_of(_text(metadata, "Last-Modified"))
        version = RemoteVersion(size_bytes, _text(metadata, "ETag"), file_id(changed, size_bytes))
        return file, version

    def version_of(self, key: str) -> RemoteVersion:
        """Return which file has the name now."""
        file, version = self.open(key)
        file.close()
        return version

    def exists(self, key: str) -> bool:
        """Whether there is anything of that name."""
        return bool(self._file_system.get_file_info(key).type != pa_fs.FileType.NotFound)


def listed_file(info: pa_fs.FileInfo) -> ListedFile:
    """Return an entry of a listing from Arrow's."""
    return ListedFile(
        info.base_name,
        0 if info.size is None else info.size,
        info.type == pa_fs.FileType.Directory,
        file_id(info.mtime, info.size),
    )


def _text(metadata: dict[str | bytes, str | bytes], name: str) -> str:
    """Return an entry of what a store says of a file, "" if there is none."""
    value = metadata.get(name) or metadata.get(name.encode()) or ""
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _time_of(text: str) -> datetime | None:
    """Return a time as Arrow writes it (``2026-01-31T23:59:59Z``), None if it is something else."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
