"""Rows of places: as many as are asked for, whatever of them is wanted."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pylog.columnar.arrow_schema import place_rows
from pylog.model import TopicPartition

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
