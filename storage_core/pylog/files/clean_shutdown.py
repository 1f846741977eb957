"""``.kafka_cleanshutdown``: the broker closed all logs of this log directory in order.

Its existence is the message: without it, a broker distrusts the last segment of every partition.
It is written after all logs were closed and deleted at start-up. Since 3.7 it holds a JSON object
``{"version":0,"brokerEpoch":15}``, with -1 for an unknown epoch; before, it is empty.

Source: CleanShutdownFileHandler (KIP-966; Kafka 3.9 and 4.3), which ignores fields it does not
know and takes content that it cannot read for an unknown epoch.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import LogDirectoryError, SegmentVanishedError
from pylog.files import disk
from pylog.files.storage import open_file
from pylog.locations import is_remote, join

if TYPE_CHECKING:
    from pylog.files.durable_io import DurableIO

CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
UNKNOWN_BROKER_EPOCH = -1
_VERSION = 0
_MAX_JSON_BYTES = 64 * 1024
_MAX_BROKER_EPOCH = 2**63 - 1


class CleanShutdown(NamedTuple):
    """A clean shutdown; ``broker_epoch`` is None where the file does not name it."""

    broker_epoch: int | None


def read_clean_shutdown(path: str | os.PathLike[str]) -> CleanShutdown | None:
    """Return what the clean shutdown file says, None if there is no such file.

    Never fails because of the content: a file that cannot be understood is there all the same.
    """
    try:
        with open_file(path) as file:
            data = file.read_at(0, _MAX_JSON_BYTES)
    except SegmentVanishedError:
        return None
    return CleanShutdown(_find_broker_epoch(data))


def has_clean_shutdown(log_directory: str) -> bool:
    """Whether the marker of a clean stop is in a log directory."""
    path = join(log_directory, CLEAN_SHUTDOWN_FILE)
    if not is_remote(path):
        return disk.exists(path)  # whatever it is, as for a broker
    try:
        return read_clean_shutdown(path) is not None
    except LogDirectoryError:
        return False


def write_clean_shutdown(
    io: DurableIO, path: str | os.PathLike[str], broker_epoch: int = UNKNOWN_BROKER_EPOCH
) -> None:
    """Say that all logs of a directory were closed, and return when that is on the disk."""
    content = {"version": _VERSION, "brokerEpoch": broker_epoch}
    data = json.dumps(content, separators=(",", ":")).encode()
    io.write_file(path, data, sync=True)
    io.sync_directory(_directory_of(path))


def remove_clean_shutdown(io: DurableIO, path: str | os.PathLike[str]) -> bool:
    """Remove the clean shutdown file for good; return whether there was one.

    To be done before anything is written below the directory. Differs from Kafka, which does not
    sync the directory: after a power loss the file could be back, and vouch for a torn log.
    """
    if not io.remove(path, missing_ok=True):
        return False
    io.sync_directory(_directory_of(path))
    return True


def _directory_of(path: str | os.PathLike[str]) -> str:
    return os.path.dirname(os.fspath(path)) or os.curdir  # noqa: PTH120 - kept as text


def _find_broker_epoch(data: bytes) -> int | None:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):  # also: not UTF-8, empty, absurdly nested
        return None
    epoch = content.get("brokerEpoch") if isinstance(content, dict) else None
    if not isinstance(epoch, int) or isinstance(epoch, bool):
        return None
    return epoch if 0 <= epoch <= _MAX_BROKER_EPOCH else None
