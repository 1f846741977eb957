"""Stores: file systems of ``pyarrow.fs`` and fsspec, their parameters, and why a request failed."""

from __future__ import annotations

import difflib
import os
import re
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import parse_qsl

import pyarrow as pa
import pyarrow.fs as pa_fs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pylog.files.writable_file import BytesLike

_SIZE_BITS = 48  # stores take no file of 256 TiB

_TAGS = ("ETag", "etag", "generation")  # of s3fs and http, gcsfs and adlfs, gcsfs
_TIMES = ("LastModified", "last_modified", "updated", "mtime", "created")


class ListedFile(NamedTuple):
    """One entry of a listed directory, by the last component of its key."""

    name: str
    size_bytes: int
    is_directory: bool
    file_id: int = 0


class RemoteVersion(NamedTuple):
    """What a store says of a file when it is opened."""

    size_bytes: int
    entity_tag: str
    file_id: int


class RangedFile(Protocol):
    """An open file of a store."""

    def read_at(self, length: int, position: int) -> BytesLike:
        """Return the bytes of a range in one request; fewer if the file is shorter."""
        ...

    def close(self) -> None:
        """Release it; a second call does nothing."""
        ...


class RemoteStore(Protocol):
    """A file system of a library, under the paths of that library."""

    def entries(self, key: str) -> list[ListedFile]:
        """Return the entries of a directory, in any order."""
        ...

    def open(self, key: str) -> tuple[RangedFile, RemoteVersion]:
        """Return a file and which one it is."""
        ...

    def version_of(self, key: str) -> RemoteVersion:
        """Return which file has the name now; one request."""
        ...

    def exists(self, key: str) -> bool:
        """Whether there is a file or directory, or a bucket, of that name."""
        ...


def file_id(changed: datetime | None, size_bytes: int | None) -> int:
    """Return one number from what listing and opening both say of a file, 0 if too little."""
    if changed is None or size_bytes is None:
        return 0
    return int(changed.timestamp()) << _SIZE_BITS | size_bytes


class StoreUriError(ValueError):
    """A URI does not lead to a store; the text holds nothing of what may be secret."""


def store_parts(shape: re.Pattern[str], store: str, shapes: str) -> list[str]:
    """Return the groups of a store's URI, empty where one is not there."""
    parts = shape.fullmatch(store)
    if parts is None:
        msg = f"not {shapes}"
        raise StoreUriError(msg)
    return list(parts.groups(default=""))


def endpoint_parameters(url: str, default_scheme: str) -> dict[str, Any]:
    """Return the parameters that lead to the server at ``url``; none if it is empty."""
    scheme, _, endpoint = url.rstrip("/").rpartition("://")
    return {"endpoint_override": endpoint, "scheme": scheme or default_scheme} if endpoint else {}


def boolean(text: str) -> bool:
    """Return what "true" or "false" means."""
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true"


def parse_parameters(query: str, known: Mapping[str, Callable[[str], object]]) -> dict[str, Any]:
    """Return the parameters in a query by name."""
    parameters: dict[str, object] = {}
    for name, text in parse_qsl(query.removeprefix("?"), keep_blank_values=True):
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            msg = f"unknown parameter {name!r}{hint}; there are {', '.join(known)}"
            raise StoreUriError(msg)
        try:
            parameters[name] = known[name](text)
        except ValueError:
            msg = f"parameter {name!r} has an invalid value"
            raise StoreUriError(msg) from None
    return parameters


def made_by_arrow(name: str, parameters: Mapping[str, object]) -> Any:  # noqa: ANN401 - as pyarrow
    """Return the file system of ``pyarrow.fs`` called ``name``, made with ``parameters``."""
    try:
        return getattr(pa_fs, name)(**parameters)
    except ImportError:
        msg = f"this build of pyarrow has no {name}; the one on PyPI has, for Linux and macOS"
        raise StoreUriError(msg) from None
    except TypeError:
        names = ", ".join(parameters)
        msg = f"pyarrow {version('pyarrow')} does not know all of {names}; a newer one does"
        raise StoreUriError(msg) from None
    except ValueError:  # its text may repeat values
        msg = f"parameters {', '.join(parameters)} do not go together"
        raise StoreUriError(msg) from None


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
        """Return whether the store has an object or folder of that name."""
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
    """A `RemoteStore` of a file system of fsspec. Any number of threads, if its own is for them.

    Ranges are asked for by `cat_file`, each in one request and no longer than wanted: files that
    fsspec opens read ahead by megabytes. Its file systems keep what they have listed, and answer by
    that for ever; so that is forgotten before each question.
    """

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


STORE_FAILURES = (OSError, pa.ArrowException, StoreUriError)

"""What a store raises; all else is a mistake of ours."""

_AWS_CAUSE = re.compile(
    r"AWS Error [A-Z_]+(?: \(HTTP status \d+\))?(?: during \w+ operation)?"
    r"(?:: curlCode: \d+, [A-Za-z ']+)?"
)

_AZURE_CAUSE = re.compile(r"Azure Error: \[(\w*)\] (\d+)")

_GOOGLE_CAUSE = re.compile(r"google::cloud::Status\(([A-Z_]+)")

_GOOGLE_ADVICE = {
    "UNAVAILABLE": "; is the store reached?",
    "UNAUTHENTICATED": "; are the credentials right?",
    "PERMISSION_DENIED": "; may these credentials read and list it?",
}

_WRONG_PARAMETER = re.compile(r"Unexpected query parameter in \w+ URI: '\w+'")

_REDIRECT = re.compile(r"HTTP status 3\d\d")

_GONE = re.compile(
    r"AWS Error (?:NO_SUCH_KEY|RESOURCE_NOT_FOUND)|HTTP status 404|Azure Error: \[\w*\] 404"
    r"|Status\(NOT_FOUND|^No such file or directory '"
)

_AFTER_THE_END = re.compile(
    r"AWS Error INVALID_RANGE|HTTP status 416|Azure Error: \[\w*\] 416|Status\(OUT_OF_RANGE"
)

_NO_CREDENTIALS = re.compile(r"[Cc]redential|OAuth|metadata\.google\.internal|GetToken")


def is_missing(error: BaseException) -> bool:
    """Whether there is no file or directory of the name."""
    return isinstance(error, FileNotFoundError) or _GONE.search(str(error)) is not None


def is_after_the_end(error: BaseException) -> bool:
    """Whether a range was asked for that the file is too short for by now."""
    return _AFTER_THE_END.search(str(error)) is not None


def cause_of(error: BaseException) -> str:
    """Return why a request failed."""
    text = str(error)
    if isinstance(error, StoreUriError | FsspecError):
        return text
    if match := _REDIRECT.search(text):
        return (
            f"the store redirects to another address ({match[0]}), which is not followed; "
            "give that address as endpoint_override if you trust it"
        )
    if match := _AWS_CAUSE.search(text) or _WRONG_PARAMETER.search(text):
        return match[0]
    if cause := _cause_of_cloud(text):
        return cause
    if "Unable to load lib" in text:
        return "Hadoop's libraries are not found; set HADOOP_HOME, JAVA_HOME and CLASSPATH"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    if isinstance(error, pa.ArrowInvalid | pa.ArrowNotImplementedError):
        return f"{type(error).__name__}: the URI is not one that pyarrow.fs understands"
    return f"{type(error).__name__} from the store; is it reached, and are the credentials right?"


def _cause_of_cloud(text: str) -> str:
    """Return what Azure or Google said, "" if neither did."""
    if match := _AZURE_CAUSE.search(text):
        return f"Azure error {match[1] or 'without a name'} (HTTP status {match[2]})"
    if match := _GOOGLE_CAUSE.search(text):
        about = "; are there credentials?" if _NO_CREDENTIALS.search(text) else ""
        return f"Google Cloud error {match[1]}{about or _GOOGLE_ADVICE.get(match[1], '')}"
    return ""
