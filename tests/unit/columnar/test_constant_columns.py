from __future__ import annotations

import pytest

from pylog.columnar.arrow_schema import ConstantColumns
from pylog.model import TopicPartition


@pytest.fixture
def constants() -> ConstantColumns:
    return ConstantColumns(TopicPartition("orders", 3))


@pytest.mark.parametrize("counts", [(1,), (5_000, 3, 0), (1, 2_000, 1)])
def test_as_many_values_as_asked_for(constants: ConstantColumns, counts: tuple[int, ...]) -> None:
    for count in counts:
        assert constants.topic(count).to_pylist() == ["orders"] * count
        assert constants.partition(count).to_pylist() == [3] * count
