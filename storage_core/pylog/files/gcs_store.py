"""Google Cloud Storage through `pyarrow.fs.GcsFileSystem`, past two things that it does.

A listing that is not recursive leaves out directories, unless somebody has made objects for them;
so listings are recursive here, a request for 1,000 objects, and directories come from their keys.
And a file that is opened is requested as a whole at once: a server sends some megabytes that nobody
reads, until the file is closed. So a file is opened only when a range of it is read, small ones are
read by that one request, and which file it is comes from a request for that alone.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow.fs as pa_fs

from pylog.files.stores import (
    ArrowStore,
    ListedFile,
    RemoteVersion,
    boolean,
    endpoint_parameters,
    file_id,
    listed_file,
    made_by_arrow,
    parse_parameters,
    store_parts,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pylog.files.stores import RangedFile
    from pylog.files.writable_file import BytesLike

RETRY_SECONDS = 60.0
"""How long requests are repeated; what the library does by itself is a quarter of an hour."""

_TOKEN_LASTS = timedelta(hours=1)  # as Google issues them
_EMULATOR = "STORAGE_EMULATOR_HOST"
_STORE = re.compile(r"gs://(?:(anonymous)@)?([^@:/]+)")


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


_PARAMETERS: dict[str, Callable[[str], object]] = {
    "anonymous": boolean,
    "access_token": str,
    "credential_token_expiration": _time,
    "target_service_account": str,
    "scheme": str,
    "endpoint_override": str,
    "retry_limit_seconds": float,
    "project_id": str,
}
"""What may stand in a query: `pyarrow.fs.GcsFileSystem` has the names, but for the limit."""


def gcs_file_system(store: str, query: str) -> tuple[pa_fs.GcsFileSystem, str]:
    """Return the file system that ``gs://<bucket>`` leads to, and the bucket.

    Without a parameter that says otherwise, credentials are Google's "application default
    credentials"; the environment variable ``STORAGE_EMULATOR_HOST`` stands for a server that needs
    none, as for Google's own libraries.
    """
    anonymous, bucket = store_parts(_STORE, store, "gs://<bucket>/… or gs://anonymous@<bucket>/…")
    given = parse_parameters(query, _PARAMETERS)
    limit = given.pop("retry_limit_seconds", RETRY_SECONDS)
    parameters: dict[str, Any] = {"retry_time_limit": timedelta(seconds=limit)}
    if "endpoint_override" not in given:
        parameters |= _emulator_of_environment()
    if anonymous:
        parameters["anonymous"] = True
    if "access_token" in given:
        parameters["credential_token_expiration"] = datetime.now(UTC) + _TOKEN_LASTS
        parameters.pop("anonymous", None)
    return made_by_arrow("GcsFileSystem", parameters | given), bucket


def _emulator_of_environment() -> dict[str, Any]:
    """Return where Google's environment variable says that an emulator is."""
    found = endpoint_parameters(os.environ.get(_EMULATOR, ""), "http")
    return {**found, "anonymous": True} if found else {}


class GcsStore(ArrowStore):
    """A `RemoteStore` of a `pyarrow.fs.GcsFileSystem`. Any number of threads."""

    def entries(self, key: str) -> list[ListedFile]:
        """Return the entries of a directory, from the keys of everything below it."""
        found: dict[str, ListedFile] = {}
        infos = self._file_system.get_file_info(pa_fs.FileSelector(key, recursive=True))
        for info in infos:
            name, slash, _ = info.path[len(key) :].lstrip("/").partition("/")
            found[name] = ListedFile(name, 0, is_directory=True) if slash else listed_file(info)
        if not found:
            raise FileNotFoundError(key)
        return [*found.values()]

    def open(self, key: str) -> tuple[RangedFile, RemoteVersion]:
        """Return a file and which one it is; one request."""
        version = self.version_of(key)
        return GcsFile(self._file_system, key, version.size_bytes), version

    def version_of(self, key: str) -> RemoteVersion:
        """Return which file has the name now, by its length and time in microseconds."""
        info = self._file_system.get_file_info(key)
        if info.type != pa_fs.FileType.File:
            raise FileNotFoundError(key)
        tag = f"{info.mtime_ns}-{info.size}"
        return RemoteVersion(info.size, tag, file_id(info.mtime, info.size))


class GcsFile:
    """A file of a bucket, of which a range is read or all. One thread."""

    def __init__(self, file_system: pa_fs.FileSystem, key: str, size_bytes: int) -> None:
        self._file_system = file_system
        self._key = key
        self._size_bytes = size_bytes
        self._file: Any = None

    def read_at(self, length: int, position: int) -> BytesLike:
        """Return the bytes of a range in one request; fewer if the file is shorter."""
        if position == 0 and length == self._size_bytes:
            with self._file_system.open_input_stream(self._key) as stream:
                data: bytes = stream.read()
            return data[:length]
        if self._file is None:
            self._file = self._file_system.open_input_file(self._key)
        more: bytes = self._file.read_at(length, position)
        return more

    def close(self) -> None:
        """Release it; a second call does nothing."""
        if self._file is not None:
            self._file.close()
            self._file = None
