"""How bad a finding is."""

from __future__ import annotations

from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is, the worst first.

    Attributes
    ----------
    ERROR
        Records are lost or cannot be read, or a broker does not start on the directory.
    WARNING
        Side files and batches do not agree, or bytes stand where none should. All records that the
        log still holds can be read.
    INFO
        Worth knowing, and nothing is wrong: what a crash, compaction, an older broker or remote
        storage leaves.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Severity).index(self)

    def is_at_least(self, other: Severity) -> bool:
        """Whether this is as bad as ``other``, or worse."""
        return self.rank <= other.rank
