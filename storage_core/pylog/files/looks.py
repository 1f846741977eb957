"""Looks again at files that somebody else changes meanwhile: a broker, a commit, a compaction.

Readers take no lock. Where what they have seen cannot belong together (a file is gone that was
listed, a commit ended between two looks) they look again. Each look that fails needs a change of
its own, so that a hundred in a row are no bad luck: something changes all the time, or a fault
looks like a change. Then a reader ends with an error instead of looking for ever.
"""

from __future__ import annotations

MOST_LOOKS = 100


class Looks:
    """Counts the looks of one reader; see the top of this module."""

    def __init__(self) -> None:
        self._left = MOST_LOOKS

    def again(self, error: Exception) -> None:
        """Let the caller look again, or raise ``error`` if it has looked often enough."""
        self._left -= 1
        if not self._left:
            raise error
