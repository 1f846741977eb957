"""The Spark session of a job started by plain ``python`` rather than ``spark-submit``."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from pylog_jobs.java_home import find_java_home

if TYPE_CHECKING:
    from collections.abc import Mapping


def spark_session(
    name: str, *, master: str = "local[2]", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Return a session whose Python workers are this Python and whose Java exists.

    What ``SPARK_CONF_DIR`` brings stays in force where ``settings`` says nothing.

    Parameters
    ----------
    name
        Application name.
    master
        Spark master.
    settings
        Spark properties.

    Raises
    ------
    JavaNotFoundError
        There is no Java 17 or newer.
    """
    os.environ["JAVA_HOME"] = str(find_java_home())
    # Without it Spark's workers are whatever "python3" is on PATH, which may not have pylog.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in (settings or {}).items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    return session
