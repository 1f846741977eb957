"""What a task stages and a driver commits, called as Spark does; no Spark is running."""

from __future__ import annotations

import logging
import os
import pickle
import shutil
import socket
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import StringType, StructField, StructType

import pylog
from pylog.errors import LogDirectoryError, LogLockedError, UnknownTopicOrPartitionError
from pyspark_pylog import DefaultSource
from pyspark_pylog.writers import PylogBatchWriter
from tests.support.registry_records import ORDER

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark_pylog.writers import StagedTask

HOST = f"host {socket.gethostname()}: "
SCHEMA = StructType([StructField("value", StringType()), StructField("id", StringType())])
ONE_DIRECTORY = (
    "the driver and all executors must see one and the same directory under this path; between "
    "machines that is a shared file system"
)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return tmp_path / "logs"


@pytest.fixture
def writer(logs: Path) -> Callable[..., PylogBatchWriter]:
    """Make what Spark makes on the driver, and ships to where the method is called."""

    def make(**options: str) -> PylogBatchWriter:
        given = {"path": str(logs), "topic": "orders", **options}
        made = DefaultSource(CaseInsensitiveDict(given)).writer(SCHEMA, overwrite=False)
        assert isinstance(made, PylogBatchWriter)
        shipped: PylogBatchWriter = pickle.loads(pickle.dumps(made))  # noqa: S301 - our own
        return shipped

    return make


def stage(writer: PylogBatchWriter, *values: str) -> StagedTask:
    batch = pa.record_batch({"value": list(values), "id": ["x"] * len(values)})
    message: StagedTask = pickle.loads(pickle.dumps(writer.write(iter([batch]))))  # noqa: S301 - our own
    return message


def values(logs: Path) -> list[bytes]:
    found: list[bytes] = pylog.scan(logs, columns=["value"]).to_table()["value"].to_pylist()
    return found


def staged_files(logs: Path) -> list[Path]:
    return list(logs.glob(".pylog-staged-*"))


def test_rows_are_there_after_the_commit_and_not_before(
    writer: Callable[..., PylogBatchWriter], logs: Path
) -> None:
    shipped = writer()
    messages = [stage(shipped, "a", "b"), stage(shipped, "c")]
    assert [path.name for path in logs.iterdir() if path.is_dir()] == []
    shipped.commit(messages)
    assert values(logs) == [b"a", b"b", b"c"]
    assert staged_files(logs) == []


def test_abort_removes_what_tasks_have_staged_and_may_be_repeated(
    writer: Callable[..., PylogBatchWriter], logs: Path
) -> None:
    shipped = writer()
    stage(shipped, "lost")  # an attempt whose message Spark has not kept
    messages = [stage(shipped, "a"), None]
    assert staged_files(logs) != []
    shipped.abort(messages)
    shipped.abort([None, None])
    assert staged_files(logs) == []


def test_abort_after_the_commit_takes_nothing_away(
    writer: Callable[..., PylogBatchWriter], logs: Path
) -> None:
    shipped = writer()
    messages = [stage(shipped, "a")]
    shipped.commit(messages)
    shipped.abort(messages)
    assert values(logs) == [b"a"]


def test_what_lost_attempts_have_staged_goes_with_the_commit(
    writer: Callable[..., PylogBatchWriter], logs: Path
) -> None:
    shipped = writer()
    stage(shipped, "lost")
    shipped.commit([stage(shipped, "a")])
    assert values(logs) == [b"a"]
    assert staged_files(logs) == []


def test_a_job_that_has_been_committed_stages_nothing_and_says_so(
    writer: Callable[..., PylogBatchWriter], logs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second, third = (writer(jobId="nightly") for _ in range(3))
    late = stage(second, "a")
    first.commit([stage(first, "a")])
    message = stage(third, "a")
    assert message.staged is None
    with caplog.at_level(logging.WARNING):
        second.commit([late])
        third.commit([message])
    said = f"pylog: job 'nightly' has been written to {logs} before, so nothing was written now"
    assert [record.getMessage() for record in caplog.records] == [said, said]
    assert values(logs) == [b"a"]
    assert staged_files(logs) == []


def test_an_executor_without_the_directory_is_named(
    writer: Callable[..., PylogBatchWriter], logs: Path
) -> None:
    shipped = writer()
    logs.rmdir()  # as on another machine
    with pytest.raises(LogDirectoryError) as caught:
        stage(shipped, "a")
    assert str(caught.value) == (
        f"host {socket.gethostname()}, partition 0 of the DataFrame: {logs}: no such directory; "
        f"{ONE_DIRECTORY}"
    )


def test_a_driver_that_does_not_see_what_was_staged_names_both_hosts_and_the_file(
    writer: Callable[..., PylogBatchWriter], logs: Path
) -> None:
    shipped = writer()
    message = stage(shipped, "a")
    name = next(path.name for path in staged_files(logs) if path.name.endswith(".batches"))
    shutil.rmtree(logs)  # the executor's directory, which the driver does not see
    logs.mkdir()
    with pytest.raises(LogDirectoryError) as caught:
        shipped.commit([message])
    assert str(caught.value) == (
        f"{HOST}{logs}/{name}: no such file, though a task on host {socket.gethostname()} has "
        f"staged it; {ONE_DIRECTORY}. Nothing was written"
    )


def test_a_commit_waits_for_the_lock_as_long_as_it_is_told(
    writer: Callable[..., PylogBatchWriter], logs: Path
) -> None:
    shipped = writer(commitTimeout="100ms")
    messages = [stage(shipped, "a")]
    with pylog.logs.LogManager([logs]), pytest.raises(LogLockedError) as caught:
        shipped.commit(messages)
    assert str(caught.value).startswith(f"{HOST}{logs}/.lock: ")
    assert str(os.getpid()) in str(caught.value)
    assert str(caught.value).endswith(
        "; option commitTimeout says how long a write waits, for example 10 minutes"
    )
    shipped.commit(messages)
    assert values(logs) == [b"a"]


def test_rows_that_cannot_be_written_leave_no_file(
    writer: Callable[..., PylogBatchWriter], logs: Path
) -> None:
    shipped = writer(**{"topic.max.message.bytes": "100"})
    with pytest.raises(pylog.LogStorageError, match="row 1"):
        stage(shipped, "a", "x" * 1000)
    assert staged_files(logs) == []


def test_options_without_effect_are_named_once(
    logs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"path": str(logs), "topic": "t", "kafka.acks": "all", "includeHeaders": "true"}
    source = DefaultSource(CaseInsensitiveDict(options))
    with caplog.at_level(logging.WARNING):
        source.writer(SCHEMA, overwrite=False)
        DefaultSource(CaseInsensitiveDict(options)).streamWriter(SCHEMA, overwrite=False)
        DefaultSource(CaseInsensitiveDict(options)).streamWriter(SCHEMA, overwrite=False)
    said = "pylog: options without effect here: includeHeaders, kafka.acks"
    assert [record.getMessage() for record in caplog.records] == [said, said]


def test_nothing_is_overwritten(logs: Path) -> None:
    source = DefaultSource(CaseInsensitiveDict({"path": str(logs), "topic": "t"}))
    with pytest.raises(ValueError, match=r'write \.mode\("append"\)'):
        source.writer(SCHEMA, overwrite=True)
    with pytest.raises(ValueError, match=r'write \.outputMode\("append"\)'):
        source.streamWriter(SCHEMA, overwrite=True)
    assert not logs.exists()


def test_a_micro_batch_of_a_query_that_is_not_known_is_not_written(logs: Path) -> None:
    given = {"path": str(logs), "topic": "t"}
    source = DefaultSource(CaseInsensitiveDict(given))
    with pytest.raises(RuntimeError, match=r"no local properties sql\.streaming\.queryId"):
        source.streamWriter(SCHEMA, overwrite=False).write(iter([]))


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_topic_that_looks_like_a_typing_error_is_refused_before_a_task_runs(
    logs: Path, *, is_stream: bool
) -> None:
    pylog.create_topic(logs, "orders", 1)

    def make(**options: str) -> object:
        given = CaseInsensitiveDict({"path": str(logs), **options})
        source = DefaultSource(given)
        return (source.streamWriter if is_stream else source.writer)(SCHEMA, overwrite=False)

    with pytest.raises(UnknownTopicOrPartitionError) as refused:
        make(topic="ordes")
    assert "no topic 'ordes' in this log directory; did you mean 'orders'?" in str(refused.value)
    assert "in Spark option createTopic" in str(refused.value)
    make(topic="ordes", createTopic="true")
    make(topic="orders")
    make(topic="payments")


def test_a_job_that_was_committed_under_a_similar_name_is_known_again(
    writer: Callable[..., PylogBatchWriter], logs: Path
) -> None:
    pylog.create_topic(logs, "orders", 1)
    first = writer(topic="ordes", createTopic="true", jobId="nightly")
    first.commit([stage(first, "a")])
    pylog.delete_topic(logs, "ordes")
    again = writer(topic="ordes", jobId="nightly")
    assert stage(again, "a").staged is None


def test_values_are_encoded_by_a_schema_that_the_driver_registers(
    logs: Path, tmp_path: Path, writer: Callable[..., PylogBatchWriter]
) -> None:
    file = tmp_path / "order.avsc"
    file.write_text(ORDER)
    made = writer(valueSchema=str(file))
    assert [each.id for each in pylog.jobs.schemas(logs).schemas] == [1]

    staged = made.write(iter([pa.record_batch({"value": [{"id": 5}], "id": ["not taken"]})]))
    made.commit([staged])

    typed = pylog.scan(logs, topics="orders", value_format="auto").to_table()
    assert typed.column("value").to_pylist() == [{"id": 5}]
