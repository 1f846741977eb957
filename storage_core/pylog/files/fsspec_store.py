"""A file system of fsspec as a store.

Ranges are asked for by `cat_file`, each in one request and no longer than wanted: files that fsspec
opens read ahead by megabytes. Its file systems keep what they have listed, and answer by that for
ever; so that is forgotten before each question.
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pylog.files.remote_store import ListedFile, RemoteVersion, file_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.files.remote_store import RangedFile

_TAGS = ("ETag", "etag", "generation")  # of s3fs and http, gcsfs and adlfs, gcsfs
_TIMES = ("LastModified", "last_modified", "updated", "mtime", "created")


class FsspecError(OSError):
    """A request failed; the text names what the library raised, and shows none of its text."""


@contextmanager
def _named_failures() -> Iterator[None]:
    """Have whatever a library raises come as an `OSError`: fsspec does not say what it may be."""
    try:
        yield
    except FileNotFoundError:
        raise
    except Exception as error:  # noqa: BLE001 - libraries of all kinds, none of them ours
        kind = type(error)
        name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
        what = "; are the credentials right?" if isinstance(error, PermissionError) else ""
        msg = f"{name} from the file system{what}"
        raise FsspecError(msg) from None


class FsspecStore:
    """A `RemoteStore` of a file system of fsspec. Any number of threads, if its own is for them."""

    def __init__(self, file_system: Any) -> None:  # noqa: ANN401 - fsspec has no types
        self._file_system = file_system

    def entries(self, key: str) -> list[ListedFile]:
        """Return the entries of a directory."""
        with _named_failures():
            self._file_system.invalidate_cache()
            infos = self._file_system.ls(key, detail=True)
        listed = []
        for info in infos:
            path = str(info["name"]).rstrip("/")
            if path.strip("/") == key.strip("/"):  # the object that stands for the directory
                if info["type"] != "directory":
                    raise FileNotFoundError(key)
                continue
            size_bytes = info.get("size") or 0
            listed.append(
                ListedFile(
                    path.rpartition("/")[2],
                    size_bytes,
                    info["type"] == "directory",
                    file_id(_changed(info), size_bytes),
                )
            )
        return listed

    def open(self, key: str) -> tuple[RangedFile, RemoteVersion]:
        """Return a file and which one it is."""
        return FsspecFile(self._file_system, key), self.version_of(key)

    def version_of(self, key: str) -> RemoteVersion:
        """Return which file has the name now."""
        with _named_failures():
            self._file_system.invalidate_cache()
            info = self._file_system.info(key)
        if info["type"] == "directory":
            raise FileNotFoundError(key)
        size_bytes = info["size"]
        if size_bytes is None:
            msg = "the file system does not say how long the file is"
            raise FsspecError(msg)
        tag = next((str(info[name]) for name in _TAGS if info.get(name)), "")
        return RemoteVersion(int(size_bytes), tag, file_id(_changed(info), size_bytes))

    def exists(self, key: str) -> bool:
        """Whether there is anything of that name."""
        with _named_failures():
            return bool(self._file_system.exists(key))


class FsspecFile:
    """A file of which ranges are read. Any number of threads."""

    def __init__(self, file_system: Any, key: str) -> None:  # noqa: ANN401 - as above
        self._file_system = file_system
        self._key = key

    def read_at(self, length: int, position: int) -> bytes:
        """Return the bytes of a range in one request; fewer if the file is shorter."""
        with _named_failures():
            data: bytes = self._file_system.cat_file(
                self._key, start=position, end=position + length
            )
        return data

    def close(self) -> None:
        """Do nothing: there is nothing open."""


def _changed(info: dict[str, Any]) -> datetime | None:
    """Return when a file last changed, None if that is not said."""
    for name in _TIMES:
        value = info.get(name)
        if isinstance(value, datetime):
            return value if value.tzinfo else value.replace(tzinfo=UTC)
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str):
            try:
                return datetime.fromisoformat(value)
            except ValueError:
                continue
    return None
