"""The parts of an expression of pyarrow."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pylog.pushdown.log_datasets import columns_of, comparisons_of
from tests.unit.pushdown.expressions import SCHEMA, if_valid, key, offset, topic


def test_the_columns_of_an_expression_are_found() -> None:
    expression = (offset > 5) | if_valid(key, pa.array([b"k"]))
    assert columns_of(expression, SCHEMA) == ["key", "offset"]
    assert columns_of(topic == "key or value", SCHEMA) == ["topic"]
    batches = pa.schema([*SCHEMA, ("batch", pa.struct([("offset", pa.int64())]))])
    assert columns_of(pc.field("batch", "offset") == 3, batches) == ["batch"]


@pytest.mark.parametrize("depth", [1, 50, 2_000])
def test_a_long_conjunction_is_taken_apart(depth: int) -> None:
    expression = offset > 0
    for number in range(1, depth):
        expression &= offset > number
    assert len(list(comparisons_of(expression, SCHEMA))) == depth
