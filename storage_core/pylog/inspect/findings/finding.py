"""A finding: something about a log that is not as a broker leaves it, or that is worth knowing."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from pylog.locations import printable_location


class Severity(StrEnum):
    """How bad a finding is.

    Attributes
    ----------
    ERROR
        Records are lost, or cannot be read.
    WARNING
        A side file is wrong or missing: a broker would rebuild, delete or ignore it. All records
        are there.
    NOTE
        Worth knowing, and nothing is wrong: what a crash, an older broker or remote storage leaves.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Finding(NamedTuple):
    """One row of table ``findings``, without topic and partition.

    Attributes
    ----------
    severity, code
        How bad, and what it is in one word.
    path
        The file, or the directory.
    message
        A line that suffices by itself next to the path.
    position, end_position
        Bytes ``[position, end_position)`` of the file; None where that has no meaning.
    next_offset, end_offset
        Offsets ``[next_offset, end_offset)`` that this is about; None likewise.
    """

    severity: Severity
    code: str
    path: str
    message: str
    position: int | None = None
    end_position: int | None = None
    next_offset: int | None = None
    end_offset: int | None = None

    def row(self) -> tuple[object, ...]:
        """Return the values in the order of the table's columns."""
        return (
            str(self.severity),
            self.code,
            printable_location(self.path),
            self.position,
            self.end_position,
            self.next_offset,
            self.end_offset,
            self.message,
        )


def warning(code: str, path: str, message: str) -> Finding:
    """Return a warning about a whole file."""
    return Finding(Severity.WARNING, code, path, message)


def missing_index(kind: str, path: str) -> Finding:
    """Return the warning that an index file of a segment is missing; ``kind`` as in its code."""
    return warning(
        f"missing_{kind}", path, "file is missing; a broker rebuilds it when it opens the log"
    )


def note(code: str, path: str, message: str) -> Finding:
    """Return a note about a whole file."""
    return Finding(Severity.NOTE, code, path, message)
