"""How many files a server may have open: some for segments, the others for connections.

A process may have 1,024 files open by default, and may raise that itself up to a limit of the
system. Connections that say nothing must not take what those that fetch need.
"""

from __future__ import annotations

import resource
from contextlib import suppress
from typing import NamedTuple

from pylog.server.rate_limited_log import server_logger

_LOGGER = server_logger(__name__)
_OF_PROGRAM = 64
_MOST_SEGMENTS = 400
_LEAST_SEGMENTS = 16


class FileRoom(NamedTuple):
    """How many connections, and segments' files, may be open at once."""

    connections: int
    segments: int


def make_room(max_connections: int) -> FileRoom:
    """Raise the limit of open files if need be; return how many there may be of each kind."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OF_PROGRAM + 2 * (_MOST_SEGMENTS + max_connections)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(OSError, ValueError):  # a system may have a lower limit of its own
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    room = divided(soft, max_connections)
    if room.connections < max_connections:
        _LOGGER.warning(
            "at most %d connections are accepted, not %d: the process may have %d files open; "
            "raise the limit (ulimit -n %d)",
            room.connections,
            max_connections,
            soft,
            wanted,
        )
    return room


def divided(most_files: int, max_connections: int) -> FileRoom:
    """Return how many of each kind there may be, of so many files; -1 for any number."""
    if most_files == resource.RLIM_INFINITY:
        return FileRoom(max_connections, _MOST_SEGMENTS)
    rest = max(most_files - _OF_PROGRAM, 2 * _LEAST_SEGMENTS)
    segments = max(_LEAST_SEGMENTS, min(_MOST_SEGMENTS, rest // 4))
    # As many segments again: those of responses that are being sent.
    return FileRoom(max(1, min(max_connections, rest - 2 * segments)), segments)
