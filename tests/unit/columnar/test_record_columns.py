"""Columns of one value, and rows of places alone."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pylog.columnar.record_columns import ConstantColumns, place_rows
from pylog.model import TopicPartition


@pytest.fixture
def constants() -> ConstantColumns:
    return ConstantColumns(TopicPartition("orders", 3))


@pytest.mark.parametrize("counts", [(1,), (5_000, 3, 0), (1, 2_000, 1)])
def test_as_many_values_as_asked_for(constants: ConstantColumns, counts: tuple[int, ...]) -> None:
    for count in counts:
        assert constants.topic(count).to_pylist() == ["orders"] * count
        assert constants.partition(count).to_pylist() == [3] * count


TOPIC, PARTITION = pa.field("topic", pa.string()), pa.field("partition", pa.int32())


@pytest.mark.parametrize("count", [0, 1, 65_536, 65_537, 200_000])
@pytest.mark.parametrize("fields", [[], [TOPIC], [PARTITION, TOPIC]])
def test_there_are_as_many_rows_as_asked_for(count: int, fields: list[pa.Field]) -> None:
    schema = pa.schema(fields)
    batches = list(place_rows(TopicPartition("orders", 3), count, schema))
    assert sum(batch.num_rows for batch in batches) == count
    for batch in batches:
        assert batch.schema == schema
        batch.validate(full=True)
        for name, value in (("topic", "orders"), ("partition", 3)):
            if name in batch.schema.names:
                assert batch.column(name).unique().to_pylist() == [value]
