"""What pushed filters leave out, and what is said where a version of Spark pushes none."""

from __future__ import annotations

import logging
import pickle
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    GreaterThan,
    In,
    IsNotNull,
    LessThanOrEqual,
)

import pylog
from pyspark_pylog.spark_workarounds.pushed_filters import (
    PushFilters,
    is_pruning,
    warn_if_never_pushed,
)
from tests.support.registry_records import schema, write_registry
from tests.unit.reading.typed_logs import write_values

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("option", "version", "prunes"),
    [
        ("auto", "4.0.5", False),
        ("auto", "4.3.0", False),
        ("auto", "5.0.0", True),
        ("on", "4.1.4", True),
        ("off", "5.0.0", False),
    ],
)
def test_filters_prune_where_they_are_right_or_vouched_for(
    option: str, version: str, *, prunes: bool
) -> None:
    assert is_pruning(option, version) == prunes


def test_a_user_who_asks_for_pushdown_hears_that_spark_has_none(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(DataSourceReader, "pushFilters", raising=False)  # as in Spark 4.0
    warn_if_never_pushed("auto")
    assert caplog.messages == []
    warn_if_never_pushed("on")
    [message] = caplog.messages
    assert "option pushdown=on has no effect in Spark" in message
    assert "pyspark_pylog.table(spark, path).where(...) reads less in every version" in message


def test_nothing_is_said_where_spark_pushes_filters(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DataSourceReader, "pushFilters", logging.debug, raising=False)
    warn_if_never_pushed("on")
    assert caplog.messages == []


def test_filters_on_fields_of_decoded_values_leave_rows_out(tmp_path: Path) -> None:
    inner = '{"type":"record","name":"U","fields":[{"name":"id","type":"long"}]}'
    order = f'{{"type":"record","name":"O","fields":[{{"name":"user","type":{inner}}}]}}'
    write_registry(tmp_path, [schema("orders-value", 1, 1, order)])
    write_values(tmp_path, "orders-0", [b"\0\0\0\0\x01" + bytes([2 * user]) for user in range(5)])
    columns = ("offset",)
    scan = pylog.scan(tmp_path, topics="orders", value_format="auto", columns=columns)

    def offsets(*filters: object) -> list[int]:
        pushed = PushFilters()
        assert list(pushed(filters)) == list(filters)  # all of them go back to Spark
        typed = pickle.loads(pickle.dumps(pushed)).narrowed(scan.typed)  # noqa: S301 - as Spark
        (task,) = scan.plan()
        return [
            row["offset"]
            for batch in task.read(scan.schema, typed=typed)
            for row in batch.to_pylist()
        ]

    way = ("value", "user", "id")
    assert offsets(EqualTo(way, 3)) == [3]
    assert offsets(IsNotNull(way), GreaterThan(way, 1), LessThanOrEqual(way, 3)) == [2, 3]
    assert offsets(In(way, (0, 4, 9))) == [0, 4]
    assert offsets(EqualTo(("value", "user", "name"), 3), EqualTo(("offset",), 3)) == [*range(5)]
    assert PushFilters().narrowed(None) is None
