"""Value after value, whatever is wrong with the files that some of them come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pylog.errors import LogStorageError

if TYPE_CHECKING:
    from collections.abc import Callable

_Value = TypeVar("_Value")
_MOST_NOTES = 3


class Attempts:
    """Reads values, and keeps what went wrong, so that a row has whatever can be read.

    Attributes
    ----------
    errors
        What went wrong, each once: a file that cannot be read keeps back more than one value.
    """

    def __init__(self) -> None:
        self.errors: list[LogStorageError] = []
        self._texts: set[str] = set()

    def read(self, value: Callable[[], _Value]) -> _Value | None:
        """Return what ``value`` does, None where that raises an error of ours."""
        try:
            return value()
        except LogStorageError as error:
            text = str(error)
            if text not in self._texts:
                self._texts.add(text)
                self.errors.append(error)
            return None

    def notes(self) -> list[str]:
        """Return a line for each of the first errors, and one that says how many are left."""
        shown = [f"Unreadable: {error}" for error in self.errors[:_MOST_NOTES]]
        more = len(self.errors) - len(shown)
        return [*shown, f"Unreadable: {more} more"] if more else shown
