"""``.checkpoint`` files: snapshots of the metadata log, which consist of batches as a ``.log``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pylog.errors import LogDirectoryError

if TYPE_CHECKING:
    from pylog.inspect.dump.dump_file import DumpFile

BOOTSTRAP = "bootstrap.checkpoint"
_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint", re.ASCII)


def checkpoint_heading(file: DumpFile) -> str:
    """Return the line that the file's dump begins with.

    Raises
    ------
    LogDirectoryError
        The name does not tell the end offset and the epoch.
    """
    if file.name == BOOTSTRAP:
        return "KRaft bootstrap snapshot\n"
    match = _SNAPSHOT.fullmatch(file.name)
    if match is None:
        reason = "not the name of a snapshot, <20 digits>-<10 digits>.checkpoint"
        raise LogDirectoryError(reason, file.location)
    return f"Snapshot end offset: {int(match[1])}, epoch: {int(match[2])}\n"
