"""One Spark for all tests that need one, and what they say to it and hear from it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest
from pyspark.errors import PySparkException

from pylog_jobs.session import spark_session
from pyspark_pylog.errors import JavaNotFoundError
from pyspark_pylog.java_home import find_java_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

SPARK_CONF = Path(__file__).parents[2] / "spark-conf"

NEEDS_SPARK = [pytest.mark.spark]

SPARK_VERSION = tuple(int(part) for part in pyspark.__version__.split(".")[:2])

PLANS_ONCE = SPARK_VERSION >= (4, 1)
"""Whether Spark asks once for the input partitions of a ``load()``; 4.0 asks at each action."""

_SETTINGS = {
    # A worker on a busy machine may need more than 15 s to connect.
    "spark.python.authenticate.socketTimeout": "60s",
    # Not the machine's and not UTC, on purpose: no value read may depend on it.
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+\s*$")


def require_java() -> Path:
    """Return the JAVA_HOME that Spark gets; skip the test where there is none."""
    try:
        return find_java_home()
    except JavaNotFoundError as error:
        pytest.skip(f"Spark cannot start: {error}")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Give the session that all tests of this process share."""
    java_home = require_java()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(java_home))
        patch.setenv("SPARK_CONF_DIR", str(SPARK_CONF))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        warehouse = tmp_path_factory.mktemp("warehouse")
        settings = {**_SETTINGS, "spark.sql.warehouse.dir": warehouse.as_uri()}
        session = spark_session("pylog tests", settings=settings)
        yield session
        session.stop()


def load(spark: SparkSession, path: object = None, **options: object) -> DataFrame:
    """Return ``spark.read.format("pylog")`` with options and a path, or a list of them, loaded."""
    reader = spark.read.format("pylog").options(**options)  # type: ignore[arg-type]
    if path is None:
        return reader.load()
    return reader.load([str(each) for each in path] if isinstance(path, list) else str(path))


def save(frame: DataFrame, path: object, **options: object) -> None:
    """Append to the log directory ``path``: ``frame.write.format("pylog")`` with options."""
    writer = frame.write.format("pylog").mode("append")
    writer.options(**options).save(str(path))  # type: ignore[arg-type]


def last_line(run: Callable[[], object]) -> str:
    """Return the line that a user reads last of the error that ``run`` raises."""
    with pytest.raises(PySparkException) as caught:
        run()
    return last_line_of(str(caught.value))


def last_line_of(error: str) -> str:
    """Return the line that a user reads last of an error; some versions of Spark add a state."""
    return _SQLSTATE.sub("", error).rstrip().splitlines()[-1]
