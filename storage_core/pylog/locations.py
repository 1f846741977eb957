"""Where a file or directory lies: a local path, or the URI of an object store. Text only.

A remote location is ``<scheme>://<host or bucket>/<key>``; a query after it (``?region=…``,
``?endpoint_override=…``) belongs to the store and goes along to everything below. User names and
passwords that a URI carries are never shown: `RemoteLocation` prints without them.
"""

from __future__ import annotations

import os
import posixpath
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from typing import Self

REMOTE_SCHEMES = ("s3", "s3a", "gs", "hdfs", "viewfs", "abfs", "abfss")
_SAME_AS = {"s3a": "s3"}
_ANY_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_FILE_URI = re.compile(r"file:(?://(?:localhost)?(?=/))?(.*)", re.DOTALL | re.IGNORECASE)
_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)(:/+)(.*)", re.DOTALL)
# What a URI has before its host. Keys of object stores may hold an "@", so that only the first
# component counts, but for a secret with a slash in it that was not written as %2F.
_USER_INFO = re.compile(r"[^/@]*@|[^/@:]*:(?!\d*/)[^/@]*/.*@", re.DOTALL)
_CONTAINER_SCHEMES = ("abfs", "abfss")  # container:password@account


class RemoteLocation(str):
    """The URI of a remote file or directory; what is printed of it shows no secret.

    String methods, and those who open it, have the whole text. `str`, `repr` and formatting,
    through which it comes into messages and logs, give what `printable_location` does.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """Keep the whole of ``text``, also of another location, which `str` would shorten."""
        return super().__new__(cls, str.__str__(text))

    def __str__(self) -> str:
        return printable_location(self)

    def __repr__(self) -> str:
        return repr(printable_location(self))

    def __format__(self, specification: str) -> str:
        return format(printable_location(self), specification)


def parse_location(text: str) -> str:
    """Return the location that a user wrote: ``file:`` URIs become local paths.

    Hadoop's names for a scheme (``s3a``) become those of ``pyarrow.fs``.

    Raises
    ------
    ValueError
        It is empty, a ``file:`` URI that names another host, or has a scheme that is not known.
    """
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
    if uri := _ANY_URI.match(text):
        scheme = uri[1].lower()
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
    """
    location = parse_location(text)
    if is_remote(location):
        return location
    return os.path.abspath(location)  # noqa: PTH100 - Path.resolve would follow links


def is_remote(location: str) -> bool:
    """Whether ``location`` is a URI and not a local path."""
    return _REMOTE.match(location) is not None


def split_query(location: str) -> tuple[str, str]:
    """Return a location without its query, and the query with its question mark."""
    if not is_remote(location):
        return location, ""
    base, mark, query = location.partition("?")
    return base.rstrip("/"), mark + query


def join(location: str, name: str) -> str:
    """Return the location of ``name`` in the directory at ``location``."""
    base, query = split_query(location)
    if is_remote(base):
        return RemoteLocation(posixpath.join(base, name) + query)
    return os.path.join(base, name)  # noqa: PTH118 - kept as text


def parent_of(location: str) -> str:
    """Return the location of the directory that holds ``location``."""
    base, query = split_query(location)
    if is_remote(base):
        return RemoteLocation(posixpath.dirname(base) + query)
    return os.path.dirname(base)  # noqa: PTH120 - kept as text


def name_of(location: str) -> str:
    """Return the last component of ``location``."""
    return posixpath.basename(split_query(location)[0])


def printable_location(location: str | os.PathLike[str]) -> str:
    """Return ``location`` as it may be printed: without user, password and query."""
    text = str.__str__(os.fspath(location))
    uri = _PARTS.fullmatch(text.partition("?")[0].rstrip("/"))
    if uri is None:
        return text
    scheme, slashes, rest = uri.groups()
    user_info = _USER_INFO.match(rest)
    container = ""
    if user_info and scheme.lower() in _CONTAINER_SCHEMES:
        container = f"{user_info[0].rstrip('@').partition(':')[0]}@"
    return f"{scheme}{slashes}{container}{rest[user_info.end() :] if user_info else rest}"
