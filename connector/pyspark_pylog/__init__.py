"""The Spark data source ``pylog``: ``spark.read.format("pylog").load("/mnt/kafka-logs")``.

Spark imports every installed top-level module whose name begins with ``pyspark_`` and registers its
``DefaultSource``, so that nothing has to be registered by hand. An exception here would turn off
every Python data source of the application: this module imports nothing heavy and nothing optional.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    from pyspark_pylog.spark_workarounds import worker_process as import_name
except ModuleNotFoundError as error:
    import pylog

    command = pylog.jobs.install_command("spark,java")
    msg = f"pyspark_pylog needs PySpark 4.0 or later: {command}"
    raise ModuleNotFoundError(msg, name="pyspark") from error

if TYPE_CHECKING or import_name.IS_OURS:
    from pyspark_pylog.data_source import PylogDataSource as DefaultSource
    from pyspark_pylog.debezium import debezium
    from pyspark_pylog.relation import table
    from pyspark_pylog.spark_workarounds.worker_python import session
    from pyspark_pylog.stream_offset import lag
    from pyspark_pylog.topic_views import topic_views
else:
    DefaultSource = import_name.ClashingSource
    __getattr__ = import_name.refuse

__all__ = ["DefaultSource", "debezium", "lag", "session", "table", "topic_views"]
