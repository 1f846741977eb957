"""One line for each error, also for those of Spark, whose texts have hundreds."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException

_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+[.;]?.*$", re.DOTALL)
_STACK = re.compile(r"\n+(?:\s+at |Driver stacktrace:|JVM stacktrace:).*", re.DOTALL)
_CAUSE = re.compile(r"^Caused by: (.*)$", re.MULTILINE)
_TRACEBACK = "Traceback (most recent call last)"

_AT_COMMIT = "Failed to commit or abort Python data source"


def is_of_analysis(error: BaseException) -> bool:
    """Whether Spark refused what it was asked to do, before it did anything.

    What fails at a commit, such as a lock that somebody else holds, has the same class in Spark.
    """
    is_one = isinstance(error, (AnalysisException, ParseException))
    return is_one and _AT_COMMIT not in str(error)


def describe(error: BaseException) -> str:
    """Return what is wrong, in one line."""
    if isinstance(error, PySparkException):
        text = str(error)
        if isinstance(error, (AnalysisException, ParseException)) and _TRACEBACK not in text:
            # The text, and then where in the SQL it is, and a whole plan.
            return _SQLSTATE.sub("", text).strip().splitlines()[0]
        return _of_spark(text)
    if isinstance(error, Py4JJavaError):
        return _of_spark(str(error.java_exception))
    if isinstance(error, (Py4JError, ConnectionError, EOFError)):
        return f"Spark's JVM does not answer any more; its last lines may say why ({error})"
    if isinstance(error, OSError) and error.strerror:
        about = "" if error.filename is None else f"{error.filename}: "
        return f"{about}{error.strerror}"
    return str(error) or type(error).__name__


def _of_spark(text: str) -> str:
    """Return the line that says why: a worker's traceback ends with it."""
    if _TRACEBACK in text:
        traceback = _STACK.sub("", text[text.rindex(_TRACEBACK) :])
        return _SQLSTATE.sub("", traceback).strip().splitlines()[-1]
    causes = _CAUSE.findall(text)
    line = causes[-1] if causes else _STACK.sub("", text).strip().splitlines()[0]
    return _SQLSTATE.sub("", line).strip()
