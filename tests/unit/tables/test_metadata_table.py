from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from pylog.errors import LogStorageError
from pylog.tables.metadata_table import MetadataTable
from pylog.tables.tables import rows_of_logs

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA = pa.schema([("log", pa.int64())])


class Logs:
    """Stand in for logs, and note which have been read."""

    def __init__(self, broken: int | None = None) -> None:
        self.read: list[int] = []
        self._broken = broken
        self._lock = threading.Lock()

    def rows_of(self, log: Any) -> Iterator[pa.RecordBatch]:  # noqa: ANN401 - in the place of a view
        with self._lock:
            self.read.append(log.number)
        if log.number == self._broken:
            msg = f"log {log.number} is broken"
            raise LogStorageError(msg)
        for _ in range(2):
            yield pa.record_batch({"log": [log.number]}, schema=SCHEMA)

    def rows(self, count: int) -> Iterator[int]:
        table = MetadataTable("segments", SCHEMA, self.rows_of)
        directory = SimpleNamespace(was_moved=lambda: False)
        views: Any = [
            SimpleNamespace(number=each, unreadable=None, directory=directory)
            for each in range(count)
        ]
        for batch in rows_of_logs(table, views, are_named=False):
            yield from batch.column("log").to_pylist()


@pytest.fixture(params=["1", "4"], autouse=True)
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("PYLOG_NUM_THREADS", request.param)
    return int(request.param)


def test_rows_come_in_the_order_of_the_logs() -> None:
    assert list(Logs().rows(30)) == [log for log in range(30) for _ in range(2)]
    assert list(Logs().rows(0)) == []


def test_logs_that_nobody_asks_for_are_not_read(threads: int) -> None:
    logs = Logs()
    rows = logs.rows(100)
    assert next(rows) == 0
    rows.close()  # type: ignore[attr-defined]
    assert len(logs.read) <= threads + 1


def test_an_error_comes_after_the_rows_before_it() -> None:
    rows = Logs(broken=3).rows(100)
    assert [next(rows) for _ in range(6)] == [0, 0, 1, 1, 2, 2]
    with pytest.raises(LogStorageError):
        next(rows)
