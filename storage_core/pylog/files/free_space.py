"""Room for what is about to be written: looked for before, so that no disk fills up midway.

Where the file system can share the bytes of a file with its copy, a copy needs none.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import LogDirectoryError
from pylog.files.system_calls import SystemCalls

if TYPE_CHECKING:
    from collections.abc import Iterable

_SIDE_FILE_BYTES = 1 << 15
"""Indexes, a producer snapshot and checkpoints of one small log."""


class NeededSpace(NamedTuple):
    """Bytes at a place; ``source`` is a file that they are copied from, as far as they are."""

    place: str
    size_bytes: int
    source: str | None = None


def log_space(size_bytes: int) -> int:
    """Return how many bytes a log needs whose batches have so many."""
    return size_bytes * 51 // 50 + _SIDE_FILE_BYTES


def ensure_space(needs: Iterable[NeededSpace], what: str = "the copy") -> None:
    """Refuse to begin what the disks have no room for; places on one disk count together."""
    by_disk: dict[int, list[tuple[str, NeededSpace]]] = {}
    for each in needs:
        directory = _existing(each.place)
        by_disk.setdefault(os.stat(directory).st_dev, []).append((directory, each))  # noqa: PTH116
    for found in by_disk.values():
        directory, first = found[0]
        needed = sum(each.size_bytes for _, each in found)
        usage = shutil.disk_usage(directory)
        if not usage.total:
            continue  # a file system that does not say how large it is, as some of a network
        free = usage.free
        if free < needed:
            needed = _not_shared(needed, found)
        if free < needed:
            reason = (
                f"{what} needs {needed} bytes, and {free} are free here: nothing was written; make "
                "room, or give a place on another disk"
            )
            raise LogDirectoryError(reason, first.place)


def _existing(place: str) -> str:
    while not os.path.exists(place):  # noqa: PTH110 - kept as text
        place = os.path.dirname(place.rstrip("/")) or os.curdir  # noqa: PTH120
    return place


def _not_shared(needed: int, found: Iterable[tuple[str, NeededSpace]]) -> int:
    """Return how many bytes are left if copies share those of their sources."""
    answers: dict[int, bool] = {}  # by disk of the source
    for directory, each in found:
        if each.source is None:
            continue
        with suppress(OSError):
            disk = os.stat(each.source).st_dev  # noqa: PTH116 - kept as text
            if disk not in answers:
                answers[disk] = _can_share(each.source, directory)
            if answers[disk]:
                needed -= max(0, each.size_bytes - log_space(0))
    return needed


def _can_share(source: str, directory: str) -> bool:
    """Whether a file in a directory can share the bytes of another one: tried with a nameless one.

    Linux alone has such files, and can share bytes.
    """
    if not hasattr(os, "O_TMPFILE"):
        return False
    copy = os.open(directory, os.O_TMPFILE | os.O_RDWR, 0o600)
    try:
        with open(source, "rb") as file:  # noqa: PTH123 - kept as text
            return SystemCalls().clone(directory, copy, file.fileno())
    finally:
        os.close(copy)
