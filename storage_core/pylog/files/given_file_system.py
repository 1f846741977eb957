"""The location of a path in a file system that a caller gave: ``pyarrow.fs`` or fsspec.

Neither is imported here: whoever gives an object of one has imported it.
"""

from __future__ import annotations

import os
import re
import sys
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from pylog.locations import RemoteLocation, parse_location, printable_location, with_parameters

if TYPE_CHECKING:
    from collections.abc import Mapping

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SHOWN_AS = {"gcs": "gs"}


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
        Parameters of the store, as docs/remote.md lists them for each: they mean what they mean in
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
    >>> place = pylog.location("s3://backups/logs", storage_options={"region": "eu-central-1"})
    >>> pylog.doctor(place)
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
    """Return a path, or several, with how their store is reached; `location` has the arguments.

    What is neither, a log directory that is open, is returned as it is; `ValueError` if something
    was given to reach it by.
    """
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
