"""Files and directories of an object store or cluster file system, by location.

Credentials are found by the usual means of each store (for S3: environment, profile, instance
role), or stand among the location's parameters. No message of this module shows them.
"""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.fs as pa_fs

from pylog.errors import LogDirectoryError, SegmentVanishedError
from pylog.files.arrow_store import ArrowStore
from pylog.files.azure_store import azure_file_system
from pylog.files.fsspec_store import FsspecStore
from pylog.files.gcs_store import GcsStore, gcs_file_system
from pylog.files.s3_store import s3_file_system
from pylog.files.store_errors import STORE_FAILURES, cause_of, is_missing
from pylog.locations import file_system_of, join, split_query

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.files.remote_store import ListedFile, RangedFile, RemoteStore, RemoteVersion

_STORE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+://[^/?]*)/?(.*)", re.DOTALL)
_MAKERS = {
    "s3": s3_file_system,
    "gs": gcs_file_system,
    "az": azure_file_system,
    "abfs": azure_file_system,
    "abfss": azure_file_system,
}


class RemoteStatus(NamedTuple):
    """Length of a remote file, and what distinguishes it from others of its name: `file_id`."""

    st_size: int
    st_ino: int = 0


class RemoteEntry(NamedTuple):
    """One entry of a listed remote directory."""

    name: str
    path: str
    size_bytes: int
    has_entries: bool
    file_id: int = 0

    def is_dir(self) -> bool:
        """Whether this is a directory."""
        return self.has_entries

    def stat(self) -> RemoteStatus:
        """Return what the listing said of the file."""
        return RemoteStatus(self.size_bytes, self.file_id)


def list_remote(location: str) -> list[RemoteEntry]:
    """Return the entries of a remote directory, sorted by name.

    Raises
    ------
    LogDirectoryError
        The directory does not exist, is empty in a store without directories, or cannot be read.
    """
    try:
        store, key = _place(location)
        listed = _listed(store, key)
    except STORE_FAILURES as error:
        reason = f"cannot list directory: {cause_of(error)}"
        raise LogDirectoryError(reason, location) from None
    if listed is None:
        raise LogDirectoryError(_what_is_missing(store, key), location)
    return sorted(RemoteEntry(each.name, join(location, each.name), *each[1:]) for each in listed)


def _listed(store: RemoteStore, key: str) -> list[ListedFile] | None:
    """Return the entries of a directory, None if there is none."""
    try:
        return store.entries(key)
    except STORE_FAILURES as error:
        if is_missing(error):
            return None
        raise


def _what_is_missing(store: RemoteStore, key: str) -> str:
    """Return why a directory is not there: most stores say no more of a bucket that is not."""
    bucket = key.lstrip("/").partition("/")[0]
    with suppress(*STORE_FAILURES):
        if not store.exists(bucket):
            return f"no such bucket or container: {bucket}"
    return "no such directory (object stores have none without files)"


def _place(location: str) -> tuple[RemoteStore, str]:
    """Return the store of a location, and its path there."""
    base, query = split_query(location)
    if (file_system := file_system_of(location)) is not None:
        return store_of(file_system), base.partition("://")[2]
    match = _STORE.fullmatch(base)
    store, key = (match[1], match[2]) if match else (base, "")
    file_system, root = _file_system(store, query)
    return store_of(file_system), f"{root}/{key}".rstrip("/") if root else f"/{key}"


def store_of(file_system: Any) -> RemoteStore:  # noqa: ANN401 - neither library has types
    """Return a file system of ``pyarrow.fs`` or fsspec as a store."""
    if not isinstance(file_system, pa_fs.FileSystem):
        return FsspecStore(file_system)
    return (GcsStore if file_system.type_name == "gcs" else ArrowStore)(file_system)


@lru_cache(maxsize=32)
def _file_system(store: str, query: str) -> tuple[pa_fs.FileSystem, str]:
    """Return the file system of a store, made once a process, and the path of its root there."""
    scheme = store.partition("://")[0]
    if scheme in _MAKERS:
        return _MAKERS[scheme](store, query)
    file_system, root = pa_fs.FileSystem.from_uri(f"{store}/{query}")
    return file_system, root.rstrip("/")


def open_remote(location: str) -> tuple[RangedFile, RemoteVersion]:
    """Return a file and which one it is; one request.

    Raises
    ------
    SegmentVanishedError
        The file does not exist (any more).
    LogDirectoryError
        It cannot be opened; the text says why.
    """
    with _opening(location):
        store, key = _place(location)
        return store.open(key)


def remote_version(location: str) -> RemoteVersion:
    """Return which file has the name now; one request, and errors as of `open_remote`."""
    with _opening(location):
        store, key = _place(location)
        return store.version_of(key)


@contextmanager
def _opening(location: str) -> Iterator[None]:
    try:
        yield
    except STORE_FAILURES as error:
        if is_missing(error):
            reason = "file is gone (deleted or renamed since the directory was listed)"
            raise SegmentVanishedError(reason, location) from None
        reason = f"cannot open file: {cause_of(error)}"
        raise LogDirectoryError(reason, location) from None
