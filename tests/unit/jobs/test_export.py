"""Exports: what Kafka's consumer returned, as Parquet; run by run, each record once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, cast

import pyarrow as pa
import pytest

import pylog
from pylog_jobs import export
from pylog_jobs.export_output import ExportOutput, ExportRun
from pylog_jobs.export_parameters import ExportParameters
from pylog_jobs.job import UsageError
from tests.support.batches import Stored, batch_v2
from tests.support.golden import Holds, golden_partitions, read_expected
from tests.support.log_files import write_partition
from tests.support.spark_session import NEEDS_SPARK

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from pylog_jobs.record_files import Folder, WrittenFile
    from tests.support.golden import GoldenRoot

pytestmark = NEEDS_SPARK


def parameters(logs: Path, output: Path, **given: Any) -> ExportParameters:  # noqa: ANN401 - the fields
    return ExportParameters(paths=(str(logs),), output=ExportOutput(str(output)), **given)


def append(logs: Path, values: range, topic: str = "orders") -> None:
    """Write records whose values are the numbers, one a day from 2026-11-20 on."""
    day_ms = 86_400_000
    first_ms = 1_795_132_800_000  # 2026-11-20T00:00:00Z
    pylog.write_topic(
        logs,
        topic,
        pa.table(
            {
                "value": [str(each).encode() for each in values],
                "timestamp": pa.array(
                    [first_ms + each % 3 * day_ms for each in values], pa.timestamp("ms", "UTC")
                ),
            }
        ),
        timestamp="timestamp",
    )


def numbers(frame: DataFrame) -> list[int]:
    return sorted(int(row.value) for row in frame.select("value").collect())


@pytest.mark.parametrize("isolation", ["uncommitted", "committed"])
def test_a_broker_s_directory_is_exported_as_kafka_reads_it(
    session: SparkSession, golden_root: GoldenRoot, tmp_path: Path, isolation: str
) -> None:
    case = "4.3.0/txn"
    outcome = export.run(
        session,
        parameters(golden_root.case(case), tmp_path / "out", isolation=f"read_{isolation}"),
    )
    expected = []
    for each in golden_partitions(Holds.EXACTLY):
        if each.startswith(f"{case}:") and ":__" not in each:
            partition = golden_root.partition(each)
            path = partition.expected_path(isolation)  # type: ignore[arg-type]
            assert path is not None
            expected += [
                (
                    *(partition.topic, partition.partition, line["offset"], line["timestamp"]),
                    *(line["timestampType"], line["key"], line["value"], line["headers"]),
                )
                for line in read_expected(path)
            ]
    found = session.read.parquet(str(tmp_path / "out")).selectExpr(
        *("topic", "partition", "offset", "unix_millis(timestamp) AS ms", "timestampType"),
        *("base64(key) AS key", "base64(value) AS value"),
        "transform(headers, h -> struct(h.key, base64(h.value) AS value)) AS headers",
    )
    rows = [
        (
            *row[:5],
            *(_unwrapped(each) for each in row[5:7]),
            [list(map(_unwrapped, h)) for h in row[7] or []],
        )
        for row in found.collect()
    ]
    assert sorted(rows, key=str) == sorted(expected, key=str)
    assert outcome.status == 0
    assert outcome.summary["rows"] == len(expected) > 0
    files = (tmp_path / "out").rglob("*.parquet")
    assert outcome.summary["sizeInBytes"] == sum(each.stat().st_size for each in files)


def _unwrapped(text: str | None) -> str | None:
    """Return base64 without the line breaks that Spark puts in."""
    return None if text is None else text.replace("\r\n", "")


def test_files_lie_by_run_topic_and_day_and_spark_sees_nothing_else(
    session: SparkSession, tmp_path: Path
) -> None:
    append(tmp_path / "logs", range(6))
    export.run(session, parameters(tmp_path / "logs", tmp_path / "out"))
    files = (tmp_path / "out").rglob("*.parquet")
    assert {str(each.parent.relative_to(tmp_path / "out")) for each in files} == {
        f"run=0/topic=orders/date=2026-11-{day}" for day in (20, 21, 22)
    }
    frame = session.read.parquet(str(tmp_path / "out"))
    assert set(frame.columns) == {
        *("run", "topic", "date", "partition", "offset", "timestamp", "timestampType"),
        *("key", "value", "headers"),
    }
    assert frame.where("date = '2026-11-21'").count() == 2


def test_each_run_adds_what_is_new_and_nothing_new_adds_no_run(
    session: SparkSession, tmp_path: Path
) -> None:
    logs, output = tmp_path / "logs", tmp_path / "out"
    runs = []
    for values in (range(5), range(5, 9), range(0)):
        if values:
            append(logs, values)
        runs.append(export.run(session, parameters(logs, output)).summary)
    append(logs, range(9, 10), topic="payments")  # a topic that no run before knew
    runs.append(export.run(session, parameters(logs, output)).summary)
    assert [(each["run"], each["rows"]) for each in runs] == [(0, 5), (1, 4), (None, 0), (2, 1)]
    assert numbers(session.read.parquet(str(output))) == list(range(10))


def test_topics_are_exported_apart_and_each_goes_on_where_it_was(
    session: SparkSession, tmp_path: Path
) -> None:
    logs, output = tmp_path / "logs", tmp_path / "out"
    append(logs, range(3), topic="a")
    append(logs, range(3, 6), topic="b")
    rows = [
        export.run(session, parameters(logs, output, topics=(topic,))).summary["rows"]
        for topic in ("a", "b", "a")
    ]
    assert rows == [3, 3, 0]
    assert numbers(session.read.parquet(str(output))) == list(range(6))


def test_a_dry_run_changes_nothing(session: SparkSession, tmp_path: Path) -> None:
    append(tmp_path / "logs", range(5))
    summary = export.run(
        session, parameters(tmp_path / "logs", tmp_path / "out", is_dry_run=True)
    ).summary
    assert (summary["dryRun"], summary["run"], summary["offsets"]) == (True, None, 5)
    assert not (tmp_path / "out").exists()


class FailingOutput(ExportOutput):
    """Fails as a process that is killed would, before or after the rename."""

    def __init__(self, path: str, *, is_after: bool) -> None:
        super().__init__(path)
        self._is_after = is_after

    def publish(self, folder: Folder, run: ExportRun, files: Sequence[WrittenFile]) -> str:
        if self._is_after:
            super().publish(folder, run, files)
        raise KeyboardInterrupt


@pytest.mark.parametrize("is_after", [False, True])
def test_a_run_that_is_broken_off_at_its_rename_is_there_whole_or_not_at_all(
    session: SparkSession,
    tmp_path: Path,
    is_after: bool,  # noqa: FBT001 - a parameter
) -> None:
    logs, output = tmp_path / "logs", tmp_path / "out"
    append(logs, range(5))
    export.run(session, parameters(logs, output))
    append(logs, range(5, 9))
    broken = ExportParameters(
        paths=(str(logs),), output=FailingOutput(str(output), is_after=is_after)
    )
    with pytest.raises(KeyboardInterrupt):
        export.run(session, broken)
    seen = 9 if is_after else 5
    assert numbers(session.read.parquet(str(output))) == list(range(seen))
    summary = export.run(session, parameters(logs, output)).summary
    assert summary["rows"] == 9 - seen
    assert numbers(session.read.parquet(str(output))) == list(range(9))
    assert [each for each in output.iterdir() if each.name.startswith("_staging")] == []


def test_another_isolation_level_in_the_same_output_is_refused(
    session: SparkSession, tmp_path: Path
) -> None:
    append(tmp_path / "logs", range(5))
    export.run(session, parameters(tmp_path / "logs", tmp_path / "out"))
    with pytest.raises(
        UsageError, match="were made with --isolation read_uncommitted; continue with"
    ):
        export.run(
            session,
            parameters(tmp_path / "logs", tmp_path / "out", isolation="read_committed"),
        )


def test_records_that_are_gone_before_they_were_exported_hold_back_their_partition_or_are_counted(
    session: SparkSession, tmp_path: Path
) -> None:
    logs, output = tmp_path / "logs", tmp_path / "out"
    append(logs, range(5))
    export.run(session, parameters(logs, output))
    append(logs, range(5, 9))
    append(logs, range(3), "others")
    pylog.delete_records(logs, {("orders", 0): 7})
    outcome = export.run(session, parameters(logs, output))
    assert (outcome.status, outcome.summary["rows"]) == (2, 3)
    [stopped] = cast("list[dict[str, Any]]", outcome.summary["stoppedPartitions"])
    assert (stopped["topic"], stopped["partition"]) == ("orders", 0)
    assert stopped["error"].startswith("offsets 5 to 6 were deleted before they were exported")
    summary = export.run(session, parameters(logs, output, fails_on_data_loss=False)).summary
    assert (summary["rows"], summary["offsetsLost"]) == (2, 2)
    rows = session.read.parquet(str(output)).where("topic = 'orders'")
    assert numbers(rows) == [0, 1, 2, 3, 4, 7, 8]


def test_a_log_that_was_truncated_holds_up_no_other_one(
    session: SparkSession, tmp_path: Path
) -> None:
    logs, output = tmp_path / "logs", tmp_path / "out"
    for values in (range(2), range(2, 5)):
        append(logs, values)
        append(logs, values, "others")
    export.run(session, parameters(logs, output))
    pylog.truncate_log(logs, ("orders", 0), 2)
    append(logs, range(5, 7), "others")
    outcome = export.run(session, parameters(logs, output))
    assert (outcome.status, outcome.summary["rows"]) == (2, 2)
    [stopped] = cast("list[dict[str, Any]]", outcome.summary["stoppedPartitions"])
    assert stopped["error"].startswith("it ends at offset 2, and was exported up to offset 5: ")
    restarted = export.run(session, parameters(logs, output, restart=("orders",)))
    assert (restarted.status, restarted.summary["rows"]) == (0, 2)
    rows = session.read.parquet(str(output)).where("topic = 'orders'")
    assert numbers(rows) == [0, 0, 1, 1, 2, 3, 4]


def test_a_topic_that_was_deleted_is_no_error_and_one_that_never_was_is(
    session: SparkSession, tmp_path: Path
) -> None:
    logs, output = tmp_path / "logs", tmp_path / "out"
    for topic in ("orders", "others"):
        append(logs, range(5), topic)
    export.run(session, parameters(logs, output))
    pylog.delete_topic(logs, "orders")
    append(logs, range(5, 7), "others")
    chosen = parameters(logs, output, topics=("orders", "others"))
    outcome = export.run(session, chosen)
    assert (outcome.status, outcome.summary["rows"]) == (0, 2)
    alone = export.run(session, parameters(logs, output, topics=("orders",)))
    assert (alone.status, alone.summary["run"]) == (0, None)
    with pytest.raises(pylog.errors.UnknownTopicOrPartitionError, match="nope"):
        export.run(session, parameters(logs, output, topics=("nope", "others")))


def test_the_offsets_are_readable_without_the_job(session: SparkSession, tmp_path: Path) -> None:
    append(tmp_path / "logs", range(5))
    export.run(session, parameters(tmp_path / "logs", tmp_path / "out"))
    manifest = json.loads((tmp_path / "out" / "run=0" / "_export.json").read_text())
    assert manifest["partitions"]["orders"]["0"]["next_offset"] == 5
    assert sum(each["rows"] for each in manifest["files"]) == manifest["rows"] == 5


def damage(logs: Path, topic: str, part: Literal["first batch", "last batch", "file"]) -> bytes:
    """Damage partition 0 of a topic; return what its only segment was."""
    path = logs / f"{topic}-0" / "00000000000000000000.log"
    intact = path.read_bytes()
    if part == "file":
        path.unlink()
        path.mkdir()
        return intact
    at = 70 if part == "first batch" else len(intact) - 3
    path.write_bytes(intact[:at] + bytes([intact[at] ^ 1]) + intact[at + 1 :])
    return intact


@pytest.mark.parametrize("part", ["first batch", "last batch", "file"])
def test_a_damaged_partition_holds_up_no_other_one_and_follows_once_it_is_mended(
    session: SparkSession, tmp_path: Path, part: Literal["first batch", "last batch", "file"]
) -> None:
    logs, output = tmp_path / "logs", tmp_path / "out"
    for number, topic in enumerate(("a", "b", "c")):
        append(logs, range(10 * number, 10 * number + 5), topic=topic)
        append(logs, range(10 * number + 5, 10 * number + 8), topic=topic)
    intact = damage(logs, "b", part)
    outcome = export.run(session, parameters(logs, output))
    assert (outcome.status, outcome.summary["rows"], outcome.summary["run"]) == (1, 16, 0)
    summary: dict[str, Any] = dict(outcome.summary)
    [left_out] = summary["damagedPartitions"]
    assert (left_out["topic"], left_out["partition"]) == ("b", 0)
    assert str(logs / "b-0" / "00000000000000000000.log") in left_out["error"]
    assert "mode=" not in left_out["error"]
    assert numbers(session.read.parquet(str(output))) == [*range(8), *range(20, 28)]
    assert [each.name for each in output.iterdir() if each.name.startswith("_staging")] == []

    path = logs / "b-0" / "00000000000000000000.log"
    if path.is_dir():
        path.rmdir()
    path.write_bytes(intact)
    outcome = export.run(session, parameters(logs, output))
    assert (outcome.status, outcome.summary["rows"]) == (0, 8)
    assert outcome.summary["damagedPartitions"] == []
    assert numbers(session.read.parquet(str(output))) == [*range(8), *range(10, 18), *range(20, 28)]


def test_where_all_that_is_new_is_damaged_no_run_is_published(
    session: SparkSession, tmp_path: Path
) -> None:
    append(tmp_path / "logs", range(5))
    damage(tmp_path / "logs", "orders", "last batch")
    outcome = export.run(session, parameters(tmp_path / "logs", tmp_path / "out"))
    assert (outcome.status, outcome.summary["run"], outcome.summary["rows"]) == (1, None, 0)
    assert ExportOutput(str(tmp_path / "out")).last_run() is None
    dropping = parameters(tmp_path / "logs", tmp_path / "out", mode="DROPMALFORMED")
    assert export.run(session, dropping).status == 0


@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED"])
def test_a_time_that_no_column_holds_holds_up_no_other_partition(
    session: SparkSession, tmp_path: Path, mode: str
) -> None:
    nanoseconds = 1_700_000_000_000_000_000  # that a producer took for milliseconds
    write_partition(tmp_path / "logs", {0: [batch_v2([Stored(0, nanoseconds, b"k", b"1")])]})
    append(tmp_path / "logs", range(3), "web")
    outcome = export.run(session, parameters(tmp_path / "logs", tmp_path / "out", mode=mode))
    assert outcome.status == 1
    error = f"timestamp {nanoseconds} ms is more than a TIMESTAMP holds"
    assert outcome.summary["damagedPartitions"] == [
        {"topic": "orders", "partition": 0, "error": error}
    ]
    assert numbers(session.read.parquet(str(tmp_path / "out"))) == [0, 1, 2]
