"""What an error of a job says, in one line, and what its causes are called.

Spark passes on the text of an error: a Python worker's traceback, or a JVM's stack trace with a
line ``Caused by`` for each cause. What people need is in several of these lines: which file, which
record, and why.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import AnalysisException, ParseException, PySparkException

if TYPE_CHECKING:
    from collections.abc import Iterator

_TRACEBACK = "Traceback (most recent call last)"
_AT_COMMIT = "Failed to commit or abort Python data source"
_BEFORE = re.compile(r"\AAn error occurred while calling [^\n]*\n: ")
_NEXT = re.compile(r"^(?:Caused by: |JVM stacktrace:\n)", re.MULTILINE)
_NOT_TOLD = re.compile(r"^(?:\t.*|Driver stacktrace:)$", re.MULTILINE)
_OF_A_TASK = re.compile(
    r"\A.*?Job aborted due to stage failure: .*?most recent failure: .*?\(TID \d+\) \([^)]*\): "
)
_KIND = re.compile(r"(?P<kind>(?:\w+\.)+[\w$]+|[A-Z]\w*)(?:: |\Z)")
_OF_SPARK = re.compile(r"org\.apache\.spark\.")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")
_SQLSTATE = re.compile(r"\s*SQLSTATE: (\w+)[.;]?.*$", re.DOTALL)
_LOSSY_ADVICE = re.compile(r' If necessary set "?spark\.sql\.ansi\.enabled"? to "?false"?[^.]*\.')
"""Spark's advice to accept wrong or missing values."""
_EXPRESSION = re.compile(r"^== SQL \(.*\) ==\n(.*)\n *\^+$", re.MULTILINE)


class ErrorCause(NamedTuple):
    """An error that Spark passes on, or what caused it."""

    kind: str  # the name of its class; empty if it is not told
    text: str  # one line
    condition: str = ""  # as Spark names it: FAILED_READ_FILE.NO_HINT
    sql_state: str = ""
    is_of_python: bool = False

    @property
    def shown(self) -> str:
        """The line, with the name of a class that is not Spark's."""
        is_named = self.kind and not _OF_SPARK.match(self.kind)
        return f"{self.kind}: {self.text}".removesuffix(": ") if is_named else self.text


def is_of_analysis(error: BaseException) -> bool:
    """Whether Spark refused what it was asked to do, before it did anything.

    What fails at a commit, such as a lock that somebody else holds, has the same class in Spark.
    """
    is_one = isinstance(error, (AnalysisException, ParseException))
    return is_one and _AT_COMMIT not in str(error)


def describe(error: BaseException) -> str:
    """Return the problem in one line."""
    if isinstance(error, (AnalysisException, ParseException)) and _TRACEBACK not in str(error):
        # The text, and then where in the SQL it is, and a whole plan.
        return _SQLSTATE.sub("", str(error)).strip().splitlines()[0]
    if isinstance(error, (PySparkException, Py4JJavaError)):
        return _joined(causes_of(error))
    if isinstance(error, (Py4JError, ConnectionError, EOFError)):
        return f"Spark's JVM does not answer any more; its last lines may say why ({error})"
    if isinstance(error, OSError) and error.strerror:
        about = "" if error.filename is None else f"{error.filename}: "
        return f"{about}{error.strerror}"
    return str(error) or type(error).__name__


def _joined(causes: list[ErrorCause]) -> str:
    """Return which file, which record, and why; of a Python worker only what it raised."""
    of_python = [each.shown for each in causes if each.is_of_python]
    if of_python:
        return of_python[-1]
    told: list[str] = []
    for each in causes:
        if each.shown and not any((each.text or each.shown) in before for before in told):
            told.append(each.shown)
    return ": ".join([*(each.removesuffix(".") for each in told[:-1]), *told[-1:]])


def causes_of(error: PySparkException | Py4JJavaError) -> list[ErrorCause]:
    """Return an error of Spark and its causes, the last one last."""
    text = _BEFORE.sub("", _text_of(error))
    found = [_cause(each) for each in _NEXT.split(text)]
    state = _database_state(error)
    return [*found, ErrorCause("", "", sql_state=state)] if state else found


def _text_of(error: PySparkException | Py4JJavaError) -> str:
    if isinstance(error, PySparkException):
        return str(getattr(error, "_stackTrace", None) or error)
    try:
        return str(error)
    except (Py4JError, OSError):  # the JVM is asked for the text, and has died meanwhile
        return str(error.errmsg)


def _cause(text: str) -> ErrorCause:
    is_of_python = _TRACEBACK in text
    expression = _EXPRESSION.search(text)
    state = _SQLSTATE.search(text)
    if is_of_python:
        text = _raised(text[text.rindex(_TRACEBACK) :])
    text = _SQLSTATE.sub("", _NOT_TOLD.sub("", text))
    text = _OF_A_TASK.sub("", " ".join(text.split()), count=1)
    text = _LOSSY_ADVICE.sub("", text)
    kind = _KIND.match(text)
    if kind is not None:
        text = text[kind.end() :]
    condition = _CONDITION.match(text)
    if expression is not None:
        text = f"{text} (in {expression[1].strip()})"
    return ErrorCause(
        "" if kind is None else kind["kind"],
        text,
        "" if condition is None else condition[1],
        "" if state is None else state[1],
        is_of_python,
    )


def _raised(traceback: str) -> str:
    """Return what follows the frames of a Python traceback."""
    lines = traceback.splitlines()[1:]
    first = next((at for at, line in enumerate(lines) if not line.startswith((" ", "\t"))), 0)
    return "\n".join(lines[first:])


def _database_state(error: PySparkException | Py4JJavaError) -> str:
    """Return the SQLSTATE that a database gave, which no text has; empty if there is none."""
    try:
        return next(_states(error), "")
    except (Py4JError, OSError):
        return ""  # the JVM has died meanwhile


def _states(error: PySparkException | Py4JJavaError) -> Iterator[str]:
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    gateway = SparkContext._gateway
    while java is not None and gateway is not None:
        if is_instance_of(gateway, java, "java.sql.SQLException") and java.getSQLState():
            yield str(java.getSQLState())
        java = java.getCause()
