"""Exports to tables and lines, read back by who has nothing to do with Spark; also after faults."""

from __future__ import annotations

import base64
import csv
import json
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, cast

import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pylog
from pylog_jobs import export
from pylog_jobs.job import JobFailedError, UsageError
from tests.support.batches import Stored, batch_v2, marker
from tests.support.golden import Holds, golden_partitions, read_expected
from tests.support.log_files import write_partition
from tests.support.spark_session import NEEDS_SPARK
from tests.unit.jobs.exported_tables import (
    FIRST_MS,
    Config,
    append,
    catalog_variables,
    prepared,
    pyiceberg_catalog,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.golden import GoldenRoot

deltalake = pytest.importorskip("deltalake")
pytest.importorskip("sqlalchemy")  # the catalog of these tests
pytestmark = [*NEEDS_SPARK, pytest.mark.filterwarnings("default")]  # pyiceberg's own
TABLES = ("delta", "iceberg")
KINDS = ("parquet", *TABLES)


@pytest.fixture(autouse=True)
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have pyiceberg know the catalog ``lake``, in SQLite."""
    for name, value in catalog_variables(tmp_path).items():
        monkeypatch.setenv(name, value)
    # It looks at the environment when it is imported.
    monkeypatch.setattr(pyiceberg_catalog, "_ENV_CONFIG", Config())


def table_of(folder: Path, kind: str) -> pa.Table:
    """Return the rows of a table, by its own library."""
    if kind == "delta":
        return deltalake.DeltaTable(str(folder / "delta")).to_pyarrow_table()
    return pyiceberg_catalog.load_catalog("lake").load_table("kafka.records").scan().to_arrow()


def numbers(folder: Path, kind: str) -> list[int]:
    return sorted(int(value) for value in table_of(folder, kind)["value"].to_pylist())


def numbers_of(folder: Path, kind: str) -> list[int]:
    """Return the same of any output."""
    if kind in TABLES:
        return numbers(folder, kind)
    tables = map(pq.ParquetFile, (folder / kind).rglob("*.parquet"))
    values = (each for table in tables for each in table.read(["value"])["value"].to_pylist())
    return sorted(map(int, values))


def lines_of(folder: Path, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the records of an output as the golden files have them."""
    if kind in TABLES:
        for row in table_of(folder, kind).to_pylist():
            at_ms = round(row["timestamp"].timestamp() * 1000)
            yield {
                **row,
                "timestamp": at_ms,
                "key": _base64(row["key"]),
                "value": _base64(row["value"]),
                "headers": [[each["key"], _base64(each["value"])] for each in row["headers"] or []],
            }
        return
    for path in sorted((folder / kind).rglob(f"*.{kind}")):
        with path.open(newline="") as file:
            if kind == "jsonl":
                yield from map(json.loads, file)
            else:
                topic = next(each for each in path.parts if each.startswith("topic="))
                for row in csv.DictReader(file):
                    yield {**row, "topic": topic.removeprefix("topic=")}


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


@pytest.mark.parametrize(("kind", "package"), [("delta", "deltalake"), ("iceberg", "pyiceberg")])
def test_a_library_that_is_not_installed_is_named_with_its_extra(
    kind: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(tmp_path / "logs", range(2))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError, match=f"--format {kind} needs {package}, on the driver and "):
        prepared(tmp_path / "logs", kind)


@pytest.mark.parametrize("kind", [*TABLES, "jsonl", "csv"])
@pytest.mark.parametrize(
    "isolation", ["committed", pytest.param("uncommitted", marks=pytest.mark.thorough)]
)
def test_a_broker_s_directory_is_exported_as_kafka_reads_it(
    session: SparkSession, golden_root: GoldenRoot, tmp_path: Path, isolation: str, kind: str
) -> None:
    (tmp_path / "logs").symlink_to(golden_root.case("4.3.0/txn"))
    values = () if kind in TABLES else ("--values", "base64")
    outcome = export.run(
        session, prepared(tmp_path / "logs", kind, "--isolation", f"read_{isolation}", *values)
    )
    expected = []
    for each in golden_partitions(Holds.EXACTLY):
        if each.startswith("4.3.0/txn:") and ":__" not in each:
            partition = golden_root.partition(each)
            path = partition.expected_path(isolation)  # type: ignore[arg-type]
            assert path is not None
            place = {"topic": partition.topic, "partition": partition.partition}
            expected += [{**line, **place} for line in read_expected(path)]
    names = ["topic", "partition", "offset", "key", "value"]
    if kind != "csv":
        names += ["timestamp", "timestampType", "headers"]

    def of(line: dict[str, Any]) -> str:
        parts = [line[name] for name in names]
        if kind == "csv":  # has nothing but text, and no null
            parts = ["" if part is None else str(part) for part in parts]
        return json.dumps(parts)

    assert Counter(map(of, lines_of(tmp_path, kind))) == Counter(map(of, expected))
    assert outcome.status == 0
    assert outcome.summary["rows"] == len(expected) > 0


@pytest.mark.parametrize("kind", TABLES)
def test_each_run_adds_what_is_new_and_nothing_new_commits_nothing(
    session: SparkSession, tmp_path: Path, kind: str
) -> None:
    runs = []
    for values in (range(50), range(50, 90), range(0)):
        if values:
            append(tmp_path / "logs", values)
        runs.append(export.run(session, prepared(tmp_path / "logs", kind)).summary)
    assert [(each["run"], each["rows"]) for each in runs] == [(0, 50), (1, 40), (None, 0)]
    assert numbers(tmp_path, kind) == list(range(90))
    if kind == "delta":
        assert deltalake.DeltaTable(str(tmp_path / "delta")).version() == 2
        assert polars.read_delta(str(tmp_path / "delta")).height == 90
    else:
        table = pyiceberg_catalog.load_catalog("lake").load_table("kafka.records")
        assert len(table.snapshots()) == 2


def create_again(logs: Path, topic: str, values: range, partitions: int) -> None:
    """Delete a topic, and write another one of its name."""
    pylog.delete_topic(logs, topic)
    of_rows = pa.array([each % partitions for each in values], pa.int32())
    table = pa.table({"value": [b"%d" % each for each in values], "partition": of_rows})
    pylog.write_topic(logs, topic, table, partitions=partitions, partition="partition")


@pytest.mark.parametrize("kind", KINDS)
def test_a_topic_that_was_created_again_holds_up_no_other_one_and_starts_over_once(
    session: SparkSession, tmp_path: Path, kind: str
) -> None:
    logs = tmp_path / "logs"
    for topic in ("orders", "others"):
        append(logs, range(10), topic)
    export.run(session, prepared(logs, kind))
    exported_id = pylog.read_table(pylog.open_directory(logs), "partitions")["topic_id"].to_pylist()
    create_again(logs, "orders", range(100, 110), 1)
    append(logs, range(10, 14), "others")
    for rows in (4, 0):
        outcome = export.run(session, prepared(logs, kind))
        assert (outcome.status, outcome.summary["rows"]) == (2, rows)
        [again] = cast("list[dict[str, str]]", outcome.summary["recreatedTopics"])
        assert again["topic"] == "orders"
        assert again["exportedTopicId"] in exported_id
        assert again["topicId"] not in exported_id
    # As a scheduler repeats it: the second time, it is the topic that was exported.
    for rows in (10, 0):
        outcome = export.run(session, prepared(logs, kind, "--restart-topic", "orders"))
        assert (outcome.status, outcome.summary["rows"]) == (0, rows)
        assert outcome.summary["recreatedTopics"] == []
    # Nothing of the first topic counts any more: neither its second partition, nor its id.
    append(logs, range(110, 116))
    assert export.run(session, prepared(logs, kind)).summary["rows"] == 6
    twice = [*range(10), *range(10), *range(10, 14), *range(100, 116)]
    assert numbers_of(tmp_path, kind) == sorted(twice)


@pytest.mark.parametrize("kind", KINDS)
def test_a_topic_starts_over_also_where_it_is_damaged_or_empty(
    session: SparkSession, tmp_path: Path, kind: str
) -> None:
    logs = tmp_path / "logs"
    append(logs, range(10))
    export.run(session, prepared(logs, kind))
    create_again(logs, "orders", range(0), 2)
    outcome = export.run(session, prepared(logs, kind, "--restart-topic", "orders"))
    assert (outcome.status, outcome.summary["restartedTopics"]) == (0, ["orders"])
    append(logs, range(20, 26))
    assert export.run(session, prepared(logs, kind)).summary["rows"] == 6
    create_again(logs, "orders", range(30, 36), 2)
    path = logs / "orders-1" / "00000000000000000000.log"
    intact = path.read_bytes()
    path.write_bytes(intact[:70] + bytes([intact[70] ^ 1]) + intact[71:])
    outcome = export.run(session, prepared(logs, kind, "--restart-topic", "orders"))
    assert (outcome.status, outcome.summary["rows"]) == (1, 3)
    path.write_bytes(intact)
    outcome = export.run(session, prepared(logs, kind))
    assert (outcome.status, outcome.summary["rows"]) == (0, 3)
    assert numbers_of(tmp_path, kind) == [*range(10), *range(20, 26), *range(30, 36)]


class _BrokenOffError(Exception):
    """What a kill is in these tests."""


def _break_off(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str, *, is_after: bool
) -> None:
    """Have the first call of a function fail before or after it did what it does."""
    original: Callable[..., Any] = getattr(owner, name)
    calls = []

    def broken(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - of any function
        calls.append(name)
        if len(calls) > 1:
            return original(*given, **named)
        if is_after:
            original(*given, **named)
        raise _BrokenOffError

    monkeypatch.setattr(owner, name, broken)


def _steps(kind: str) -> list[tuple[object, str]]:
    """Return the steps of an export that change the table, in their order."""
    from pylog_jobs import export_tables, record_files  # noqa: PLC0415 - beside what is imported below

    if kind == "delta":
        output = export_tables.DeltaOutput
        return [
            (output, "prepare"),
            (record_files.RecordFiles, "write"),
            (deltalake.DeltaTable, "create_write_transaction"),
            (output, "publish"),
        ]
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415 - an extra
    from pyiceberg.table import Transaction  # noqa: PLC0415

    return [
        (export_tables.IcebergOutput, "_create"),
        (record_files.RecordFiles, "write"),
        (Transaction, "add_files"),
        (SqlCatalog, "commit_table"),
        (export_tables.IcebergOutput, "publish"),
    ]


_COMMITS = {"delta": [2], "iceberg": [3]}
"""Which of the steps publish."""


@pytest.mark.parametrize(
    ("kind", "step", "is_after"),
    [
        # After the commit and before everything else is where most would go wrong.
        pytest.param(
            *(kind, step, is_after),
            marks=pytest.mark.thorough if is_after and step not in _COMMITS[kind] else (),
        )
        for kind in TABLES
        for step in range(4 if kind == "delta" else 5)
        for is_after in (False, True)
    ],
)
def test_an_export_that_is_broken_off_at_any_step_loses_and_doubles_nothing(
    session: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    step: int,
    is_after: bool,  # noqa: FBT001 - a parameter
) -> None:
    append(tmp_path / "logs", range(10))
    with monkeypatch.context() as patch:
        _break_off(patch, *_steps(kind)[step], is_after=is_after)
        with pytest.raises(_BrokenOffError):
            export.run(session, prepared(tmp_path / "logs", kind))
    append(tmp_path / "logs", range(10, 16))
    export.run(session, prepared(tmp_path / "logs", kind))
    assert numbers(tmp_path, kind) == list(range(16))


@pytest.mark.parametrize("kind", TABLES)
def test_of_two_runs_at_a_time_one_is_told_to_run_again(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    append(tmp_path / "logs", range(10))
    export.run(session, prepared(tmp_path / "logs", kind))
    append(tmp_path / "logs", range(10, 16))
    slow = prepared(tmp_path / "logs", kind)
    publish = slow.output.publish

    def overtaken(*given: Any) -> str:  # noqa: ANN401 - of publish
        export.run(session, prepared(tmp_path / "logs", kind))
        return publish(*given)

    monkeypatch.setattr(slow.output, "publish", overtaken)
    with pytest.raises(JobFailedError, match="another run has exported to it meanwhile; run again"):
        export.run(session, slow)
    assert numbers(tmp_path, kind) == list(range(16))


def test_who_else_commits_to_an_iceberg_table_meanwhile_is_waited_for(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(tmp_path / "logs", range(10))
    export.run(session, prepared(tmp_path / "logs", "iceberg"))
    append(tmp_path / "logs", range(10, 16))
    slow = prepared(tmp_path / "logs", "iceberg")
    publish = slow.output.publish

    def overtaken(*given: Any) -> str:  # noqa: ANN401 - of publish
        table = pyiceberg_catalog.load_catalog("lake").load_table("kafka.records")
        table.append(table.scan(limit=1).to_arrow())
        return publish(*given)

    monkeypatch.setattr(slow.output, "publish", overtaken)
    assert export.run(session, slow).summary["rows"] == 6
    assert len(numbers(tmp_path, "iceberg")) == 16 + 1
    append(tmp_path / "logs", range(16, 18))  # behind a snapshot of somebody else's
    assert export.run(session, prepared(tmp_path / "logs", "iceberg")).summary["rows"] == 2


def test_an_iceberg_table_that_was_rolled_back_gets_its_records_again(
    session: SparkSession, tmp_path: Path
) -> None:
    append(tmp_path / "logs", range(10))
    export.run(session, prepared(tmp_path / "logs", "iceberg"))
    table = pyiceberg_catalog.load_catalog("lake").load_table("kafka.records")
    first = table.current_snapshot().snapshot_id
    append(tmp_path / "logs", range(10, 16))
    export.run(session, prepared(tmp_path / "logs", "iceberg"))
    table.refresh()
    table.manage_snapshots().set_current_snapshot(first).commit()
    assert numbers(tmp_path, "iceberg") == list(range(10))
    assert export.run(session, prepared(tmp_path / "logs", "iceberg")).summary["rows"] == 6
    assert numbers(tmp_path, "iceberg") == list(range(16))


def test_an_iceberg_table_whose_snapshots_expired_knows_its_offsets(
    session: SparkSession, tmp_path: Path
) -> None:
    append(tmp_path / "logs", range(10))
    export.run(session, prepared(tmp_path / "logs", "iceberg"))
    table = pyiceberg_catalog.load_catalog("lake").load_table("kafka.records")
    ours = table.current_snapshot().snapshot_id
    table.append(table.scan(limit=1).to_arrow())
    table.maintenance.expire_snapshots().by_id(ours).commit()
    assert export.run(session, prepared(tmp_path / "logs", "iceberg")).summary["run"] is None


@pytest.mark.parametrize("kind", TABLES)
def test_a_damaged_partition_follows_once_it_is_mended(
    session: SparkSession, tmp_path: Path, kind: str
) -> None:
    append(tmp_path / "logs", range(20))
    path = tmp_path / "logs" / "orders-1" / "00000000000000000000.log"
    intact = path.read_bytes()
    path.write_bytes(intact[:70] + bytes([intact[70] ^ 1]) + intact[71:])
    outcome = export.run(session, prepared(tmp_path / "logs", kind))
    assert (outcome.status, outcome.summary["rows"]) == (1, 10)
    assert numbers(tmp_path, kind) == list(range(0, 20, 2))
    path.write_bytes(intact)
    outcome = export.run(session, prepared(tmp_path / "logs", kind))
    assert (outcome.status, outcome.summary["rows"]) == (0, 10)
    assert numbers(tmp_path, kind) == list(range(20))


@pytest.mark.parametrize("kind", TABLES)
def test_partitions_are_what_the_expressions_say(
    session: SparkSession, tmp_path: Path, kind: str
) -> None:
    append(tmp_path / "logs", range(12))
    by = ("--partition-by", "partition", "--partition-by", "hour=date_format(timestamp, 'MMdd-HH')")
    export.run(session, prepared(tmp_path / "logs", kind, *by))
    rows = table_of(tmp_path, kind).select(["partition", "hour", "value"]).to_pylist()
    assert sorted((row["partition"], row["hour"], int(row["value"])) for row in rows) == sorted(
        (each % 2, f"11{20 + each % 3}-00", each) for each in range(12)
    )
    if kind == "delta":
        table = deltalake.DeltaTable(str(tmp_path / "delta"))
        assert table.metadata().partition_columns == ["partition", "hour"]
        files = table.file_uris(file_pruning_predicate="partition = 1 AND hour = '1121-00'")
    else:
        loaded = pyiceberg_catalog.load_catalog("lake").load_table("kafka.records")
        scan = loaded.scan(row_filter="partition = 1 and hour = '1121-00'")
        files = [each.file.file_path for each in scan.plan_files()]
    assert len(files) == 1


def test_delta_skips_files_by_offset_and_time(session: SparkSession, tmp_path: Path) -> None:
    append(tmp_path / "logs", range(12))
    export.run(session, prepared(tmp_path / "logs", "delta", "--partition-by", "none"))
    actions = deltalake.DeltaTable(str(tmp_path / "delta")).get_add_actions(flatten=True)
    found = pa.table(actions).to_pylist()
    assert sum(row["num_records"] for row in found) == 12
    assert {row["max.offset"] for row in found} == {5}
    assert {f"{row['max.timestamp']:%d %H}" for row in found} == {"22 00"}


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_with_other_columns_or_partitions_is_refused(
    session: SparkSession, tmp_path: Path, kind: str
) -> None:
    append(tmp_path / "logs", range(2))
    export.run(session, prepared(tmp_path / "logs", kind))
    append(tmp_path / "logs", range(2, 4))
    for by, message in (
        ("topic", "is partitioned by topic, date, and the rows by topic;"),
        ("x=topic", "column x has type string here, and the table has no such column"),
    ):
        with pytest.raises(UsageError, match=message):
            export.run(session, prepared(tmp_path / "logs", kind, "--partition-by", by))
    assert numbers(tmp_path, kind) == [0, 1]


def test_an_output_keeps_its_format_and_partitions(session: SparkSession, tmp_path: Path) -> None:
    append(tmp_path / "logs", range(2))
    export.run(session, prepared(tmp_path / "logs", "csv"))
    (tmp_path / "csv").rename(tmp_path / "jsonl")
    with pytest.raises(UsageError, match="were made with --format csv; continue with that"):
        export.run(session, prepared(tmp_path / "logs", "jsonl"))


def test_the_hand_over_is_where_the_export_ends(session: SparkSession, tmp_path: Path) -> None:
    append(tmp_path / "logs", range(9))
    to = tmp_path / "offsets"
    summary = export.run(
        session, prepared(tmp_path / "logs", "delta", "--hand-over", str(to))
    ).summary
    hand_over: Any = summary["handOver"]
    assert hand_over["offsets"] == {"orders": {"0": 5, "1": 4}}
    assert sorted(hand_over["files"]) == sorted(str(each) for each in to.iterdir())
    append(tmp_path / "logs", range(9, 16))
    # A stream begins there, as Spark's kafka source would.
    rest = (
        session.read.format("pylog")
        .option("startingOffsets", (to / "spark-offsets.json").read_text())
        .load(str(tmp_path / "logs"))
    )
    exported = numbers(tmp_path, "delta")
    assert sorted(exported + [int(row.value) for row in rest.collect()]) == list(range(16))
    assert (to / "consumer-group.csv").read_text() == "orders,0,5\norders,1,4\n"


def test_nothing_is_handed_over_while_a_partition_is_damaged(
    session: SparkSession, tmp_path: Path
) -> None:
    append(tmp_path / "logs", range(9))
    path = tmp_path / "logs" / "orders-1" / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:-3] + b"xxx")
    to = tmp_path / "offsets"
    outcome = export.run(session, prepared(tmp_path / "logs", "csv", "--hand-over", str(to)))
    assert (outcome.status, outcome.summary["handOver"]) == (1, None)
    assert not to.exists()


FAR_MS = 1_700_000_000_000_000
"""Microseconds that a producer took for milliseconds: a time of the year 55840."""


def write_far(logs: Path, far_ms: int = FAR_MS) -> None:
    """Write a partition with a time far away, and one without."""
    records = [Stored(at, each, b"k", b"%d" % at) for at, each in enumerate((FIRST_MS, far_ms))]
    write_partition(logs, {0: [batch_v2(records)]}, name="orders-0")
    write_partition(logs, {0: [batch_v2([Stored(0, FIRST_MS, b"k", b"9")])]}, name="web-0")


@pytest.mark.parametrize(
    ("kind", "by", "far_ms"),
    [
        ("delta", "date", FAR_MS),
        ("iceberg", "date", FAR_MS),
        ("iceberg", "topic", 253_402_300_800_000),  # the first one of the year 10000
    ],
)
def test_a_time_that_a_table_has_no_place_for_holds_up_no_other_partition(
    session: SparkSession, tmp_path: Path, kind: str, by: str, far_ms: int
) -> None:
    write_far(tmp_path / "logs", far_ms)
    outcome = export.run(session, prepared(tmp_path / "logs", kind, "--partition-by", by))
    assert outcome.status == 1
    [damaged] = cast("list[dict[str, Any]]", outcome.summary["damagedPartitions"])
    assert (damaged["topic"], damaged["partition"]) == ("orders", 0)
    assert damaged["error"].startswith(f"timestamp {far_ms} ms is not in the years 1 to 9999")
    assert numbers(tmp_path, kind) == [9]


@pytest.mark.parametrize("kind", ["delta", "csv", "jsonl"])
def test_a_time_of_any_year_is_exported_where_there_is_a_place_for_it(
    session: SparkSession, tmp_path: Path, kind: str
) -> None:
    write_far(tmp_path / "logs")
    by = "topic" if kind == "delta" else "date"
    outcome = export.run(session, prepared(tmp_path / "logs", kind, "--partition-by", by))
    assert (outcome.status, outcome.summary["rows"]) == (0, 3)
    if kind == "delta":
        times = table_of(tmp_path, kind)["timestamp"].cast("int64").to_pylist()
        assert max(times) == FAR_MS * 1000
    else:
        days = {each.parent.name for each in (tmp_path / kind).rglob(f"*.{kind}")}
        assert days == {"date=2026-11-20", "date=+55840-11-08"}


@pytest.mark.parametrize("kind", TABLES)
def test_offsets_of_markers_alone_are_a_run_of_their_own(
    session: SparkSession, tmp_path: Path, kind: str
) -> None:
    logs = tmp_path / "logs"
    data = Stored(0, FIRST_MS, b"k", b"1")
    aborted = batch_v2([data], producer_id=7, producer_epoch=0, is_transactional=True)
    ended = marker(1, 0, producer_id=7, timestamp=FIRST_MS)
    write_partition(logs, {0: [aborted, ended]}, name="orders-0")
    read_committed = prepared(logs, kind, "--isolation", "read_committed")
    outcome = export.run(session, read_committed)
    assert (outcome.status, outcome.summary["rows"], outcome.summary["offsets"]) == (0, 0, 2)
    again = export.run(session, prepared(logs, kind, "--isolation", "read_committed"))
    assert (again.status, again.summary["run"]) == (0, None)
    assert numbers(tmp_path, kind) == []


def test_text_that_csv_cannot_hold_is_tried_once(session: SparkSession, tmp_path: Path) -> None:
    records = [Stored(0, FIRST_MS, b"k", b"\xff")]
    write_partition(tmp_path / "logs", {0: [batch_v2(records)]}, name="orders-0")
    with pytest.raises(UsageError, match="the value of partition 0, offset 0, is not UTF-8"):
        export.run(session, prepared(tmp_path / "logs", "csv"))


def test_a_catalog_that_does_not_answer_may_at_the_next_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(tmp_path / "logs", range(2))
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__TYPE", "rest")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", "http://127.0.0.1:9/")
    monkeypatch.setattr(pyiceberg_catalog, "_ENV_CONFIG", Config())
    with pytest.raises(JobFailedError, match="catalog 'lake' does not answer"):
        prepared(tmp_path / "logs", "iceberg")
