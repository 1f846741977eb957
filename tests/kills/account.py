"""What a log directory has to hold, whatever was killed: said by what was sent, not by our code."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pylog
from pylog.files.ledger import read_ledger
from tests.kills.jobs import row_count, values_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Account:
    """The jobs that were published in a directory, and the records that a broker acknowledged.

    Parameters
    ----------
    directory
        The log directory; nobody but this test's processes and its broker write to it.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._jobs: set[int] = set()
        self._expected: Counter[bytes] = Counter()
        self.is_taken_over = False
        """Whether a broker has come into a commit, all of which is visible as far as it is done."""

    @property
    def is_announced(self) -> bool:
        """Whether a commit is under way."""
        return (self.directory / ".pylog-manifest").exists()

    def look(self, under_way: int | None = None) -> str:
        """Read everything; return how much is seen of a job: ``nothing``, ``part`` or ``whole``."""
        return self.compare(self.values(), under_way)

    def values(self) -> Counter[bytes]:
        """Return the values of all records that we read."""
        scan = pylog.scan(self.directory, columns=["value"])
        return Counter(scan.to_table()["value"].to_pylist())

    def compare(self, found: Counter[bytes], under_way: int | None = None) -> str:
        """Hold values that somebody has read against what has to be there; see `look`."""
        # Most looks find one of these two, and equal dictionaries are found to be so quickly.
        if dict.__eq__(found, self._expected):
            return "nothing"
        own = Counter[bytes]() if under_way is None else values_of(under_way)
        if own and dict.__eq__(found, {**self._expected, **own}):  # no value is in both
            return "whole"
        lost = self._expected - found
        assert not lost, f"job {under_way}: {lost.total()} lost, such as {min(lost)!r}"
        found = found - self._expected
        others = found - own
        assert not others, f"job {under_way}: {others.total()} too many, such as {min(others)!r}"
        assert self.is_taken_over, f"job {under_way}: {found.total()} of {own.total()} are visible"
        return "part"

    def add(self, values: list[bytes]) -> None:
        """Note what a broker has acknowledged."""
        self._expected.update(values)

    def add_job(self, number: int) -> None:
        """Note that a job has been published."""
        self._jobs.add(number)
        self._expected.update(values_of(number))

    def publish(self, number: int) -> None:
        """Note that a job has come to its end; check that it is there, and what it left."""
        self.is_taken_over = False
        self.add_job(number)
        self.look()
        assert self.staged_files() == [], number

    def staged_files(self) -> list[str]:
        """Return the names of our files in the log directory, but for the ledger's."""
        names = {path.name for path in self.directory.glob(".pylog-*")}
        return sorted(names - {".pylog-ledger", ".pylog-only-replica"})

    def check_at_the_end(self, is_known: Callable[[int], bool] | None = None) -> None:
        """Check ledger and findings.

        ``is_known`` asks the product whether it knows that a job was written. The ledger has each
        job that writes once, and of each query the newest batch.
        """
        self.look()
        entries = read_ledger(str(self.directory)).entries
        assert len({each.key.job_id for each in entries}) == len(entries) > 0
        counts = Counter(each.record_count for each in entries)
        assert counts <= Counter(map(row_count, self._jobs))
        if is_known is not None:
            assert [each for each in sorted(self._jobs) if not is_known(each)] == []
            assert not is_known(max(self._jobs) + 1_000)
        self.check_findings()

    def check_findings(self) -> None:
        """Check that nothing is wrong with any file."""
        findings = pylog.read_table(self.directory, "findings").to_pylist()
        assert not [each for each in findings if each["severity"] != "info"]
