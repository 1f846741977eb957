"""Files and directories of an object store or cluster file system, through ``pyarrow.fs``.

Credentials are found by the usual means of each store (for S3: environment, profile, instance
role), or stand in the URI. No message of this module shows them.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa
import pyarrow.fs as pa_fs

from pylog.errors import LogDirectoryError, SegmentVanishedError
from pylog.files.s3_store import S3UriError, s3_file_system
from pylog.locations import join, split_query

_SIZE_BITS = 48  # stores take no file of 256 TiB
_GCS_RETRY_SECONDS = 60  # what Arrow does by itself is to try for a quarter of an hour
_STORE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+://[^/?]*)/?(.*)", re.DOTALL)
_AWS_CAUSE = re.compile(
    r"AWS Error [A-Z_]+(?: \(HTTP status \d+\))?(?: during \w+ operation)?"
    r"(?:: curlCode: \d+, [A-Za-z ']+)?"
)
_WRONG_PARAMETER = re.compile(r"Unexpected query parameter in \w+ URI: '\w+'")
_REDIRECT = re.compile(r"HTTP status 3\d\d")
STORE_FAILURES = (OSError, pa.ArrowException, S3UriError)


class RemoteStatus(NamedTuple):
    """Length of a remote file, and what distinguishes it from others of its name: `_file_id`."""

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
        file_system, key = _place(location)
        infos = file_system.get_file_info(pa_fs.FileSelector(key))
    except FileNotFoundError:
        reason = "no such directory (object stores have none without files)"
        raise LogDirectoryError(reason, location) from None
    except STORE_FAILURES as error:
        reason = f"cannot list directory: {cause_of(error)}"
        raise LogDirectoryError(reason, location) from None
    entries = [
        RemoteEntry(
            info.base_name,
            join(location, info.base_name),
            0 if info.size is None else info.size,
            info.type == pa_fs.FileType.Directory,
            _file_id(info.mtime, info.size),
        )
        for info in infos
    ]
    return sorted(entries)


def _place(location: str) -> tuple[pa_fs.FileSystem, str]:
    """Return the file system of a location, and its path there."""
    base, query = split_query(location)
    match = _STORE.fullmatch(base)
    store, key = (match[1], match[2]) if match else (base, "")
    file_system, root = _file_system(store, query)
    return file_system, f"{root}/{key}".rstrip("/") if root else f"/{key}"


@lru_cache(maxsize=32)
def _file_system(store: str, query: str) -> tuple[pa_fs.FileSystem, str]:
    """Return the file system of a store, made once a process, and the path of its root there."""
    if store.startswith("s3://"):
        return s3_file_system(store, query), store.removeprefix("s3://").rpartition("@")[2]
    if store.startswith("gs://") and "retry_limit_seconds=" not in query:
        query += f"{'&' if query else '?'}retry_limit_seconds={_GCS_RETRY_SECONDS}"
    file_system, root = pa_fs.FileSystem.from_uri(f"{store}/{query}")
    return file_system, root.rstrip("/")


class RemoteVersion(NamedTuple):
    """What a store says of a file when it is opened."""

    size_bytes: int
    entity_tag: str
    file_id: int


def open_remote(location: str) -> tuple[pa.NativeFile, RemoteVersion]:
    """Return a file and which one it is; one request.

    Raises
    ------
    SegmentVanishedError
        The file does not exist (any more).
    LogDirectoryError
        It cannot be opened; the text says why.
    """
    try:
        file_system, key = _place(location)
        file = file_system.open_input_file(key)
        size_bytes = int(file.size())
        metadata = file.metadata() or {}
    except FileNotFoundError:
        reason = "file is gone (deleted or renamed since the directory was listed)"
        raise SegmentVanishedError(reason, location) from None
    except STORE_FAILURES as error:
        reason = f"cannot open file: {cause_of(error)}"
        raise LogDirectoryError(reason, location) from None
    changed = _time_of(_text(metadata, "Last-Modified"))
    return file, RemoteVersion(size_bytes, _text(metadata, "ETag"), _file_id(changed, size_bytes))


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


def _file_id(changed: datetime | None, size_bytes: int | None) -> int:
    """Return one number from what listing and opening both say of a file, 0 if that is too little.

    A listing may have milliseconds, which the headers of a file have not.
    """
    if changed is None or size_bytes is None:
        return 0
    return int(changed.timestamp()) << _SIZE_BITS | size_bytes


def cause_of(error: BaseException) -> str:
    """Return why a request failed, in words that hold no secret."""
    text = str(error)
    if isinstance(error, S3UriError):
        return text
    if match := _REDIRECT.search(text):
        return (
            f"the store redirects to another address ({match[0]}), which is not followed; "
            "give that address as endpoint_override if you trust it"
        )
    if match := _AWS_CAUSE.search(text) or _WRONG_PARAMETER.search(text):
        return match[0]
    if "Unable to load lib" in text:
        return "Hadoop's libraries are not found; set HADOOP_HOME, JAVA_HOME and CLASSPATH"
    if isinstance(error, OSError) and error.strerror and error.errno:
        return error.strerror
    if isinstance(error, pa.ArrowInvalid | pa.ArrowNotImplementedError):
        return f"{type(error).__name__}: the URI is not one that pyarrow.fs understands"
    return f"{type(error).__name__} from the store; is it reached, and are the credentials right?"
