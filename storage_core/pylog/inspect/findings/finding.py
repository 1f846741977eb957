"""A finding: something about a log that is not as a broker leaves it, or that is worth knowing."""

from __future__ import annotations

from typing import NamedTuple

from pylog.inspect.findings.finding_codes import FINDING_CODES
from pylog.inspect.findings.severity import Severity
from pylog.locations import printable_location


class Finding(NamedTuple):
    """One row of table ``findings``, without topic and partition.

    Attributes
    ----------
    severity, code
        How bad, and what it is in one word: a key of `FINDING_CODES`.
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

    @property
    def broker_action(self) -> str:
        """What a broker does about it when it starts on the directory."""
        return FINDING_CODES[self.code].broker_action

    @property
    def advice(self) -> str:
        """What an operator can do about it."""
        return FINDING_CODES[self.code].advice

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
            self.broker_action,
            self.advice,
        )


def warning(code: str, path: str, message: str) -> Finding:
    """Return a warning about a whole file."""
    return Finding(Severity.WARNING, code, path, message)


def missing_index(kind: str, path: str) -> Finding:
    """Return the warning that an index file of a segment is missing; ``kind`` as in its code."""
    return warning(f"missing_{kind}", path, "the file is missing")


def info(code: str, path: str, message: str) -> Finding:
    """Return what is worth knowing of a whole file."""
    return Finding(Severity.INFO, code, path, message)
