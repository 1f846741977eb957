"""Where a file or directory lies: a local path, or the URI of an object store. Text only.

A remote location is ``<scheme>://<host or bucket>/<key>``; a query after it (``?region=…``,
``?endpoint_override=…``) holds the parameters of the store and goes along to everything below. So
does a file system that a caller gave. User names, passwords and parameters are never shown:
`RemoteLocation` prints without them.

`location` makes one of a path in a file system that a caller gave, of ``pyarrow.fs`` or fsspec.
Neither library is imported here: the caller has done so.
"""

from __future__ import annotations

import os
import posixpath
import re
import sys
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlencode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

REMOTE_SCHEMES = ("s3", "s3a", "gs", "az", "abfs", "abfss", "hdfs", "viewfs")
_SAME_AS = {"s3a": "s3"}
_INSTEAD = {
    "s3n": "use s3:// or s3a:// with the same bucket and key",
    "gcs": "use gs:// with the same bucket and key",
    "wasb": "use abfs://<container>@<account>.dfs.core.windows.net/<path>, the same files over "
    "Azure's present interface",
    "wasbs": "use abfss://<container>@<account>.dfs.core.windows.net/<path>, the same files over "
    "Azure's present interface",
    "dbfs": "on Databricks, use the local path /dbfs/<path> (or /Volumes/<catalog>/<schema>/"
    "<volume>/<path>), or the URI of the cloud storage below it",
}
"""What to use for schemes that others know."""
_ANY_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_FILE_URI = re.compile(r"file:(?://(?:localhost)?(?=/))?(.*)", re.DOTALL | re.IGNORECASE)
_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)(:/+)(.*)", re.DOTALL)
# What a URI has before its host. Keys of object stores may hold an "@", so that only the first
# component counts, but for a secret with a slash in it that was not written as %2F.
OVERLAY_PREFIX = "/.pylog-overlay-"
"""What paths on an overlay begin with, see `pylog.files.overlay`."""
_OVERLAY_ROOT = re.compile(re.escape(OVERLAY_PREFIX) + "[0-9]+-[0-9]+")
_USER_INFO = re.compile(r"[^/@]*@|[^/@:]*:(?!\d*/)[^/@]*/.*@", re.DOTALL)
_CONTAINER_SCHEMES = ("abfs", "abfss", "wasb", "wasbs")  # container:password@account

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SHOWN_AS = {"gcs": "gs"}


class RemoteLocation(str):
    """The URI of a remote file or directory; what is printed of it shows no secret."""

    __slots__ = ("file_system",)
    file_system: object | None

    def __new__(cls, text: str, file_system: object | None = None) -> Self:
        """Keep the whole of ``text``, also of another location, which `str` would shorten."""
        made = super().__new__(cls, str.__str__(text))
        made.file_system = file_system_of(text) if file_system is None else file_system
        return made

    def __str__(self) -> str:
        return printable_location(self)

    def __repr__(self) -> str:
        return repr(printable_location(self))

    def __format__(self, specification: str) -> str:
        return format(printable_location(self), specification)


def parse_location(text: str) -> str:
    """Return the location that a user wrote: ``file:`` URIs become local paths."""
    if not text.strip():
        msg = "path is empty"
        raise ValueError(msg)
    if uri := _FILE_URI.fullmatch(text):
        path = unquote(uri[1])
        if path.startswith("//"):
            msg = (
                f"path {printable_location(text)!r} names another host; "
                "a directory here is file:///…"
            )
            raise ValueError(msg)
        return path
    if file_system_of(text) is not None:
        return text
    if uri := _ANY_URI.match(text):
        scheme = uri[1].lower()
        if scheme in _INSTEAD:
            msg = f"path {printable_location(text)!r}: {scheme}: is not read; {_INSTEAD[scheme]}"
            raise ValueError(msg)
        if scheme not in REMOTE_SCHEMES or not is_remote(text):
            msg = (
                f"path {printable_location(text)!r}: what can be read are local directories "
                f"(or file:///…) and {', '.join(f'{each}://' for each in REMOTE_SCHEMES)}"
            )
            raise ValueError(msg)
        return RemoteLocation(_SAME_AS.get(scheme, scheme) + text[len(scheme) :])
    return text


def absolute_location(text: str) -> str:
    """Return the location that a user wrote, as any process on this machine may use it.

    As of `parse_location`; a local path is taken from the working directory, and links in it are
    not followed.

    Raises
    ------
    ValueError
        As of `parse_location`.

    Examples
    --------
    >>> pylog.jobs.absolute_location("file:///data/logs")
    '/data/logs'
    """
    location = parse_location(text)
    if is_remote(location):
        return location
    return os.path.abspath(location)  # noqa: PTH100 - Path.resolve would follow links


def with_parameters(location: str, parameters: Mapping[str, object]) -> str:
    """Return ``location`` with parameters of its store, as a query of its URI would have them."""
    given = {name: value for name, value in parameters.items() if value is not None}
    if not given:
        return location
    names = ", ".join(sorted(given))
    if not is_remote(location):
        msg = f"path {location!r} is local, and storage options ({names}) are for stores"
        raise ValueError(msg)
    base, query = split_query(location)
    twice = sorted(given.keys() & dict(parse_qsl(query[1:], keep_blank_values=True)).keys())
    if twice:
        msg = f"{', '.join(twice)} stands in the URI {location} and in the storage options"
        raise ValueError(msg)
    texts = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in given.items()
    }
    added = urlencode(texts, quote_via=quote)
    return RemoteLocation(f"{base}{query}&{added}" if query else f"{base}?{added}")


def file_system_of(location: str) -> object | None:
    """Return the file system that a caller gave for ``location``, None if there is none."""
    return location.file_system if isinstance(location, RemoteLocation) else None


def is_remote(location: str) -> bool:
    """Whether ``location`` is a URI and not a local path."""
    return "://" in location and _REMOTE.match(location) is not None


def split_query(location: str) -> tuple[str, str]:
    """Return a location without its query, and the query with its question mark."""
    if not is_remote(location):
        return location, ""
    base, mark, query = location.partition("?")
    return base.rstrip("/"), mark + query


def join(location: str, name: str) -> str:
    """Return the location of ``name`` in the directory at ``location``."""
    if not is_remote(location):  # by itself: `os.path.join` takes five times as long
        return f"{location}/{name}" if location[-1:] not in ("", "/") else location + name
    base, query = split_query(location)
    return RemoteLocation(posixpath.join(base, name) + query, file_system_of(location))


def parent_of(location: str) -> str:
    """Return the location of the directory that holds ``location``."""
    if not is_remote(location):
        parent = location.rpartition("/")[0]
        is_plain = parent[-1:] not in ("", "/")
        return parent if is_plain else os.path.dirname(location)  # noqa: PTH120 - kept as text
    base, query = split_query(location)
    return RemoteLocation(posixpath.dirname(base) + query, file_system_of(location))


def name_of(location: str) -> str:
    """Return the last component of ``location``."""
    return posixpath.basename(split_query(location)[0])


def without_overlay(text: str) -> str:
    """Return a path, or a text with paths in it, with those of the disk for those of overlays."""
    return _OVERLAY_ROOT.sub("", text) if OVERLAY_PREFIX in text else text


def printable_location(location: str | os.PathLike[str]) -> str:
    """Return ``location`` as it may be printed: without user, password, query and overlay."""
    text = without_overlay(str.__str__(os.fspath(location)))
    uri = _PARTS.fullmatch(text.partition("?")[0].rstrip("/"))
    if uri is None:
        return text
    scheme, slashes, rest = uri.groups()
    user_info = _USER_INFO.match(rest)
    container = ""
    if user_info and scheme.lower() in _CONTAINER_SCHEMES:
        container = f"{user_info[0].rstrip('@').partition(':')[0]}@"
    return f"{scheme}{slashes}{container}{rest[user_info.end() :] if user_info else rest}"


def location(
    path: str | os.PathLike[str],
    *,
    filesystem: object | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> str:
    """Return the location of a path in a store, which is a path for every function of pylog.

    What it prints has neither parameters nor credentials. It may be pickled, with its parameters
    and, if that can be pickled, its file system.

    Parameters
    ----------
    path
        A local path or a URI; with ``filesystem``, a path there, with or without its scheme.
    filesystem
        A file system of ``pyarrow.fs`` or fsspec that reads the path.
    storage_options
        Parameters of the store, as docs/python.md lists them for each: they mean what they mean in
        a URI's query.

    Raises
    ------
    ValueError
        Storage options were given with a local path, a parameter twice, or with ``filesystem``; or
        the path is not one that can be read.
    TypeError
        ``filesystem`` is something else.

    Examples
    --------
    >>> pylog.location("s3://backups/logs", storage_options={"region": "eu-central-1"})
    's3://backups/logs'
    """
    text = os.fspath(path)
    if filesystem is None:
        return with_parameters(parse_location(text), storage_options or {})
    if storage_options:
        msg = "give either filesystem or storage_options, not both: a file system has its own"
        raise ValueError(msg)
    file_system = _unwrapped(filesystem)
    if _is_fsspec(file_system):
        protocols = file_system.protocol
        protocol = protocols if isinstance(protocols, str) else protocols[0]
        key = str(file_system._strip_protocol(text))
    else:
        protocol = file_system.type_name
        key = _URI.sub("", text)
    if protocol in ("file", "local"):
        return parse_location(key)
    if not key.strip("/"):
        msg = f"path {printable_location(text)!r} names nothing in the file system"
        raise ValueError(msg)
    if "?" in key:
        msg = f"path {printable_location(text)!r}: parameters and ? have no place beside filesystem"
        raise ValueError(msg)
    scheme = _SHOWN_AS.get(protocol, protocol)
    if not _SCHEME.fullmatch(scheme):
        scheme = "filesystem"
    # The id makes locations in two file systems two texts, whatever their paths are.
    return RemoteLocation(
        f"{scheme}://{key.rstrip('/')}?filesystem={uuid.uuid4().hex}", file_system
    )


_Place = TypeVar("_Place")


def in_store(
    place: _Place, filesystem: object | None, storage_options: Mapping[str, object] | None
) -> _Place | str | list[str]:
    """Return a path, or several, with how their store is reached; `location` has the arguments."""
    if filesystem is None and not storage_options:
        return place
    if isinstance(place, str | os.PathLike):
        return location(place, filesystem=filesystem, storage_options=storage_options)
    if isinstance(place, Iterator | list | tuple | set | frozenset):
        return [
            location(each, filesystem=filesystem, storage_options=storage_options) for each in place
        ]
    msg = "filesystem and storage_options are for paths: an open directory has its own"
    raise ValueError(msg)


def _unwrapped(filesystem: object) -> Any:  # noqa: ANN401 - neither library has types
    """Return the file system, that of fsspec if ``pyarrow`` was given one; else `TypeError`."""
    arrow = sys.modules.get("pyarrow.fs")
    if arrow is not None and isinstance(filesystem, arrow.FileSystem):
        handler = getattr(filesystem, "handler", None)
        return handler.fs if isinstance(handler, arrow.FSSpecHandler) else filesystem
    if _is_fsspec(filesystem):
        return filesystem
    msg = (
        f"filesystem is a {type(filesystem).__name__}, expected one of pyarrow.fs "
        "(pyarrow.fs.S3FileSystem(...)) or of fsspec (fsspec.filesystem('s3', ...))"
    )
    raise TypeError(msg)


def _is_fsspec(filesystem: object) -> bool:
    fsspec = sys.modules.get("fsspec.spec")
    return fsspec is not None and isinstance(filesystem, fsspec.AbstractFileSystem)
