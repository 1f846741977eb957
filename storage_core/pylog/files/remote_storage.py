"""Files and directories of an object store or cluster file system, through ``pyarrow.fs``.

Every read is a ranged request of its own over the network, so there are to be few and large ones.
Windows of a ``.log`` file are read as they are asked for, and no byte twice. Look-ups ask for a
header here and a batch there, each a little behind the one before: a request fetches some
kilobytes more than was asked for, and what was fetched is kept. Indexes and other side files are
fetched whole. What was kept serves those who open the file next, while its entity tag is the same.

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
from pylog.files.file_names import LOG_FILE_SUFFIX
from pylog.files.s3_store import S3UriError, s3_file_system
from pylog.locations import RemoteLocation, join, name_of, split_query

READ_AHEAD_BYTES = 1 << 13
"""The least that a look-up in a ``.log`` file requests: half a batch of the usual 16 KB."""

SIDE_FILE_BYTES = 1 << 20
"""Up to this size, other files are fetched whole; a preallocated index is larger."""

_STRETCH_BYTES = 1 << 18
_STRETCHES = 4
_KEPT_BYTES = 1 << 23  # of all files
_GCS_RETRY_SECONDS = 60  # what Arrow does by itself is to try for a quarter of an hour
_STORE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+://[^/?]*)/?(.*)", re.DOTALL)
_AWS_CAUSE = re.compile(
    r"AWS Error [A-Z_]+(?: \(HTTP status \d+\))?(?: during \w+ operation)?"
    r"(?:: curlCode: \d+, [A-Za-z ']+)?"
)
_WRONG_PARAMETER = re.compile(r"Unexpected query parameter in \w+ URI: '\w+'")
_GONE = re.compile(r"AWS Error (?:NO_SUCH_KEY|RESOURCE_NOT_FOUND)|HTTP status 404")
_FAILURES = (OSError, pa.ArrowException, S3UriError)
_BEHIND_THE_END = re.compile(r"AWS Error INVALID_RANGE|HTTP status 416")


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


class _Stretch(NamedTuple):
    """Bytes of a file that were fetched."""

    start: int
    data: bytes

    @property
    def end(self) -> int:
        """The byte of the file behind them."""
        return self.start + len(self.data)


class _Kept:
    """What was fetched lately, by file and entity tag, of all files of the process.

    Any number of threads: stretches never change, so that a race loses one at the worst.
    """

    def __init__(self) -> None:
        self._files: dict[tuple[str, str], tuple[_Stretch, ...]] = {}

    def get(self, file: tuple[str, str]) -> tuple[_Stretch, ...]:
        """Return what is kept of a file."""
        return self._files.get(file, ())

    def put(self, file: tuple[str, str], stretches: tuple[_Stretch, ...]) -> None:
        """Keep ``stretches`` of a file, and forget those of others that are too much."""
        self._files.pop(file, None)
        files = [*self._files.items(), (file, stretches)]
        size_bytes = 0
        first = len(files)
        while first and size_bytes <= _KEPT_BYTES:
            first -= 1
            size_bytes += sum(len(stretch.data) for stretch in files[first][1])
        self._files = dict(files[first + (size_bytes > _KEPT_BYTES) :])


_KEPT = _Kept()


class RemoteFile(ByteSource):
    """`ByteSource` of a remote file; keeps at most 1 MiB of what was fetched. One thread.

    Raises
    ------
    SegmentVanishedError
        The file does not exist (any more).
    LogDirectoryError
        It cannot be opened; the text says why.
    """

    __slots__ = ("_file", "_identity", "_is_fetched_whole", "_size", "_stretches", "path")

    def __init__(self, location: str) -> None:
        self.path = RemoteLocation(location)
        try:
            file_system, key = _place(location)
            self._file: pa.NativeFile | None = file_system.open_input_file(key)
            self._size = int(self._file.size())
            tag = _entity_tag(self._file)
        except FileNotFoundError:
            reason = "file is gone (deleted or renamed since the directory was listed)"
            raise SegmentVanishedError(reason, location) from None
        except _FAILURES as error:
            reason = f"cannot open file: {_cause(error)}"
            raise LogDirectoryError(reason, location) from None
        is_log = name_of(location).endswith(LOG_FILE_SUFFIX)
        self._is_fetched_whole = not is_log and self._size <= SIDE_FILE_BYTES
        self._identity = (location, tag) if tag else None
        # The least recently used first.
        self._stretches = _KEPT.get(self._identity) if self._identity else ()

    def size(self) -> int:
        """Return the file's length in bytes, as it was when it was opened."""
        return self._size

    def file_id(self) -> int:
        """Return 0: an object store names no identity that is free of charge."""
        return 0

    def read_at(self, position: int, length: int) -> bytes:
        """Return the bytes ``[position, position + length)``, fewer where the file ends before."""
        end = min(position + length, self._size)
        if end <= position:
            return b""
        held = self._held(position)
        if end > held.end:
            start, wanted = held.end, max(end - held.end, READ_AHEAD_BYTES)
            if self._is_fetched_whole:
                held, start, wanted = _Stretch(0, b""), 0, self._size
            more = self._request(start, min(wanted, self._size - start))
            held = _Stretch(held.start, held.data + more)
        self._keep(held)
        return held.data[position - held.start : end - held.start]

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill ``buffer`` from ``position`` on; return how many bytes there were."""
        count = max(0, min(len(buffer), self._size - position))
        held = self._held(position)
        at = position - held.start
        filled = min(count, len(held.data) - at)
        buffer[:filled] = held.data[at : at + filled]
        if filled < count:
            data = self._request(position + filled, count - filled)
            buffer[filled : filled + len(data)] = data
            filled += len(data)
        return filled

    def _held(self, position: int) -> _Stretch:
        """Return the stretch that reaches ``position``, an empty one there if none does."""
        for stretch in reversed(self._stretches):
            if stretch.start <= position <= stretch.end:
                return stretch
        return _Stretch(position, b"")

    def _keep(self, stretch: _Stretch) -> None:
        others = [each for each in self._stretches if each.start != stretch.start]
        if self._is_fetched_whole or len(stretch.data) <= _STRETCH_BYTES:
            others.append(stretch)
        self._stretches = tuple(others[-_STRETCHES:])
        if self._identity:
            _KEPT.put(self._identity, self._stretches)

    def next_data(self, position: int) -> int | None:
        """Return ``position``: an object store knows nothing of holes."""
        return position if position < self._size else None

    def _request(self, position: int, length: int) -> memoryview:
        """Return what the store gives of a range; less, or nothing, if the file is shorter now."""
        if self._file is None:
            msg = f"read of a closed file: {self.path}"
            raise ValueError(msg)
        try:
            return memoryview(self._file.read_at(length, position))
        except _FAILURES as error:
            if _BEHIND_THE_END.search(str(error)):
                return memoryview(b"")
            if isinstance(error, FileNotFoundError) or _GONE.search(str(error)):
                reason = "file is gone (deleted since it was opened)"
                raise SegmentVanishedError(reason, self.path, position) from None
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
    except FileNotFoundError:
        reason = "no such directory (object stores have none without files)"
        raise LogDirectoryError(reason, location) from None
    except _FAILURES as error:
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
    if store.startswith("s3://"):
        return s3_file_system(store, query), store.removeprefix("s3://").rpartition("@")[2]
    if store.startswith("gs://") and "retry_limit_seconds=" not in query:
        query += f"{'&' if query else '?'}retry_limit_seconds={_GCS_RETRY_SECONDS}"
    file_system, root = pa_fs.FileSystem.from_uri(f"{store}/{query}")
    return file_system, root.rstrip("/")


def _entity_tag(file: pa.NativeFile) -> str:
    """Return what tells a file's content from what it had before; "" where no store says."""
    metadata = file.metadata() or {}
    return str(metadata.get("ETag") or metadata.get(b"ETag") or "")


def _cause(error: BaseException) -> str:
    """Return why a request failed, in words that hold no secret."""
    text = str(error)
    if isinstance(error, S3UriError):
        return text
    if found := _AWS_CAUSE.search(text) or _WRONG_PARAMETER.search(text):
        return found[0]
    if "Unable to load lib" in text:
        return "Hadoop's libraries are not found; set HADOOP_HOME, JAVA_HOME and CLASSPATH"
    if isinstance(error, OSError) and error.strerror and error.errno:
        return error.strerror
    if isinstance(error, pa.ArrowInvalid | pa.ArrowNotImplementedError):
        return f"{type(error).__name__}: the URI is not one that pyarrow.fs understands"
    return f"{type(error).__name__} from the store; is it reached, and are the credentials right?"
