"""``df.write.format("pylog")`` in a Python thread, such as one of a pool over many topics.

Spark knows Python data sources by session, and looks in the one that is active in its own thread
for the calling Python thread. Only the thread that made the session has one. Reads make their
session active while they look; writers do not: ``DATA_SOURCE_NOT_FOUND`` in any other thread.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from pyspark.sql.readwriter import DataFrameWriter
from pyspark.sql.streaming.readwriter import DataStreamWriter

if TYPE_CHECKING:
    from collections.abc import Callable

_WRITERS: tuple[tuple[type, tuple[str, ...]], ...] = (
    (DataFrameWriter, ("save", "saveAsTable")),
    (DataStreamWriter, ("start", "toTable")),
)


@functools.cache
def let_threads_write() -> None:
    """Have Spark's writers, in a thread that has no session, use that of their DataFrame."""
    for kind, names in _WRITERS:
        for name in names:
            setattr(kind, name, _with_session(getattr(kind, name)))


def _with_session(write: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(write)
    def with_session(writer: Any, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - Spark's
        spark = writer._spark
        sessions = spark._get_j_spark_session_class(spark._jvm)
        if sessions.getActiveSession().isDefined():
            return write(writer, *arguments, **options)
        sessions.setActiveSession(spark._jsparkSession)
        try:
            return write(writer, *arguments, **options)
        finally:
            # One that is stopped later would go on giving this thread its settings.
            sessions.clearActiveSession()

    return with_session
