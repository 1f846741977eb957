"""One line for each error. The texts of Spark are what it said, cut in the middle."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, PythonException, SparkRuntimeException

from pylog.errors import CorruptRecordError
from pylog_jobs.error_text import describe

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


# Lines that Spark and its sources gave; most frames are cut out.
MALFORMED = """\
org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file \
file:///in/a.json.  SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(x.scala:1)
Caused by: org.apache.spark.SparkException: [MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] \
Malformed records are detected in record parsing: [null,null].
Parse Mode: FAILFAST. To process malformed records as null result, try setting the option 'mode' \
as 'PERMISSIVE'.  SQLSTATE: 22023
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.malformed(x.scala:1)
\t... 1 more
Caused by: com.fasterxml.jackson.core.JsonParseException: Unrecognized token 'oops'
 at [Source: UNKNOWN; line: 1, column: 8]
\tat com.fasterxml.jackson.core.JsonParser._constructError(JsonParser.java:1)
\t... 44 more
"""
MALFORMED_LINE = (
    "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///in/a.json: "
    "[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are detected in record "
    "parsing: [null,null]. Parse Mode: FAILFAST. To process malformed records as null result, try "
    "setting the option 'mode' as 'PERMISSIVE': com.fasterxml.jackson.core.JsonParseException: "
    "Unrecognized token 'oops' at [Source: UNKNOWN; line: 1, column: 8]"
)
OF_A_DATABASE = """\
org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 \
times, most recent failure: Lost task 0.0 in stage 3.0 (TID 3) (10.0.0.2 executor driver): \
org.postgresql.util.PSQLException: ERROR: invalid input syntax for type integer: "x"
  Detail: Token "x" is invalid.
  Where: unnamed portal parameter $1
\tat org.postgresql.core.v3.QueryExecutorImpl.receiveErrorResponse(QueryExecutorImpl.java:1)

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.$anonfun$abortStage$2(DAGScheduler.scala:1)
Caused by: org.postgresql.util.PSQLException: ERROR: invalid input syntax for type integer: "x"
  Detail: Token "x" is invalid.
  Where: unnamed portal parameter $1
\tat org.postgresql.core.v3.QueryExecutorImpl.receiveErrorResponse(QueryExecutorImpl.java:1)
"""
OF_A_DATABASE_LINE = (
    'org.postgresql.util.PSQLException: ERROR: invalid input syntax for type integer: "x" '
    'Detail: Token "x" is invalid. Where: unnamed portal parameter $1'
)
CAST = """\
[CAST_INVALID_INPUT] The value 'eu' of the type "STRING" cannot be cast to "INT" because it is \
malformed. SQLSTATE: 22018
== SQL (line 1, position 6) ==
CAST(CAST(region AS INT) AS STRING)
     ^^^^^^^^^^^^^^^^^^^
"""
CAST_LINE = (
    '[CAST_INVALID_INPUT] The value \'eu\' of the type "STRING" cannot be cast to "INT" because '
    "it is malformed. (in CAST(CAST(region AS INT) AS STRING))"
)
LINES = """\
An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/venv/source.py", line 3, in read
    raise ValueError(text)
ValueError: the first line of it,
  the second:
the third SQLSTATE: 38000
"""
LOST = """\
org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 \
times, most recent failure: Lost task 0.3 in stage 0.0 (TID 3) (10.0.0.2 executor 3): \
ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: Command exited \
with code 137
Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:1)
"""
LOST_LINE = (
    "ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: Command "
    "exited with code 137"
)


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
        (
            SparkRuntimeException(OF_THE_JVM),
            (
                "[TASK_WRITE_FAILED] Task failed while writing rows to file:/out: "
                "java.io.IOException: No space left on device"
            ),
        ),
        (SparkRuntimeException(MALFORMED), MALFORMED_LINE),
        (SparkRuntimeException(OF_A_DATABASE), OF_A_DATABASE_LINE),
        (SparkRuntimeException(CAST), CAST_LINE),
        (
            SparkRuntimeException(
                "[ARITHMETIC_OVERFLOW] overflow. Use 'try_add' to return NULL instead. If "
                'necessary set "spark.sql.ansi.enabled" to "false" to bypass this error. '
                "SQLSTATE: 22003"
            ),
            "[ARITHMETIC_OVERFLOW] overflow. Use 'try_add' to return NULL instead.",
        ),
        (PythonException(LINES), "ValueError: the first line of it, the second: the third"),
        (SparkRuntimeException(LOST), LOST_LINE),
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
