"""A run of a query without Spark: what its engine asks of a stream reader, and gets.

Offsets go through JSON text, as they do through Spark's checkpoint; one instance gives them, and
pickled ones read.
"""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict

from pyspark_pylog import DefaultSource
from pyspark_pylog.batch_reader import TaskPartition
from pyspark_pylog.stream_offset import INITIAL
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import segment_path, write_partition

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark_pylog.stream_reader import PylogStreamReader

Offset = dict[str, Any]


def through_json(offset: object) -> Offset:
    again: Offset = json.loads(json.dumps(offset))
    return again


class Query:
    """A run of a query: what Spark's engine does with the reader of one."""

    def __init__(self, path: Path, **options: str) -> None:
        given = CaseInsensitiveDict({"path": str(path), **options})
        source = DefaultSource(given)
        self._schema = source.schema()
        self._source = pickle.dumps(source)
        self.reader: PylogStreamReader = self._new_reader()
        self.limit = self.reader.getDefaultReadLimit()

    def _new_reader(self) -> Any:  # noqa: ANN401 - what the source returns
        source: DefaultSource = pickle.loads(self._source)  # noqa: S301 - our own
        return source.streamReader(schema=self._schema)

    def initial(self) -> Offset:
        assert self.reader.initialOffset() == INITIAL
        return through_json(self.reader.initialOffset())

    def latest(self, start: Offset) -> Offset:
        return through_json(self.reader.latestOffset(start, self.limit))

    def tasks(self, start: Offset, end: Offset) -> list[TaskPartition]:
        partitions = self.reader.partitions(through_json(start), through_json(end))
        assert all(isinstance(each, TaskPartition) for each in partitions)
        return partitions  # type: ignore[return-value]

    def rows(self, start: Offset, end: Offset) -> dict[str, list[int]]:
        """Return the offsets of a batch by partition, read by an instance of its own."""
        reader = pickle.loads(pickle.dumps(self._new_reader()))  # noqa: S301
        found: dict[str, list[int]] = {}
        for partition in pickle.loads(pickle.dumps(self.tasks(start, end))):  # noqa: S301
            for batch in reader.read(partition):
                columns = (batch.column(name).to_pylist() for name in ("topic", "partition"))
                for topic, number, offset in zip(
                    *columns, batch.column("offset").to_pylist(), strict=True
                ):
                    found.setdefault(f"{topic}-{number}", []).append(offset)
        return found


def batch(base: int, count: int = 2) -> bytes:
    return batch_v2(plain_records(base, count)).data


def append(logs: Path, data: bytes, name: str = "orders-0", segment: int = 0) -> None:
    with segment_path(logs / name, segment).open("ab") as file:
        file.write(data)


def ends_of(offset: Offset) -> Offset:
    return {topic: of for topic, of in offset.items() if topic != "$pylog"}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Return a log directory with offsets 0 and 1 in orders-0."""
    write_partition(tmp_path / "logs", {0: [batch_v2(plain_records(0, 2))]})
    return tmp_path / "logs"
