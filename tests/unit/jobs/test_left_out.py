"""Rows that a run leaves out are counted and said; too many end it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog_jobs.job import UsageError
from tests.support.spark_session import NEEDS_SPARK
from tests.unit.jobs.incremental_runs import add, keys, run

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


pytestmark = NEEDS_SPARK


@pytest.mark.parametrize("column", ["at", "local", "day"])
def test_rows_of_the_future_wait(session: SparkSession, folder: Path, column: str) -> None:
    by_time = f'[incremental]\ncolumn = "{column}"\nlag = "0s"\n'
    add(folder, "a", (1, "10:00:00"))
    path = add(folder, "b", (2, "10:00:00"))
    path.write_text(path.read_text().replace("2026", "2999"), "utf-8")
    found = run(session, folder, by_time)
    assert found["rows"] == 1
    assert found["window"]["to"] < "2999"
    add(folder, "c", (3, "11:00:00"))
    assert run(session, folder, by_time)["rows"] == 1
    assert keys(folder) == [1, 3]


def test_a_lag_with_too_many_rows_is_refused_and_nothing_is_staged(
    session: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pylog_jobs.bookmark.MOST_REMEMBERED", 2)
    add(folder, "a", *((number, "10:00:00") for number in range(3)))
    with pytest.raises(UsageError, match="give a shorter lag"):
        run(session, folder, '[incremental]\ncolumn = "id"\nlag = 5\n')
    assert not list((folder / "logs").glob(".pylog-*"))
    assert run(session, folder, '[incremental]\ncolumn = "id"\nlag = 1\n')["rows"] == 3


@pytest.mark.parametrize("key", ["", 'key = "id"\n'])
@pytest.mark.parametrize(("column", "lag"), [("at", '"0s"'), ("local", '"0s"'), ("id * 0", "0")])
def test_rows_with_exactly_the_newest_value_are_read_in_a_later_run(
    session: SparkSession, folder: Path, column: str, lag: str, key: str
) -> None:
    by_column = f'[incremental]\ncolumn = "{column}"\nlag = {lag}\n{key}'
    add(folder, "a", (1, "10:00:00"), (2, "10:00:00"))
    assert run(session, folder, by_column)["rows"] == 2
    assert run(session, folder, by_column)["rows"] == 0
    add(folder, "b", (3, "10:00:00"))
    assert run(session, folder, by_column)["rows"] == 1
    assert run(session, folder, by_column)["window"] is None
    assert keys(folder) == [1, 2, 3]


def test_rows_that_are_left_out_are_counted_and_said(
    session: SparkSession, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    by_time = '[incremental]\ncolumn = "at"\nlag = "10 minutes"\n'
    add(folder, "a", (1, "10:00:00"), (2, "11:00:00"))
    path = add(folder, "b", (3, "10:00:00"), (4, "10:00:00"))
    path.write_text("3,n3,,,\n4,n4,2999-01-01T00:00:00Z,,\n", "utf-8")
    counted = ("rows", "nullRows", "lateRows", "futureRows")
    found = run(session, folder, by_time)
    assert [found[name] for name in counted] == [2, 1, None, 1]
    add(folder, "c", (5, "10:30:00"), (6, "10:55:00"), (7, "11:30:00"), (8, "10:31:00"))
    found = run(session, folder, by_time)
    assert [found[name] for name in counted] == [2, 1, 2, 1]
    assert "1 rows are never read: at is null in them" in caplog.text
    assert "2 rows are left out: they came later than lag allows (at); --full" in caplog.text
    found = run(session, folder, by_time)
    assert [found[name] for name in counted] == [0, 1, 0, 1]
    found = run(session, folder, by_time + "count_left_out = false\n")
    assert [found[name] for name in counted] == [0, None, None, 1]
    assert keys(folder) == [1, 2, 6, 7]
