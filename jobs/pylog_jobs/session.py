"""The Spark session of a job, started by plain ``python`` or by ``spark-submit``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

import pyspark_pylog
from pyspark_pylog.jobs import register_if_unknown

if TYPE_CHECKING:
    from collections.abc import Mapping


def spark_session(
    name: str, *, master: str | None = "local[2]", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Return a session whose Python workers are this Python and whose Java exists."""
    builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    for key, value in (settings or {}).items():
        builder = builder.config(key, value)
    return pyspark_pylog.session(builder)


def separate_session(spark: SparkSession) -> SparkSession:
    """Return a session of the same application with its own settings and temporary views."""
    own = spark.newSession()
    register_if_unknown(own)
    return own
