"""Sources that are read a piece at a time: what is new, what is late, and what has been read."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import zoneinfo
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

import pylog
from pylog_jobs.job import UsageError
from tests.kills.stopped_at import Stopped, StoppedAt
from tests.support.spark_session import NEEDS_SPARK
from tests.unit.jobs.incremental_runs import SOURCE, add, keys, run

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.conftest import Counted, HowMany

pytestmark = NEEDS_SPARK
SEED = 7_300
SCHEDULES = 30


def test_each_run_reads_what_is_new_and_rows_that_come_late_once(
    session: SparkSession, folder: Path
) -> None:
    by_time = '[incremental]\ncolumn = "at"\nlag = "10 minutes"\n'
    add(folder, "a", (1, "10:00:00.000001"), (2, "10:30:00"), (2, "10:30:00"))
    first = run(session, folder, by_time)
    assert (first["rows"], first["window"]) == (
        3,
        {"from": None, "to": "2026-11-22T10:30:00.000001Z"},
    )
    assert run(session, folder, by_time)["rows"] == 0
    # Another one equal to two that were written; one as late as may be; one that is too late.
    add(folder, "b", (2, "10:30:00"), (3, "10:20:00.000001"), (4, "10:20:00"))
    second = run(session, folder, by_time)
    assert (second["rows"], second["window"]["from"]) == (2, "2026-11-22T10:20:00.000001Z")
    add(folder, "c", (5, "11:00:00"), (6, "10:25:00"))
    assert run(session, folder, by_time)["rows"] == 2
    assert run(session, folder, by_time)["rows"] == 0
    assert keys(folder) == [1, 2, 2, 2, 3, 5, 6]


@pytest.mark.thorough(one_in=2)
@pytest.mark.parametrize(
    ("column", "lag", "newest"),
    [
        ("local", '"1h"', "2026-11-22 23:00:00.000001"),
        ("day", '"2d"', "2026-11-24"),
        ("id", "5", "10"),
        ("CAST(id AS DECIMAL(18, 0))", "5", "10"),
    ],
)
def test_a_column_may_be_a_time_without_zone_a_date_or_an_id(
    session: SparkSession, folder: Path, column: str, lag: str, newest: str
) -> None:
    by_column = f'[incremental]\ncolumn = "{column}"\nlag = {lag}\nkey = "id"\n'
    add(folder, "a", (1, "01:00:00"), (9, "23:00:00"))
    found = run(session, folder, by_column)
    assert (found["rows"], found["window"]["to"]) == (2, newest)
    add(folder, "b", (7, "22:30:00"))
    assert run(session, folder, by_column)["rows"] == 1
    assert run(session, folder, by_column)["rows"] == 0
    assert keys(folder) == [1, 7, 9]


def test_a_run_starts_at_the_initial_value_and_ends_at_the_upper_one(
    session: SparkSession, folder: Path
) -> None:
    limited = '[incremental]\ncolumn = "id"\nlag = 0\ninitial = 3\nupper = 8\n'
    add(folder, "a", *((number, "10:00:00") for number in range(10)))
    assert run(session, folder, limited)["window"] == {"from": "3", "to": "8"}
    assert run(session, folder, limited)["window"] is None
    assert run(session, folder, limited.replace("8", "20"))["rows"] == 2
    assert keys(folder) == [3, 4, 5, 6, 7, 8, 9]


def test_the_range_stands_in_the_query(session: SparkSession, folder: Path) -> None:
    source = SOURCE + (  # noqa: S608 - Spark's
        "sql = \"SELECT *, '{{from}}' AS f FROM source WHERE at >= '{{from}}' AND at < '{{to}}'\"\n"
    )
    # Without a key all columns would tell rows apart, and f is another one in each run.
    by_time = '[incremental]\ncolumn = "at"\nlag = "0s"\nkey = "id"\n'
    add(folder, "a", (1, "10:00:00"))
    assert run(session, folder, by_time, source=source)["rows"] == 1
    add(folder, "b", (2, "11:00:00"))
    assert run(session, folder, by_time, source=source)["rows"] == 1
    rows = pylog.scan(folder / "logs", topics="orders").to_table().to_pylist()
    assert [json.loads(row["value"])["f"] for row in rows] == [
        "0001-01-01T00:00:00Z",
        "2026-11-22T10:00:00.000001Z",
    ]


def test_files_by_their_time_of_modification(session: SparkSession, folder: Path) -> None:
    by_file = (
        '[incremental]\ncolumn = "_metadata.file_modification_time"\nlag = "1h"\n'
        'key = "_metadata.file_path"\n'
    )
    for name, second in (("a", 1_700_000_000), ("b", 1_700_001_000)):
        path = add(folder, name, (second, "10:00:00"), (second, "10:00:00"))
        os.utime(path, (second, second))
    assert run(session, folder, by_file)["rows"] == 4
    path = add(folder, "late", (3, "10:00:00"))
    os.utime(path, (1_700_000_500, 1_700_000_500))
    assert run(session, folder, by_file)["rows"] == 1
    assert run(session, folder, by_file)["rows"] == 0
    assert len(keys(folder)) == 5


def test_a_partitioned_folder_by_its_partition(session: SparkSession, folder: Path) -> None:
    source = '[source]\nformat = "parquet"\npath = "{folder}/lake"\n'
    by_day = '[incremental]\ncolumn = "day"\nlag = "0s"\n'
    for day in (21, 22):
        session.range(day, day + 1).write.parquet(f"{folder}/lake/day=2026-11-{day}")
        found = run(session, folder, by_day, source=source)
        assert (found["rows"], found["window"]["to"]) == (1, f"2026-11-{day + 1}")
    assert keys(folder) == [21, 22]


def test_full_replaces_what_the_topic_has(session: SparkSession, folder: Path) -> None:
    by_id = '[incremental]\ncolumn = "id"\nlag = 5\n'
    path = add(folder, "a", (1, "10:00:00"), (2, "10:00:00"))
    run(session, folder, by_id)
    path.write_text(path.read_text().replace("n2", "new"), "utf-8")
    assert run(session, folder, by_id, is_full=True)["rows"] == 2
    assert run(session, folder, by_id)["rows"] == 0
    rows = pylog.scan(folder / "logs", topics="orders").to_table().to_pylist()
    assert sorted(json.loads(row["value"])["name"] for row in rows) == ["n1", "new"]


def test_a_full_run_that_is_killed_before_the_old_records_go_is_completed_by_the_next_one(
    session: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_id = '[incremental]\ncolumn = "id"\nlag = 5\n'
    add(folder, "a", (1, "10:00:00"))
    run(session, folder, by_id)
    with monkeypatch.context() as patch:
        patch.setattr(pylog, "delete_records", lambda *_: (_ for _ in ()).throw(Stopped))
        with pytest.raises(Stopped):
            run(session, folder, by_id, is_full=True)
    assert keys(folder) == [1, 1]
    assert run(session, folder, by_id)["rows"] == 0
    assert keys(folder) == [1]


def test_a_dry_run_shows_the_range_and_writes_nothing(session: SparkSession, folder: Path) -> None:
    by_id = '[incremental]\ncolumn = "id"\nlag = 5\n'
    add(folder, "a", (1, "10:00:00"))
    shown = run(session, folder, by_id, is_dry_run=True)
    assert shown["plan"]["window"] == {"from": None, "to": "2"}
    assert [row["key"] for row in shown["firstRows"]] == ["1"]
    assert not (folder / "logs").exists()


def test_a_bookmark_of_another_source_or_column_is_refused(
    session: SparkSession, folder: Path
) -> None:
    add(folder, "a", (1, "10:00:00"))
    run(session, folder, '[incremental]\ncolumn = "id"\nlag = 5\n')
    with pytest.raises(UsageError, match="has read up to its bookmark from another source"):
        run(session, folder, '[incremental]\ncolumn = "id + 1"\nlag = 5\n')
    with pytest.raises(UsageError, match="or give another job_id"):
        run(
            session,
            folder,
            '[incremental]\ncolumn = "id"\nlag = 5\n',
            source=SOURCE + "sql='FROM source'\n",
        )
    with pytest.raises(
        UsageError, match="known by their columns id, name, at, day, local, and now"
    ):
        run(session, folder, '[incremental]\ncolumn = "id"\nlag = 5\nkey = "id"\n')
    run(session, folder, '[incremental]\ncolumn = "id"\nlag = 0\nkey = "id"\n')
    assert keys(folder) == [1]


@pytest.mark.parametrize(
    ("column", "lag", "expected"),
    [
        (
            "at",
            "7200",
            'at has type timestamp, so that lag is expected to be a duration such as "2',
        ),
        ("day", "2", "day has type date, so that lag is expected to be a duration"),
        ("id", '"2 hours"', "id has type integer, so that lag is expected to be a number of ids"),
    ],
)
def test_a_lag_of_another_unit_than_the_column_s_is_refused(
    session: SparkSession, folder: Path, column: str, lag: str, expected: str
) -> None:
    add(folder, "a", (1, "10:00:00"))
    with pytest.raises(UsageError) as caught:
        run(session, folder, f'[incremental]\ncolumn = "{column}"\nlag = {lag}\n')
    assert expected in str(caught.value)
    assert not (folder / "logs").exists()


@pytest.mark.parametrize("key", ["", 'key = "amount"\n'])
def test_a_column_that_changes_its_type_doubles_no_row_within_the_lag(
    session: SparkSession, folder: Path, key: str
) -> None:
    source = '[source]\nformat = "parquet"\npath = "{folder}/lake"\n'
    by_id = f'[incremental]\ncolumn = "id"\nlag = 5\n{key}'

    def write(kind: str, number: str, count: int = 3) -> None:
        columns = f"CAST(id AS {number}) AS id", f"CAST(id AS {kind}) AS amount"
        rows = session.range(count).selectExpr(*columns)
        rows.write.mode("overwrite").parquet(f"{folder}/lake")

    write("DECIMAL(10, 2)", "INT")
    assert run(session, folder, by_id, source=source)["rows"] == 3
    write("DECIMAL(10, 2)", "BIGINT")
    assert run(session, folder, by_id, source=source)["rows"] == 0
    write("DECIMAL(10, 4)", "BIGINT")
    with pytest.raises(UsageError) as caught:
        run(session, folder, by_id, source=source)
    assert "amount had type decimal(10,2) and has type decimal(10,4), so" in str(caught.value)
    write("DECIMAL(10, 4)", "BIGINT", 4)
    assert run(session, folder, by_id.replace("lag = 5", "lag = 0"), source=source)["rows"] == 1
    assert run(session, folder, by_id, source=source)["rows"] == 0
    assert keys(folder) == [0, 1, 2, 3]


def test_times_in_json_have_their_microseconds(session: SparkSession, folder: Path) -> None:
    path = add(folder, "a", (1, "10:00:00.123456"))
    path.write_text(path.read_text().replace("2026", "1960"), "utf-8")
    run(session, folder, "")
    [row] = pylog.scan(folder / "logs", topics="orders").to_table().to_pylist()
    value = json.loads(row["value"])
    assert dt.datetime.fromisoformat(value["at"]).microsecond == 123456
    assert value["local"] == "1960-11-22T10:00:00.123456"


def test_delta_without_its_package_is_not_taken_for_a_table_that_is_not_there_yet(
    session: SparkSession, folder: Path
) -> None:
    source = '[source]\nformat = "delta"\npath = "{folder}/in"\non_missing = "skip"\n'
    with pytest.raises(UsageError, match="set spark"):
        run(session, folder, "[incremental]\n", source=source)


@pytest.mark.thorough
def test_random_schedules_stopped_at_system_calls_write_each_row_once(
    session: SparkSession,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    how_many: HowMany,
    counted: Counted,
) -> None:
    stopped = StoppedAt(monkeypatch)
    outcomes: Counter[str] = Counter()
    for number in range(how_many(SCHEDULES, SCHEDULES)):
        rng = random.Random(SEED + number)
        root = folder / str(number)
        (root / "in").mkdir(parents=True)
        by_id = '[incremental]\ncolumn = "id"\nlag = 30\n' + rng.choice(("", 'key = "id"\n'))
        ids: list[int] = []
        newest = 0
        for step in range(5):
            # Rows as late as may be after what has been read, and after it; some are there twice.
            added = [rng.randint(max(0, newest - 29), newest + 20) for _ in range(4)]
            if "key" in by_id:
                added = sorted(set(added) - set(ids))
            add(root, f"{step}", *((each, "10:00:00") for each in added))
            ids += added
            newest = max(ids)
            stopped.arm(rng.choice((None, rng.randint(1, 60))))
            try:
                run(session, root, by_id)
                outcomes["ended"] += 1
            except Stopped:
                outcomes["stopped"] += 1
            stopped.arm(None)
        for _ in range(2):
            run(session, root, by_id)
        assert keys(root) == sorted(ids), f"seed {SEED + number}"
    counted(f"incremental schedules of Spark, seed {SEED}", outcomes)


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_every_minute_of_a_time_without_a_zone_is_read(
    session: SparkSession, folder: Path, ansi: str
) -> None:
    session.conf.set("spark.sql.ansi.enabled", ansi)
    by_time = '[incremental]\ncolumn = "local"\nlag = "0s"\n'
    for hours in (range(10), range(10, 24)):
        at = [(60 * hour + minute, hour, minute) for hour in hours for minute in range(60)]
        add(folder, f"{hours[0]}", *((each, f"{h:02}:{m:02}:59.999999") for each, h, m in at))
        assert run(session, folder, by_time)["rows"] == 60 * len(hours)
    assert run(session, folder, by_time)["rows"] == 0
    assert keys(folder) == list(range(24 * 60))


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize(
    ("column", "fits"),
    [("CAST(id AS DECIMAL(38, 0))", True), ("CAST(id AS DECIMAL(38, 0)) * 10000000000", False)],
)
def test_an_integer_that_does_not_fit_into_64_bits_ends_the_run(
    session: SparkSession,
    folder: Path,
    column: str,
    fits: bool,  # noqa: FBT001 - of a table
    ansi: str,
) -> None:
    session.conf.set("spark.sql.ansi.enabled", ansi)
    add(folder, "a", (1, "10:00:00"), (3_000_000_000, "10:00:00"))
    by_id = f'[incremental]\ncolumn = "{column}"\nlag = 0\n'
    if fits:
        assert run(session, folder, by_id)["rows"] == 2
        return
    with pytest.raises(PySparkException, match="does not fit into 64 bits: 30000000000000000000"):
        run(session, folder, by_id)


def test_a_day_is_read_when_it_is_over(session: SparkSession, folder: Path) -> None:
    today = dt.datetime.now(dt.UTC).date()
    path = folder / "in" / "a.csv"
    rows = [f"{n},n,2026-01-01T00:00Z,{today - dt.timedelta(days=back)}," for n, back in LATEST]
    path.write_text("\n".join(rows), "utf-8")
    by_day = '[incremental]\ncolumn = "day"\nlag = "0s"\n'
    found = run(session, folder, by_day)
    assert (found["rows"], found["futureRows"]) == (2, 2)
    assert found["window"]["to"] == today.isoformat()
    assert keys(folder) == [2, 3]
    # Whose day is not over, in a zone that is a day behind or ahead, waits there.
    for zone, expected in (("Pacific/Kiritimati", 3), ("Pacific/Pago_Pago", 2)):
        root = folder / zone.rpartition("/")[2]
        root.mkdir()
        (root / "in").symlink_to(folder / "in")
        found = run(session, root, f'{by_day}zone = "{zone}"\n')
        ahead = dt.datetime.now(zoneinfo.ZoneInfo(zone)).date()
        assert found["rows"] == sum(today - dt.timedelta(days=each) < ahead for _, each in LATEST)
        assert found["rows"] in (1, 2, expected)


LATEST = ((1, 0), (2, 1), (3, 5), (4, -1))
"""Rows by how many days ago theirs is."""


def test_a_folder_of_one_day_may_have_more_rows_than_were_remembered_before(
    session: SparkSession, folder: Path
) -> None:
    source = '[source]\nformat = "parquet"\npath = "{folder}/lake"\n'
    by_day = '[incremental]\ncolumn = "day"\nlag = "1d"\n'
    session.range(150_000).write.parquet(f"{folder}/lake/day=2026-11-21")
    assert run(session, folder, by_day, source=source)["rows"] == 150_000
    session.range(150_000, 150_003).write.mode("append").parquet(f"{folder}/lake/day=2026-11-21")
    assert run(session, folder, by_day, source=source)["rows"] == 3
    assert run(session, folder, by_day, source=source)["rows"] == 0
    assert keys(folder) == list(range(150_003))


def test_a_source_that_starts_over_is_no_success(session: SparkSession, folder: Path) -> None:
    by_id = '[incremental]\ncolumn = "id"\nlag = 3\n'
    path = add(folder, "a", *((number, "10:00:00") for number in range(1, 11)))
    run(session, folder, by_id)
    path.unlink()
    path = add(folder, "b", *((number, "11:00:00") for number in range(1, 6)))
    for _ in range(2):
        found = run(session, folder, by_id, status=1)
        assert (found["rows"], found["wentBack"]) == (0, True)
    path.write_text("", "utf-8")
    assert run(session, folder, by_id, status=1)["wentBack"] is True
    add(folder, "c", (11, "12:00:00"))
    found = run(session, folder, by_id)
    assert (found["rows"], found["wentBack"]) == (1, False)


def test_the_largest_integer_is_no_bookmark(session: SparkSession, folder: Path) -> None:
    add(folder, "a", (1, "10:00:00"), (2**63 - 1, "10:00:00"))
    by_id = '[incremental]\ncolumn = "id"\nlag = 0\n'
    with pytest.raises(UsageError, match="would hide every later row: remove the row, or set upp"):
        run(session, folder, by_id)
    assert run(session, folder, by_id + "upper = 1000\n")["rows"] == 1


def test_a_table_of_the_catalog_that_was_made_again_is_refused(
    session: SparkSession, folder: Path
) -> None:
    source = "[source]\nsql = 'SELECT * FROM shop_orders'\n"
    by_id = '[incremental]\ncolumn = "id"\nlag = 0\n'
    try:
        session.range(3).write.saveAsTable("shop_orders")
        assert run(session, folder, by_id, source=source)["rows"] == 3
        session.range(3, 5).write.insertInto("shop_orders")
        assert run(session, folder, by_id, source=source)["rows"] == 2
        session.sql("DROP TABLE shop_orders")
        session.range(9).write.saveAsTable("shop_orders")
        with pytest.raises(UsageError, match=r"shop_orders has been made again .* --full reads"):
            run(session, folder, by_id, source=source)
        assert run(session, folder, by_id, source=source, is_full=True)["rows"] == 9
    finally:
        session.sql("DROP TABLE IF EXISTS shop_orders")
    assert keys(folder) == list(range(9))


def test_a_lag_that_is_not_given_is_said(
    session: SparkSession, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    add(folder, "a", (1, "10:00:00"))
    run(session, folder, '[incremental]\ncolumn = "at"\n')
    assert "rows up to 1 hour behind the newest one are still read" in caplog.text
    add(folder, "b", (2, "09:00:00.000001"), (3, "09:00:00"))
    assert run(session, folder, '[incremental]\ncolumn = "at"\n')["rows"] == 1


def test_full_of_a_source_without_rows_removes_the_records_and_starts_again(
    session: SparkSession, folder: Path
) -> None:
    by_id = '[incremental]\ncolumn = "id"\nlag = 3\n'
    path = add(folder, "a", (7, "10:00:00"), (8, "10:00:00"))
    run(session, folder, by_id)
    path.write_text("", "utf-8")
    assert run(session, folder, by_id, status=1)["wentBack"] is True
    assert run(session, folder, by_id, is_full=True)["rows"] == 0
    assert keys(folder) == []
    assert run(session, folder, by_id)["wentBack"] is False
    add(folder, "b", (1, "10:00:00"), (2, "10:00:00"))
    assert run(session, folder, by_id)["window"] == {"from": None, "to": "3"}
    assert keys(folder) == [1, 2]
