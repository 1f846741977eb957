"""Which exit status a job ends with, and which failure has which.

Exit statuses are the same for every job, and those of the command line where both have one:

====  ============================================================================================
0     what was asked was done; also if there was nothing new to do
1     something is wrong with a log or a source, and a person must look at it
2     another attempt would end in the same way
3     another attempt may succeed
4     ``ingest``: a check of the rows failed, and nothing was published
130   stopped by Ctrl-C
143   stopped by SIGTERM
====  ============================================================================================

`CAUSES` is the table in ``docs/jobs.md``. What it does not name is 2 before Spark starts, where
nothing but arguments and files has been read, and 3 afterwards.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException

from pylog_jobs.error_text import causes_of, is_of_analysis
from pylog_jobs.stop_request import StoppedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DONE = 0
FINDINGS = 1
UNUSABLE = 2
FAILED = 3
REJECTED = 4
OF_SIGNALS = 128
"""Added to a signal's number: what a shell reports of a program that the signal ended."""
STATUS_NAMES = {
    DONE: "done",
    FINDINGS: "findings",
    UNUSABLE: "unusable",
    FAILED: "failed",
    REJECTED: "rejected",
}
"""What key ``status`` of a summary says."""
STOPPED_NAME = "stopped"
"""The same for a job that a signal ended."""


class FailureCause(NamedTuple):
    """Failures with one exit status.

    Names are those of classes of Python and Java, of Spark's error conditions, and of classes of
    SQLSTATE.
    """

    status: int
    what: str
    names: Sequence[str]
    says: re.Pattern[str] = re.compile("")  # what the text has


def _errors(*names: str) -> tuple[str, ...]:
    return tuple(f"pylog.errors.{name}" for name in names)


_SAYS_FULL = re.compile("No space left on device|Disk quota exceeded|File too large")
_SAYS_DISK = re.compile("Input/output error|Stale file handle|Remote I/O error|timed out")
_SAYS_REFUSED = re.compile(
    "Permission denied|Operation not permitted|Read-only file system|Not a directory|"
    "Is a directory|File name too long|Too many levels of symbolic links"
)
_OF_SYSTEM = (
    *("OSError", "java.io.IOException", "java.io.FileNotFoundException"),
    *_errors("KafkaStorageError", "LogDirectoryError", "UnreadableFileError"),
)
CAUSES = (
    FailureCause(
        REJECTED,
        "the rows fail a [check](#checks)",
        ["pylog_jobs.job.CheckFailedError"],
    ),
    FailureCause(
        UNUSABLE,
        "arguments, a configuration or SQL that make no sense, or another source than before",
        [
            *("pylog_jobs.job.UsageError", "ValueError", "OverflowError"),
            *("pyspark.errors.exceptions.base.AnalysisException",),
            *("pyspark.errors.exceptions.base.ParseException",),
            *("pyspark.errors.exceptions.base.IllegalArgumentException",),
            *("java.lang.IllegalArgumentException", "java.lang.UnsupportedOperationException"),
            *(f"SQLSTATE {each}" for each in ("07", "0A", "24", "26", "2B", "3F", "42", "46")),
            *("SQLSTATE 51", "SQLSTATE 56", "SQLSTATE F0"),
            *_errors("InvalidConfigurationError", "OffsetInsideBatchError", "PolicyViolationError"),
            *_errors("InvalidSchemaError", "NoSchemaError"),
            *_errors("DivergedReplicasError"),
            *_errors("OffsetOutOfRangeError", "OffsetAboveHighWatermarkError"),
            *_errors("UnknownTopicConfigError", "UnknownTopicOrPartitionError"),
        ],
    ),
    FailureCause(
        UNUSABLE,
        "a row that cannot be a record: larger than `max.message.bytes` or `segment.bytes`, "
        "without a key in a compacted topic, with a partition or a time that the topic does not "
        "take",
        _errors(
            *("InvalidLineError", "InvalidRecordError", "InvalidTimestampError"),
            *("RecordBatchTooLargeError",),
            *("RecordTooLargeError", "RecordValidationError", "TimestampOverflowError"),
            *("UnsupportedCodecError",),
        ),
    ),
    FailureCause(
        UNUSABLE,
        "a value that the source's format or the SQL does not take: a malformed record under "
        "`FAILFAST`, a cast, an overflow, a division by zero",
        [
            *("SQLSTATE 21", "SQLSTATE 22", "SQLSTATE 23", "SQLSTATE 54", "SQLSTATE P0"),
            *("MALFORMED_RECORD_IN_PARSING", "MALFORMED_CSV_RECORD"),
            *("INCOMPATIBLE_DATA_FOR_TABLE", "CONFLICTING_DIRECTORY_STRUCTURES"),
            *("CONFLICTING_PARTITION_COLUMN_NAMES",),
            *("FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH",),
            *("java.lang.ArithmeticException", "java.lang.NumberFormatException"),
            *("java.lang.ClassCastException", "java.time.DateTimeException"),
            *_errors("UndecodableValueError"),
        ],
    ),
    FailureCause(
        UNUSABLE,
        "a table that was rolled back, or whose versions or snapshots are gone",
        [
            *("org.apache.iceberg.exceptions.ValidationException",),
            *("org.apache.iceberg.exceptions.NotFoundException",),
            *("io.delta.exceptions.VersionNotFoundException", "SQLSTATE KD002"),
            *("org.apache.spark.sql.delta.VersionNotFoundException",),
        ],
    ),
    FailureCause(
        UNUSABLE,
        "a database that refuses the user, or does not have the database",
        ["SQLSTATE 28", "SQLSTATE 3D"],
    ),
    FailureCause(
        UNUSABLE,
        "a package, a class or a Java that is missing, or has another version",
        [
            *_errors("KernelsNotLoadedError"),
            *(
                "pyspark_pylog.errors.JavaNotFoundError",
                "pyspark_pylog.errors.WorkerPythonError",
            ),
            *("ModuleNotFoundError", "ImportError", "java.lang.ClassNotFoundException"),
            *("java.lang.NoClassDefFoundError", "java.lang.NoSuchMethodError"),
        ],
    ),
    FailureCause(
        FAILED,
        "a full disk or quota",
        _OF_SYSTEM,
        _SAYS_FULL,
    ),
    FailureCause(
        FAILED,
        "a disk or a file system that does not answer",
        _OF_SYSTEM,
        _SAYS_DISK,
    ),
    FailureCause(
        UNUSABLE,
        "a file or directory that cannot be one, or that the user may not read or write",
        (*_OF_SYSTEM, "PermissionError", "NotADirectoryError", "IsADirectoryError"),
        _SAYS_REFUSED,
    ),
    FailureCause(
        UNUSABLE,
        "a path that cannot be read or holds no log",
        _errors("LogDirectoryError", "UnreadableFileError", "UnexpectedFileError"),
    ),
    FailureCause(
        UNUSABLE,
        "a corrupt log, or one that the commit refuses to recover",
        _errors(
            *("CorruptCheckpointError", "CorruptIndexError", "CorruptRecordError"),
            *("CorruptSnapshotError", "IndexOffsetOverflowError", "InvalidOffsetError"),
            *("LogLoadingError", "LogSegmentOffsetOverflowError", "MisplacedBatchError"),
            *("RecoveryRefusedError", "InvalidProducerEpochError", "InvalidTxnStateError"),
            *("OffsetsOutOfOrderError", "OutOfOrderSequenceError"),
            *("TransactionCoordinatorFencedError", "UnexpectedAppendOffsetError"),
        ),
    ),
    FailureCause(
        UNUSABLE,
        "records that a stream was to read were deleted",
        ["pyspark_pylog.errors.StreamDataLossError"],
    ),
    FailureCause(
        FAILED,
        "a log directory, or an output, that a broker or another writer has open",
        _errors("LogLockedError"),
    ),
    FailureCause(
        FAILED,
        "a segment that was deleted or replaced while it was read",
        [
            *_errors("SegmentVanishedError", "SegmentReplacedError"),
            "pylog.cleaner.cleaning_states.CleaningAbortedError",
        ],
    ),
    FailureCause(
        FAILED,
        "too many open files, too little memory, a disk that fails",
        [
            *_errors("TooManyOpenFilesError", "KafkaStorageError"),
            *("MemoryError", "java.lang.OutOfMemoryError", "SQLSTATE 53", "SQLSTATE 82"),
        ],
    ),
    FailureCause(
        FAILED,
        "a database, a store or a catalog that does not answer, or asks to try again",
        [
            *("java.net.ConnectException", "java.net.SocketTimeoutException"),
            *("java.net.UnknownHostException", "java.net.NoRouteToHostException"),
            *("java.net.SocketException", "java.sql.SQLTransientException"),
            *("java.sql.SQLTransientConnectionException", "java.sql.SQLTimeoutException"),
            *("java.sql.SQLRecoverableException",),
            *(f"SQLSTATE {each}" for each in ("08", "40", "55", "57", "58")),
            *("ConnectionError", "TimeoutError"),
        ],
    ),
    FailureCause(
        FAILED,
        "an executor that was lost, a Python worker or a JVM that died",
        [
            *("java.io.EOFException", "py4j.protocol.Py4JNetworkError", "py4j.protocol.Py4JError"),
            "EOFError",
        ],
    ),
    FailureCause(
        FAILED,
        "an input that is not there yet, another run that commits meanwhile",
        ["pylog_jobs.job.JobFailedError"],
    ),
)


def status_of(error: BaseException, otherwise: int = FAILED) -> int:
    """Return the exit status of a job that ended with an error; the table may not name it."""
    if isinstance(error, StoppedError):
        return OF_SIGNALS + error.signal
    for name, text in _told(error):
        for cause in CAUSES:
            if name in cause.names and cause.says.search(text):
                return cause.status
    return otherwise


def _told(error: BaseException) -> Iterator[tuple[str, str]]:
    """Give names of an error and of its causes, each with its text: the last cause first."""
    if isinstance(error, (PySparkException, Py4JJavaError)):
        for each in reversed(causes_of(error)):
            parts = each.condition.split(".")
            for length in range(len(parts), 0, -1):
                yield ".".join(parts[:length]), each.text
            yield f"SQLSTATE {each.sql_state}", each.text
            yield f"SQLSTATE {each.sql_state[:2]}", each.text
            yield each.kind, each.text
    if not isinstance(error, AnalysisException) or is_of_analysis(error):
        for kind in type(error).__mro__:
            prefix = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
            yield f"{prefix}{kind.__qualname__}", str(error)
