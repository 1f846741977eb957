"""A streaming query that a job waits for: its progress as log lines, and its end."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.streaming.query import StreamingQuery

    from pylog_jobs.stop_request import StopRequest

ROWS_WRITTEN = "ingest"
"""The name of the observation whose ``rows`` are counted."""

_POLL_SECONDS = 0.5

_LOGGER = logging.getLogger(__name__)


class StreamIngest:
    """Runs one query to its end, or until the job is asked to stop.

    Parameters
    ----------
    stop
        Asked twice a second.

    Attributes
    ----------
    batches, rows
        How many micro-batches wrote rows in this run, and how many rows those were.
    """

    def __init__(self, stop: StopRequest) -> None:
        self._stop = stop
        self._last_batch = -1
        self.batches = 0
        self.rows = 0

    def run(self, start: Callable[[], StreamingQuery]) -> None:
        """Start the query and wait until it ends.

        Raises
        ------
        StreamingQueryException
            The query failed.
        StoppedError
            A signal ended it; what was committed stays, and the next run goes on after that.
        """
        # The query is stopped here, as a whole; its Spark jobs are not cancelled one by one, which
        # would make it fail.
        self._stop.cancel = None
        query = start()
        _LOGGER.info("query %s, run %s", query.id, query.runId)
        try:
            while query.isActive and not self._stop.wait(_POLL_SECONDS):
                self._note_progress(query)
        finally:
            query.stop()
        self._note_progress(query)
        error = query.exception()
        if error is not None:
            raise error
        self._stop.ensure_not_requested()

    def _note_progress(self, query: StreamingQuery) -> None:
        for each in query.recentProgress:
            counted = each["observedMetrics"].get(ROWS_WRITTEN)
            if each["batchId"] <= self._last_batch or counted is None or not counted["rows"]:
                continue
            self._last_batch = each["batchId"]
            self.batches += 1
            self.rows += counted["rows"]
            _LOGGER.info(
                "batch %d: %d rows in %.1f s",
                *(each["batchId"], counted["rows"], each["batchDuration"] / 1000),
            )
