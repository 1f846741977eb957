"""What is said where a version of Spark pushes no filters to Python data sources."""

from __future__ import annotations

import logging

import pytest
from pyspark.sql.datasource import DataSourceReader

from pyspark_pylog.spark_workarounds.pushed_filters import is_pruning, warn_if_never_pushed


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
