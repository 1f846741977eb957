"""Which failure has which exit status: the table, its page, and a failure of each kind."""

from __future__ import annotations

import errno
import inspect
import os
import re
import signal
from pathlib import Path

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    PythonException,
    SparkRuntimeException,
)

from pylog import errors
from pylog_jobs.exit_status import CAUSES, FAILED, FINDINGS, REJECTED, UNUSABLE, status_of
from pylog_jobs.job import CheckFailedError, JobFailedError, UsageError
from pylog_jobs.record_frame import MissingInputError
from pylog_jobs.stop_request import StoppedError
from pyspark_pylog.errors import JavaNotFoundError, StreamDataLossError
from tests.unit.jobs import test_error_text as texts

PAGE = (Path(__file__).parents[3] / "docs" / "jobs.md").read_text("utf-8")

RETRIED = {
    "KafkaStorageError",
    "LogLockedError",
    "SegmentReplacedError",
    "SegmentVanishedError",
    "TooManyOpenFilesError",
}
"""Errors of the library after which another attempt may succeed; all others end the same way."""


def of_library() -> list[str]:
    found = inspect.getmembers(errors, inspect.isclass)
    return [
        name
        for name, kind in found
        if issubclass(kind, errors.LogStorageError) and kind.__module__ == errors.__name__
        if not name.startswith("_") and kind is not errors.LogStorageError
    ]


def of_worker(raised: str) -> PythonException:
    """Return what Spark says of a Python worker that raised this."""
    frames = '  File "/venv/x.py", line 1, in write\n    raise error'
    return PythonException(f"Traceback (most recent call last):\n{frames}\n{raised}\n")


@pytest.mark.parametrize("name", of_library())
def test_each_error_of_the_library_is_decided_also_as_text_of_a_worker(name: str) -> None:
    assert any(f"pylog.errors.{name}" in cause.names for cause in CAUSES)
    expected = FAILED if name in RETRIED else UNUSABLE
    error = of_worker(f"pylog.errors.{name}: host vm: /logs/a-0: wrong")
    assert status_of(error) == expected
    assert status_of(error, otherwise=FINDINGS) == expected


def of_system(number: int) -> OSError:
    return OSError(number, os.strerror(number), "/logs")


def in_storage(number: int) -> errors.KafkaStorageError:
    return errors.KafkaStorageError(f"cannot write: {os.strerror(number)}", "/logs", errno=number)


SPARK = "org.apache.spark.SparkException: "


@pytest.mark.parametrize(
    ("error", "status"),
    [
        # rows fail a check
        (CheckFailedError("there are 4 rows, and min_rows is 5"), REJECTED),
        # arguments, configuration, SQL
        (UsageError("wrong"), UNUSABLE),
        (ValueError("zstd level is 99, expected -131072 to 22"), UNUSABLE),
        (of_worker("ValueError: host vm: row 0 goes to partition 7 of topic 't'"), UNUSABLE),
        (AnalysisException(texts.UNRESOLVED), UNUSABLE),
        (AnalysisException(texts.AT_PLANNING), UNUSABLE),
        (IllegalArgumentException("partitionColumn is missing"), UNUSABLE),
        # a row that cannot be a record, found by a task or at the commit
        (of_worker("pylog.errors.RecordTooLargeError: row 0 makes a batch of 9 bytes"), UNUSABLE),
        (
            AnalysisException(texts.AT_COMMIT.replace("LogLocked", "RecordTooLarge")),
            UNUSABLE,
        ),
        # values
        (SparkRuntimeException(texts.MALFORMED), UNUSABLE),
        (SparkRuntimeException(texts.CAST), UNUSABLE),
        (SparkRuntimeException("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012"), UNUSABLE),
        (SparkRuntimeException("[USER_RAISED_EXCEPTION] no SQLSTATE: P0001"), UNUSABLE),
        # versions
        (
            SparkRuntimeException("org.apache.iceberg.exceptions.ValidationException: no parent"),
            UNUSABLE,
        ),
        (
            SparkRuntimeException("[DELTA_INVALID_CDC_RANGE] CDC range is wrong SQLSTATE: 22003"),
            UNUSABLE,
        ),
        # packages
        (JavaNotFoundError("no Java 17 or newer"), UNUSABLE),
        (SparkRuntimeException("java.lang.NoClassDefFoundError: org/x/Y"), UNUSABLE),
        # disks and paths
        (of_system(errno.ENOSPC), FAILED),
        (of_system(errno.EDQUOT), FAILED),
        (in_storage(errno.ENOSPC), FAILED),
        (SparkRuntimeException(texts.OF_THE_JVM), FAILED),
        (of_system(errno.EIO), FAILED),
        (errors.UnreadableFileError(os.strerror(errno.ESTALE), "/logs/a-0"), FAILED),
        (of_system(errno.EACCES), UNUSABLE),
        (of_system(errno.ENOTDIR), UNUSABLE),
        (in_storage(errno.EACCES), UNUSABLE),
        (in_storage(errno.EROFS), UNUSABLE),
        (of_worker("PermissionError: [Errno 13] Permission denied: '/logs'"), UNUSABLE),
        (errors.LogDirectoryError("this is a file: give a log directory", "/x"), UNUSABLE),
        # corrupt logs
        (PythonException(texts.OF_A_TASK), UNUSABLE),
        (errors.RecoveryRefusedError("wrong checksum", "/logs/a-0/0.log", 61, 2, 20), UNUSABLE),
        (StreamDataLossError("offsets 3 to 8 are lost"), UNUSABLE),
        # what others hold, removed or do not answer
        (errors.LogLockedError("locked by process 7", "/logs/.lock", 7), FAILED),
        (AnalysisException(texts.AT_COMMIT), FAILED),
        (errors.SegmentVanishedError("deleted", "/logs/a-0/0.log"), FAILED),
        (errors.TooManyOpenFilesError("too many open files", "/logs/a-0/0.log"), FAILED),
        (MemoryError(), FAILED),
        (
            SparkRuntimeException(
                f"{SPARK}x\nCaused by: java.net.ConnectException: Connection refused"
            ),
            FAILED,
        ),
        # what died
        (SparkRuntimeException(texts.LOST), FAILED),
        (Py4JNetworkError("Answer from Java side is empty"), FAILED),
        (ConnectionRefusedError(111, "Connection refused"), FAILED),
        (of_worker("EOFError"), FAILED),
        # what may come
        (MissingInputError("[source]: there are no files"), FAILED),
        (JobFailedError("other runs commit meanwhile"), FAILED),
        # what the table does not name
        (RuntimeError("who knows"), FAILED),
        (of_worker("requests.exceptions.Oddity: who knows"), FAILED),
        (SparkRuntimeException("[INTERNAL_ERROR] a bug SQLSTATE: XX000"), FAILED),
        (StoppedError(signal.SIGTERM), 143),
    ],
)
def test_a_failure_has_the_status_of_its_cause(error: Exception, status: int) -> None:
    assert status_of(error) == status


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (FileNotFoundError(2, "No such file or directory", "x.toml"), UNUSABLE),
        (errors.LogStorageError("wrong"), UNUSABLE),
        (errors.LogLockedError("locked by process 7"), FAILED),
        (of_system(errno.ENOSPC), FAILED),
        (JobFailedError("catalog does not answer"), FAILED),
    ],
)
def test_before_spark_starts_only_what_the_table_names_may_succeed_later(
    error: Exception, status: int
) -> None:
    assert status_of(error, otherwise=UNUSABLE) == status


def test_the_page_has_the_table() -> None:
    rows = re.findall(r"^\| ([1-4]) \| (.*) \|$", PAGE, re.MULTILINE)
    assert [(int(status), what) for status, what in rows] == [
        (cause.status, cause.what) for cause in CAUSES
    ]


def test_no_cause_is_named_twice_with_another_status() -> None:
    plain: dict[str, int] = {}
    for cause in CAUSES:
        for name in cause.names if not cause.says.pattern else ():
            assert plain.setdefault(name, cause.status) == cause.status
