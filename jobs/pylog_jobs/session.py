"""The Spark session of a job started by plain ``python`` rather than ``spark-submit``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

import pyspark_pylog
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
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in (settings or {}).items():
        builder = builder.config(key, value)
    return pyspark_pylog.session(builder)
