"""A piece of a dump whose lines can be made apart from those of the others, by any thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.errors import LogStorageError
    from pylog.inspect.dump.file_report import FileReport


class DumpPart(Protocol):
    """Is iterated once, and then adds what it has found to the report of its file.

    Iterating raises `LogStorageError` where the tool ends with an exception: the parts of the file
    that come after are left out.
    """

    @property
    def size_bytes(self) -> int:
        """How much of a file it is of, as far as that takes time."""
        ...

    def __iter__(self) -> Iterator[memoryview]:
        """Yield text in UTF-8."""
        ...

    def report_to(self, report: FileReport) -> None:
        """Add what was found; parts of a file do so in their order."""
        ...


class TextPart:
    """Lines that are known already."""

    size_bytes = 0

    def __init__(self, text: str) -> None:
        self._text = text

    def __iter__(self) -> Iterator[memoryview]:
        """Yield the text."""
        if self._text:
            # What is not UTF-8 in a name of a file is written as the bytes that it was.
            yield memoryview(self._text.encode("utf-8", "surrogateescape"))

    def report_to(self, report: FileReport) -> None:
        """Nothing was found."""


class FailedPart:
    """Stands where a file could not be read on."""

    size_bytes = 0

    def __init__(self, error: LogStorageError) -> None:
        self._error = error

    def __iter__(self) -> Iterator[memoryview]:
        """Raise the error."""
        raise self._error

    def report_to(self, report: FileReport) -> None:
        """Nothing else was found."""


class UnknownFile:
    """Stands for a file that is of none of the kinds that are dumped."""

    size_bytes = 0

    def __init__(self, path: str) -> None:
        self._path = path

    def __iter__(self) -> Iterator[memoryview]:
        """Yield nothing."""
        return iter(())

    def report_to(self, report: FileReport) -> None:
        """Say so, as the tool does."""
        report.errors.append(f"Ignoring unknown file {self._path}")
