"""How `PylogTable.count` asks for counts in place of records: an option, and a schema.

One row for each task of Spark says how many records the task has.
"""

from __future__ import annotations

from pyspark.sql.types import LongType, StructField, StructType

RECORD_COUNTS = "recordCounts"
COUNT = "records"
COUNT_SCHEMA = StructType([StructField(COUNT, LongType())])
