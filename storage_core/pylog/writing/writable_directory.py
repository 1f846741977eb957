"""Which paths may be opened as a log directory for writing."""

from __future__ import annotations

import os

from pylog.errors import LogDirectoryError
from pylog.files.file_names import find_segment_file_name
from pylog.files.storage import list_directory
from pylog.locations import is_remote, parse_location


def writable_log_directory(path: str | os.PathLike[str], *, must_exist: bool = False) -> str:
    """Return ``path`` as a local path, once it is known not to be something else.

    Parameters
    ----------
    path
        A log directory, or one to be made; also as ``file:///…``.
    must_exist
        Whether one to be made will not do.

    Raises
    ------
    LogDirectoryError
        It lies in an object store, is a topic-partition directory, a file, or not there.
    ValueError
        It is empty, or a URI of a scheme that is not known.
    """
    location = parse_location(os.fspath(path))
    if is_remote(location):
        reason = "only local directories can be written to"
        raise LogDirectoryError(reason, location)
    if not must_exist and not os.path.lexists(location):
        return location
    if any(find_segment_file_name(entry.name) for entry in list_directory(location)):
        reason = "this is a partition, and not a log directory; give the directory above it"
        raise LogDirectoryError(reason, location)
    return location
