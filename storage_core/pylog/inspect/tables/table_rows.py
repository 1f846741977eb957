"""The rows of a metadata table, partition by partition, read side by side."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from pylog.scheduling.worker_threads import thread_count, usable_processors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Future

    import pyarrow as pa

    from pylog.inspect.tables.metadata_table import MetadataTable
    from pylog.reading.log_directory import LogDirectory
    from pylog.reading.log_view import LogView

_MAX_THREADS = 16


def rows_of_logs(
    table: MetadataTable, views: Sequence[LogView], directory: LogDirectory | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows about log directories, if one is given, and then those of each log in turn.

    They are read by as many threads as there are processors, or as the environment variable
    ``PYLOG_NUM_THREADS`` says; the rows of one log more than that are in memory.

    Raises
    ------
    LogStorageError
        As of `MetadataTable.rows_of`, after the rows of the logs before.
    """
    if directory is not None:
        yield from table.rows_of_directories(directory)

    def rows_of(view: LogView) -> list[pa.RecordBatch]:
        return list(table.rows_of(view))

    # Threads: kernels and reads release the interpreter, and a disk or a store has latency to hide.
    threads = max(1, min(_MAX_THREADS, len(views), thread_count(default=usable_processors())))
    waiting: deque[Future[list[pa.RecordBatch]]] = deque()
    coming = iter(views)
    with ThreadPoolExecutor(threads, "pylog-table") as pool:
        try:
            while True:
                while len(waiting) <= threads and (view := next(coming, None)) is not None:
                    waiting.append(pool.submit(rows_of, view))
                if not waiting:
                    return
                yield from waiting.popleft().result()
        finally:
            for each in waiting:
                each.cancel()
