"""One line for each error. The texts of Spark are what it said, cut in the middle."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, PythonException, SparkRuntimeException

from pylog.errors import CorruptRecordError
from pylog_jobs.job import CheckFailedError, describe, status_of

UNRESOLVED = """\
[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `idd` \
cannot be resolved. Did you mean one of the following? [`id`]. SQLSTATE: 42703; line 1 pos 0;
'Project ['idd]
+- Range (0, 3, step=1, splits=Some(2))
"""
AT_PLANNING = """\
[PYTHON_DATA_SOURCE_ERROR] Failed to plan Python data source read in Python: Traceback (most \
recent call last):
  File "/venv/pyspark_pylog/options.py", line 242, in _check_names
    raise ValueError(msg)
ValueError: unknown option 'topc'; did you mean 'topic'? SQLSTATE: 38000
"""
AT_COMMIT = """\
[PYTHON_DATA_SOURCE_ERROR] Failed to commit or abort Python data source write: Traceback (most \
recent call last):
  File "/venv/pyspark_pylog/writers.py", line 143, in commit_tasks
    with place_of_write_added():
pylog.errors.LogLockedError: host vm: /logs/.lock: log directory is locked by process 21267
 SQLSTATE: 38000"""
OF_A_TASK = """\
Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure: Lost \
task 0.0 in stage 1.0 (TID 1) (host executor driver): org.apache.spark.api.python.PythonException: \
Traceback (most recent call last):
  File "/venv/pyspark_pylog/batch_reader.py", line 90, in read
    for batch in task.read():
pylog.errors.CorruptRecordError: /logs/a-0/0.log at byte 61: wrong checksum

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(x.scala:1)
\tat java.base/java.lang.Thread.run(Thread.java:840)

Driver stacktrace:"""
OF_THE_JVM = """\
[TASK_WRITE_FAILED] Task failed while writing rows to file:/out. SQLSTATE: 58030
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.taskFailedWhileWritingRowsError(x.scala:1)
Caused by: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)

Driver stacktrace:"""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            AnalysisException(UNRESOLVED),
            (
                "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter "
                "with name `idd` cannot be resolved. Did you mean one of the following? [`id`]."
            ),
        ),
        (
            AnalysisException(AT_PLANNING),
            "ValueError: unknown option 'topc'; did you mean 'topic'?",
        ),
        (
            PythonException(OF_A_TASK),
            "pylog.errors.CorruptRecordError: /logs/a-0/0.log at byte 61: wrong checksum",
        ),
        (SparkRuntimeException(OF_THE_JVM), "java.io.IOException: No space left on device"),
        (ConnectionRefusedError(111, "Connection refused"), "Spark's JVM does not answer any more"),
        (FileNotFoundError(2, "No such file or directory", "/x"), "/x: No such file or directory"),
        (CorruptRecordError("wrong checksum", "/x", 3), "/x at byte 3: wrong checksum"),
        (ValueError("topic is missing"), "topic is missing"),
        (MemoryError(), "MemoryError"),
    ],
)
def test_an_error_is_the_one_line_that_says_why(error: Exception, expected: str) -> None:
    line = describe(error)
    assert line.startswith(expected)
    assert "\n" not in line
    assert line == expected or isinstance(error, ConnectionError)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (AnalysisException(UNRESOLVED), 2),
        (AnalysisException(AT_PLANNING), 2),
        (AnalysisException(AT_COMMIT), 3),  # another attempt may find the lock free
        (PythonException(OF_A_TASK), 3),
        (SparkRuntimeException(OF_THE_JVM), 3),
        (CheckFailedError("there are 4 rows, and min_rows is 5"), 4),
    ],
)
def test_what_is_refused_is_status_2_what_fails_3_and_a_failed_check_4(
    error: Exception, status: int
) -> None:
    assert status_of(error) == status
