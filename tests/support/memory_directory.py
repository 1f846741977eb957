"""A directory in memory, for tests that would wait for the disk all the time."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_MEMORY = Path("/dev/shm")  # noqa: S108 - a fresh directory is made in it
_NEEDED_BYTES = 1 << 29
"""Containers often have 64 MiB there, which is not enough for a broker's log directory."""


@contextmanager
def memory_directory() -> Iterator[Path]:
    """Give an empty directory, in memory where the system has room there; remove it afterwards.

    For tests in which no power is lost: what a killed process wrote is there, as on a disk.
    """
    has_place = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _NEEDED_BYTES
    parent = _MEMORY if has_place else None
    with tempfile.TemporaryDirectory(dir=parent, prefix="pylog-") as directory:
        yield Path(directory)
