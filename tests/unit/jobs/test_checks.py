"""Checks of what a run reads: one that fails publishes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog_jobs.job import CheckFailedError, UsageError
from tests.support.spark_session import NEEDS_SPARK
from tests.unit.jobs.incremental_runs import add, keys, run

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


pytestmark = NEEDS_SPARK


@pytest.mark.thorough(one_in=3)
@pytest.mark.parametrize(
    ("checks", "message"),
    [
        ("min_rows = 5", "there are 4 rows, and min_rows is 5"),
        ("max_rows = 3", "there are 4 rows, and max_rows is 3"),
        ('not_null = ["id", "name"]', "name is null in 1 rows"),
        ('unique = "id"', "id is not unique in 2 rows"),
        ('conditions = "count_if(id > 2) = 0"', "count_if(id > 2) = 0 is false"),
        ('conditions = "max(at) < NULL"', "max(at) < NULL is not known"),
        (
            'min_rows = 9\nnot_null = "name"',
            "there are 4 rows, and min_rows is 9; name is null in 1 rows; nothing is written",
        ),
    ],
)
def test_a_check_that_fails_publishes_nothing(
    session: SparkSession, folder: Path, checks: str, message: str
) -> None:
    path = add(folder, "a", *((number, "10:00:00") for number in (1, 2, 3, 3)))
    path.write_text(path.read_text().replace("n1", ""), "utf-8")
    with pytest.raises(CheckFailedError) as caught:
        run(session, folder, f"[checks]\n{checks}\n")
    assert message in str(caught.value)
    assert not list((folder / "logs").iterdir())


def test_checks_that_hold_let_the_rows_through(session: SparkSession, folder: Path) -> None:
    add(folder, "a", *((number, "10:00:00") for number in (1, 2, 3)))
    checks = (
        '[checks]\nmin_rows = 3\nmax_rows = 3\nnot_null = "id"\nunique = ["id", "name"]\n'
        'conditions = ["sum(id) = 6", "min(at) > \'2026-01-01\'"]\n'
    )
    assert run(session, folder, checks)["rows"] == 3
    assert keys(folder) == [1, 2, 3]


@pytest.mark.parametrize(
    ("checks", "message"),
    [
        ('not_null = "nme"', "[checks]: [UNRESOLVED_COLUMN"),
        ('conditions = "id > 1"', "[checks]: "),
        ('conditions = "sum(id)"', "conditions: 'sum(id)' has type BIGINT, expected BOOLEAN"),
    ],
)
def test_a_check_that_makes_no_sense_is_named(
    session: SparkSession, folder: Path, checks: str, message: str
) -> None:
    add(folder, "a", (1, "10:00:00"))
    with pytest.raises(UsageError) as caught:
        run(session, folder, f"[checks]\n{checks}\n")
    assert message in str(caught.value)
    assert not (folder / "logs").exists()


@pytest.mark.parametrize("lag", ["0", "5"])
def test_a_run_without_anything_new_has_too_few_rows(
    session: SparkSession, folder: Path, lag: str
) -> None:
    by_id = f'[incremental]\ncolumn = "id"\nlag = {lag}\n[checks]\nmin_rows = 1\n'
    add(folder, "a", (1, "10:00:00"))
    assert run(session, folder, by_id)["rows"] == 1
    with pytest.raises(CheckFailedError, match="there are 0 rows, and min_rows is 1"):
        run(session, folder, by_id)
