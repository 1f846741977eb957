"""Findings about segments that have no time index, once all of a log has been seen.

Time indexes came with Kafka 0.10.1. An older broker writes none, and nothing is wrong with its log;
a later one makes those that are missing when it opens a log. So it is a warning if a segment has
none although another one has, or although the log holds batches of format v2, which came later
(0.11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.files.file_names import TIME_INDEX_FILE_SUFFIX
from pylog.inspect.findings.finding import info, missing_index

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.inspect.findings.finding import Finding
    from pylog.reading.log_view import LogView
    from pylog.record.window import Window

NO_TIME_INDEXES = "no_time_indexes"


class MissingTimeIndexes:
    """Looks at all batches of a log for what only brokers with time indexes have written.

    Parameters
    ----------
    view
        Whose log.
    """

    def __init__(self, view: LogView) -> None:
        self._path = view.directory.path
        # A broker makes the indexes of a new segment when it first appends to it.
        is_new = bool(view.segments) and not view.segments[-1].size_bytes
        judged = view.segments[:-1] if is_new else view.segments
        self._missing = [
            segment.file_path(TIME_INDEX_FILE_SUFFIX)
            for segment in judged
            if TIME_INDEX_FILE_SUFFIX not in segment.suffixes
        ]
        self._is_expected = len(self._missing) < len(judged)

    def add(self, window: Window) -> None:
        """Look at the formats of these batches."""
        self._is_expected |= bool(window.headers.is_v2.any())

    def findings(self) -> Iterator[Finding]:
        """Yield a warning for each missing file; one line if no broker may have written any."""
        if self._is_expected:
            for path in self._missing:
                yield missing_index("time_index", path)
        elif self._missing:
            message = (
                "no segment has a time index, as brokers before 0.10.1 leave a log; look-ups by "
                "timestamp read batch headers instead"
            )
            yield info(NO_TIME_INDEXES, self._path, message)
