"""Errors of pylog in words for a Spark user: on which machine, and what to do there.

Planning runs on the driver's machine, reading on the executors': the same path may exist on one and
not on the other. Spark passes on the text of an error and not its type, so the text names the host.
"""

from __future__ import annotations

import getpass
import re
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pylog import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

ADVICE_ON_DAMAGE = (
    "read another replica, or what is intact: option mode=DROPMALFORMED leaves out exactly the "
    "damaged bytes, mode=PERMISSIVE gives a row of nulls in their place, startingOffsets and "
    "endingOffsets leave out a range"
)
_OF_WRITES = (
    errors.CorruptCheckpointError,
    errors.CorruptRecordError,
    errors.InvalidRecordError,
    errors.KafkaStorageError,
    errors.LogDirectoryError,
    errors.LogLockedError,
    errors.RecordBatchTooLargeError,
    errors.RecordTooLargeError,
    errors.RecordValidationError,
    errors.UnknownTopicOrPartitionError,
)
"""Errors of the library that take their text alone."""
_OF_LOSS = (
    "if retention deleted it since the DataFrame's first action, load() again, else make the "
    "directory visible on this host"
)
_WILDCARDS = re.compile(r"[*?\[{]")


class WorkerPythonError(RuntimeError):
    """The Python that Spark's workers run cannot read with pylog; the text says what to set."""


class JavaNotFoundError(RuntimeError):
    """There is no Java that Spark can start; the text says what to install."""


class StreamDataLossError(RuntimeError):
    """Offsets that a stream was to read are lost; the text says which and how to go on."""


@contextmanager
def advice_added(of_damage: str = ADVICE_ON_DAMAGE, of_loss: str = _OF_LOSS) -> Iterator[None]:
    """Have errors about files say on which host they are, and what to do."""
    try:
        yield
    except (
        errors.CorruptRecordError,
        errors.InvalidRecordError,
        errors.LogDirectoryError,
        errors.SegmentVanishedError,
    ) as error:
        # Path and position in the text alone, where the advice can follow them.
        raise type(error)(
            f"host {socket.gethostname()}: {error}{_advice(error, of_damage, of_loss)}"
        ) from error


@contextmanager
def place_of_write_added(place: str = "") -> Iterator[None]:
    """Have errors of a write say on which host they are, and what more a user of Spark can do."""
    where = f"host {socket.gethostname()}{place and f', {place}'}"
    try:
        yield
    except _OF_WRITES as error:
        raise type(error)(f"{where}: {error}{_advice_on_write(error)}") from error
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _advice_on_write(error: Exception) -> str:
    if isinstance(error, errors.LogLockedError):
        return "; option commitTimeout says how long a write waits, for example 10 minutes"
    if isinstance(error.__cause__, PermissionError):
        return f"; let user {_user()} write there: Spark's Python workers run as that user"
    return ""


def _advice(
    error: errors.CorruptRecordError
    | errors.InvalidRecordError
    | errors.LogDirectoryError
    | errors.SegmentVanishedError,
    of_damage: str,
    of_loss: str,
) -> str:
    if isinstance(error, errors.CorruptRecordError | errors.InvalidRecordError):
        return f"; {of_damage}"
    if isinstance(error, errors.SegmentReplacedError):
        return "; load() again to read what is there now"
    if isinstance(error, errors.SegmentVanishedError):
        return f"; {of_loss}"
    if isinstance(error.__cause__, PermissionError):
        return f"; let user {_user()} read it: Spark's Python workers run as that user"
    if isinstance(error.__cause__, FileNotFoundError) and _WILDCARDS.search(str(error.path)):
        return "; wildcards are not expanded, load() takes a list of directories"
    return ""


def _user() -> str:
    try:
        return repr(getpass.getuser())
    except (KeyError, OSError):  # a container's user without a name
        return "of this process"
