"""Files and directories of an object store or cluster file system, by location.

Credentials are found by the usual means of each store (for S3: environment, profile, instance
role), or stand among the location's parameters. No message of this module shows them.

Every read is a ranged request of its own over the network, so there are to be few and large ones.
Windows of a ``.log`` file are read as they are asked for, and no byte twice. Look-ups ask for a
header here and a batch there, each a little after the one before: a request fetches some
kilobytes more than was asked for, and what was fetched is kept. Indexes and other side files are
fetched whole. What was kept serves those who open the file next, while its entity tag is the same.

A file of a store may be replaced at any moment, and each request is answered by whatever has the
name then; no request can be bound to the answer of an earlier one (``pyarrow.fs`` sends no
``If-Match`` and does not show the headers of a ranged read). So the store is asked for the entity
tag when a file is opened and once more after the last read of it. A listing names no entity tags;
there, the time of the last change (in seconds) and the length tell one file from the next.
"""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.fs as pa_fs

from pylog.errors import LogDirectoryError, SegmentVanishedError
from pylog.files.byte_source import ByteSource
from pylog.files.cloud_stores import GcsStore, azure_file_system, gcs_file_system, s3_file_system
from pylog.files.file_names import LOG_FILE_SUFFIX
from pylog.files.stores import (
    STORE_FAILURES,
    ArrowStore,
    FsspecStore,
    cause_of,
    is_after_the_end,
    is_missing,
)
from pylog.locations import RemoteLocation, file_system_of, join, name_of, split_query

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.files.stores import ListedFile, RangedFile, RemoteStore, RemoteVersion

_KEPT_BYTES = 1 << 23  # of all files

_STORE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+://[^/?]*)/?(.*)", re.DOTALL)
_MAKERS = {
    "s3": s3_file_system,
    "gs": gcs_file_system,
    "az": azure_file_system,
    "abfs": azure_file_system,
    "abfss": azure_file_system,
}


class Stretch(NamedTuple):
    """Bytes of a file that were fetched."""

    start: int
    data: bytes

    @property
    def end(self) -> int:
        """The byte of the file after them."""
        return self.start + len(self.data)


class KeptBytes:
    """Stretches by file and entity tag, of all files of the process.

    Any number of threads: stretches never change, so that a race loses one at the worst.
    """

    def __init__(self) -> None:
        self._files: dict[tuple[str, str], tuple[Stretch, ...]] = {}

    def get(self, file: tuple[str, str]) -> tuple[Stretch, ...]:
        """Return the cached stretches of a file."""
        return self._files.get(file, ())

    def put(self, file: tuple[str, str], stretches: tuple[Stretch, ...]) -> None:
        """Keep ``stretches`` of a file, and forget those of others that are too much."""
        self._files.pop(file, None)
        files = [*self._files.items(), (file, stretches)]
        size_bytes = 0
        first = len(files)
        while first and size_bytes <= _KEPT_BYTES:
            first -= 1
            size_bytes += sum(len(stretch.data) for stretch in files[first][1])
        self._files = dict(files[first + (size_bytes > _KEPT_BYTES) :])


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
    """Return the entries of a remote directory, sorted by name."""
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
    """Return a file and which one it is; one request."""
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


READ_AHEAD_BYTES = 1 << 13

"""The least that a look-up in a ``.log`` file requests: half a batch of the usual 16 KB."""

SIDE_FILE_BYTES = 1 << 20

"""Up to this size, other files are fetched whole; a preallocated index is larger."""

_STRETCH_BYTES = 1 << 18

_STRETCHES = 4

_KEPT = KeptBytes()


class RemoteFile(ByteSource):
    """`ByteSource` of a remote file; keeps at most 1 MiB of what was fetched."""

    __slots__ = (
        "_file",
        "_identity",
        "_is_fetched_whole",
        "_is_log",
        "_is_unchecked",
        "_lock",
        "_stretches",
        "_version",
        "path",
    )

    def __init__(self, location: str) -> None:
        self.path = RemoteLocation(location)
        self._file: RangedFile | None
        self._file, self._version = open_remote(location)
        size, tag = self._version.size_bytes, self._version.entity_tag
        self._is_log = name_of(location).endswith(LOG_FILE_SUFFIX)
        self._is_fetched_whole = not self._is_log and size <= SIDE_FILE_BYTES
        self._identity = (location, tag) if tag else None
        # The least recently used first.
        self._stretches = _KEPT.get(self._identity) if self._identity else ()
        self._is_unchecked = False  # whether bytes have come since the entity tag was asked for
        self._lock = threading.Lock()

    def size(self) -> int:
        """Return the file's length in bytes, as it was when it was opened."""
        return self._version.size_bytes

    def file_id(self) -> int:
        """Return what a listing has for the file, 0 where the store does not tell."""
        return self._version.file_id

    def has_been_replaced(self) -> bool:
        """Whether what was read may be of another file that has the name by now.

        Costs a request if there was one since the file was opened or since the last call. Of
        ``.log`` files only: a side file comes in one answer, and a large index is a hint.
        """
        if self._identity is None:
            return False
        with self._lock:  # who asks meanwhile may have read what the answer is about
            if not self._is_unchecked:
                return False
            # What comes from now on, to other threads, the answer may not be about.
            self._is_unchecked, stretches = False, self._stretches
            is_same = False
            try:
                version = remote_version(self.path)
                size, tag = version.size_bytes, version.entity_tag
                is_same = (size, tag) == (self.size(), self._version.entity_tag)
            finally:
                self._is_unchecked = self._is_unchecked or not is_same
            if is_same:
                _KEPT.put(self._identity, stretches)
            return not is_same

    def ensure_current(self) -> None:
        """Raise an error if the file was replaced, also since bytes were read that are kept."""
        self._is_unchecked = self._is_log
        self.ensure_same()

    def read_at(self, position: int, length: int) -> bytes:
        """Return the bytes ``[position, position + length)``, fewer where the file ends before."""
        self._opened()
        end = min(position + length, self._version.size_bytes)
        if end <= position:
            return b""
        held = self._held(position)
        if end > held.end:
            start, wanted = held.end, max(end - held.end, READ_AHEAD_BYTES)
            if self._is_fetched_whole:
                held, start, wanted = Stretch(0, b""), 0, self._version.size_bytes
            more = self._request(start, min(wanted, self._version.size_bytes - start))
            held = Stretch(held.start, held.data + more)
        self._keep(held)
        return held.data[position - held.start : end - held.start]

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill ``buffer`` from ``position`` on; return how many bytes there were."""
        self._opened()
        buffer = buffer.cast("B")  # those of Arrow count their bytes as signed
        count = max(0, min(len(buffer), self._version.size_bytes - position))
        held = self._held(position)
        at = position - held.start
        filled = min(count, len(held.data) - at)
        buffer[:filled] = held.data[at : at + filled]
        if filled < count:
            data = self._request(position + filled, count - filled)
            buffer[filled : filled + len(data)] = data
            filled += len(data)
        return filled

    def _held(self, position: int) -> Stretch:
        """Return the stretch that reaches ``position``, an empty one there if none does."""
        for stretch in reversed(self._stretches):
            if stretch.start <= position <= stretch.end:
                return stretch
        return Stretch(position, b"")

    def _keep(self, stretch: Stretch) -> None:
        others = [each for each in self._stretches if each.start != stretch.start]
        if self._is_fetched_whole or len(stretch.data) <= _STRETCH_BYTES:
            others.append(stretch)
        self._stretches = tuple(others[-_STRETCHES:])
        if self._identity and not self._is_unchecked:
            _KEPT.put(self._identity, self._stretches)

    def next_data(self, position: int) -> int | None:
        """Return ``position``: an object store knows nothing of holes."""
        return position if position < self._version.size_bytes else None

    def _opened(self) -> RangedFile:
        if self._file is None:
            msg = f"read of a closed file: {self.path}"
            raise ValueError(msg)
        return self._file

    def _request(self, position: int, length: int) -> memoryview:
        """Return what the store gives of a range; less, or nothing, if the file is shorter now."""
        file = self._opened()
        self._is_unchecked = self._is_log
        try:
            data = memoryview(file.read_at(length, position))
        except STORE_FAILURES as error:
            if is_after_the_end(error):
                return memoryview(b"")
            if is_missing(error):
                reason = "file is gone (deleted since it was opened)"
                raise SegmentVanishedError(reason, self.path, position) from None
            reason = f"cannot read {length} bytes: {cause_of(error)}"
            raise LogDirectoryError(reason, self.path, position) from None
        self._is_unchecked = self._is_log  # once more: see `has_been_replaced`
        return data

    def close(self) -> None:
        """Release the file; a second call does nothing."""
        if self._file is not None:
            self._file.close()
            self._file = None
