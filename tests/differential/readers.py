"""What a scan, Spark's data source without Spark, and a consumer of the server get of a log."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, NamedTuple

import pylog
from pylog.errors import CorruptRecordError, InvalidRecordError, LogStorageError
from pylog.model import ControlRecordType
from pylog.reading.damage import ReadMode
from pylog.record.control_record import parse_control_record_type
from pylog.record.record_batch import RecordBatch
from pyspark_pylog.data_source import PylogDataSource
from tests.unit.server.followed import content, fetched, followed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import pyarrow as pa

    from pylog.model import IsolationName
    from pylog.reading.damage import ReadModeName

Row = tuple[int, bytes | None, bytes | None]
COLUMNS = ["offset", "key", "value"]
READ_COMMITTED = "read_committed"
_REASON = "_corrupt_record"
_MOST_FETCHES = 2_000


class Answer(NamedTuple):
    """The rows, and whether they end with an error."""

    rows: list[Row]
    has_failed: bool
    damaged_rows: int = 0  # rows of mode PERMISSIVE that stand for damage


def _answer(batches: Iterable[pa.RecordBatch]) -> Answer:
    rows: list[Row] = []
    damaged = 0
    try:
        for batch in batches:
            columns = [*COLUMNS, *(name for name in batch.schema.names if name == _REASON)]
            for offset, key, value, *reason in zip(
                *(batch.column(name).to_pylist() for name in columns), strict=True
            ):
                if reason and reason[0] is not None:
                    damaged += 1
                else:
                    rows.append((offset, key, value))
    except LogStorageError:
        return Answer(rows, has_failed=True, damaged_rows=damaged)
    return Answer(rows, has_failed=False, damaged_rows=damaged)


def _columns(mode: str) -> list[str]:
    return [*COLUMNS, _REASON] if mode == ReadMode.PERMISSIVE else COLUMNS


def scanned(
    directory: Path,
    mode: ReadModeName,
    isolation: IsolationName,
    **options: Any,  # noqa: ANN401
) -> Answer:
    def batches() -> Iterator[pa.RecordBatch]:
        scan = pylog.scan(
            directory, mode=mode, isolation=isolation, columns=_columns(mode), **options
        )
        yield from scan.to_batches()

    return _answer(batches())


def by_data_source(directory: Path, mode: str, isolation: str) -> Answer:
    """Read as Spark does: the reader and each task are pickled, tasks are read by themselves."""
    given = {
        "path": str(directory),
        "mode": mode,
        "isolationLevel": isolation,
        "columns": ",".join(_columns(mode)),
        "maxPartitionBytes": "700",
    }

    def batches() -> Iterator[pa.RecordBatch]:
        source = PylogDataSource(given)
        reader = source.reader(source.schema())
        for partition in reader.partitions():
            task_reader, task = pickle.loads(pickle.dumps((reader, partition)))  # noqa: S301 - ours
            yield from task_reader.read(task)

    return _answer(batches())


class _Aborted:
    """Leaves out what Java's consumer leaves out when it reads committed records."""

    def __init__(self, answer: Any) -> None:  # noqa: ANN401
        found = answer["abortedTransactions"] or []
        self._waiting = sorted((each["firstOffset"], each["producerId"]) for each in found)
        self._producers: set[int] = set()

    def leaves_out(self, batch: RecordBatch) -> bool:
        header = batch.header
        while self._waiting and self._waiting[0][0] <= header.last_offset:
            self._producers.add(self._waiting.pop(0)[1])
        if header.is_control_batch:
            kinds = {parse_control_record_type(each.key) for each in batch.records()}
            if ControlRecordType.ABORT in kinds:
                self._producers.discard(header.producer_id)
        return header.is_transactional and header.producer_id in self._producers


def _records(answer: Any, data: bytes, position: int, isolation: str) -> Iterator[Row]:  # noqa: ANN401
    at = 0
    aborted = _Aborted(answer) if isolation == READ_COMMITTED else None
    while at < len(data):
        batch = RecordBatch(memoryview(data)[at:])
        is_v2 = batch.header.magic == 2
        is_left_out = is_v2 and aborted is not None and aborted.leaves_out(batch)
        if not is_left_out and not (is_v2 and batch.header.is_control_batch):
            for record in batch.records():
                if record.offset >= position:
                    yield record.offset, record.key, record.value
        at += batch.header.size_bytes


def consumed(directory: Path, mode: str, isolation: str) -> Answer:
    """Fetch as a consumer from the start does, each time from the offset after the last batch."""
    rows: list[Row] = []
    level = int(isolation == READ_COMMITTED)
    with followed(directory.parent, mode=ReadMode(mode)) as replicas:
        partition = replicas.partition("orders", 0)
        partition.load()
        position = 0 if partition.offsets is None else partition.offsets.log_start_offset
        for _ in range(_MOST_FETCHES):
            answer = fetched(replicas, position, isolation=level)
            if answer["errorCode"]:
                return Answer(rows, has_failed=True)
            data = content(answer)
            if not data:
                return Answer(rows, has_failed=False)
            try:
                for row in _records(answer, data, position, isolation):
                    rows.append(row)
                    position = row[0] + 1
            except (CorruptRecordError, InvalidRecordError):
                return Answer(rows, has_failed=True)
            position = _end(data)
    raise AssertionError("the log has no end")


def _end(data: bytes) -> int:
    at, end = 0, 0
    while at < len(data):
        header = RecordBatch(memoryview(data)[at:]).header
        at, end = at + header.size_bytes, header.next_offset
    return end
