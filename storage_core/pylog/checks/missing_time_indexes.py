"""Time indexes that are missing, or have no entry.

They came with Kafka 0.10.1. An older broker writes none, and nothing is wrong with its log; a later
one makes those that are missing when it opens a log. So it is a warning if a segment has none
although another one has, or although the log holds batches of format v2, which came later (0.11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.files import disk
from pylog.files.file_names import TIME_INDEX_FILE_SUFFIX
from pylog.findings import kinds
from pylog.findings.finding import Effect, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.reading.log_view import LogView
    from pylog.record.batch_scan import Window


MISSING_FILE = "the file is missing"


def without_entries(
    found: Finding, log: str, held: tuple[int, int], latest: int, *, is_last: bool
) -> Finding:
    """Return a finding about a time index without entries with what that costs look-ups.

    The time that the ``.log`` was changed then counts as that of its last record: of ``held`` no
    record is found that is later, or else none in later segments that is not.
    """
    if latest < 0:
        return found
    try:
        modified = disk.stat(log).st_mtime_ns // 1_000_000
    except OSError:  # a broker deletes it, or it is in an object store
        return found
    start, end = (held[0], held[1]) if modified < latest else (held[1], None)
    if is_last and end is None:
        return found
    return found._replace(next_offset=start, end_offset=end, own_effect=Effect.CONSUMERS)


class MissingTimeIndexes:
    """Looks at all batches of a log for what only brokers with time indexes have written.

    A segment without entries counts for look-ups as if the time its file was changed were that of
    its last record: it hides what later segments have, and its own records if they are later.
    """

    def __init__(self, view: LogView) -> None:
        self._path = view.directory.path
        # A broker makes the indexes of a new segment when it first appends to it.
        is_new = bool(view.segments) and not view.segments[-1].size_bytes
        judged = view.segments[:-1] if is_new else view.segments
        self._missing = {
            segment.file_path(): segment.file_path(TIME_INDEX_FILE_SUFFIX)
            for segment in judged
            if TIME_INDEX_FILE_SUFFIX not in segment.suffixes
        }
        self._is_expected = len(self._missing) < len(judged)
        self._last = judged[-1].file_path() if judged else ""
        self._held: dict[str, tuple[int, int, int]] = {}

    def add(self, window: Window) -> None:
        """Look at the formats of these batches."""
        headers = window.headers
        self._is_expected |= bool(headers.is_v2.any())
        if window.path in self._missing and len(headers):
            start, _, latest = self._held.get(window.path, (int(headers.offsets[0]), 0, -1))
            latest = max(latest, int(headers.max_timestamps.max()))
            self._held[window.path] = start, int(headers.last_offsets[-1]) + 1, latest

    def findings(self) -> Iterator[Finding]:
        """Yield a warning for each missing file; one line if no broker may have written any."""
        if self._is_expected:
            for log, path in self._missing.items():
                start, end, latest = self._held.get(log, (0, 0, -1))
                found = kinds.MISSING_TIME_INDEX.found(path, MISSING_FILE)
                is_last = log == self._last
                yield without_entries(found, log, (start, end), latest, is_last=is_last)
        elif self._missing:
            message = (
                "no segment has a time index, as brokers before 0.10.1 leave a log; look-ups by "
                "timestamp read batch headers instead"
            )
            yield kinds.NO_TIME_INDEXES.found(self._path, message)
