"""What the jobs (`pylog_jobs`) use of the connector; nothing else of its inside is for them."""

from __future__ import annotations

from pyspark_pylog.batch_reader import ADVICE_ON_TIMES
from pyspark_pylog.errors import ADVICE_ON_DAMAGE, JavaNotFoundError, place_of_write_added
from pyspark_pylog.java_home import find_java_home
from pyspark_pylog.options import WriteOptions
from pyspark_pylog.schemas import columns_to_write, is_headers
from pyspark_pylog.spark_workarounds.worker_process import prepare_worker
from pyspark_pylog.spark_workarounds.worker_python import register_if_unknown
from pyspark_pylog.stream_offset import by_topic
from pyspark_pylog.writers import StagedTask, make_directory, stage_rows

__all__ = [
    "ADVICE_ON_DAMAGE",
    "ADVICE_ON_TIMES",
    "JavaNotFoundError",
    "StagedTask",
    "WriteOptions",
    "by_topic",
    "columns_to_write",
    "find_java_home",
    "is_headers",
    "make_directory",
    "place_of_write_added",
    "prepare_worker",
    "register_if_unknown",
    "stage_rows",
]
