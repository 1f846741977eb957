"""Delta and Iceberg in a Spark of its own; their runtimes lag behind Spark's releases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.kafka_broker_jars import fetch_jars
from tests.support.spark_session import SPARK_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

NEEDS_TABLE_FORMATS = pytest.mark.skipif(
    SPARK_VERSION != (4, 0), reason="Delta and Iceberg are tried on Spark 4.0"
)
PACKAGES = (
    "io.delta:delta-spark_2.13:4.0.0",
    "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",
)
_BUILD = Path(__file__).parents[2] / "build" / "tables"


def table_variables(folder: Path) -> Mapping[str, str]:
    """Return the environment of a driver that has both; catalog ``lake`` is Iceberg's."""
    settings = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(folder / "lake"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    confs = " ".join(f"--conf {name}={value}" for name, value in settings.items())
    jars = ",".join(map(str, fetch_jars(",".join(PACKAGES), _BUILD)))
    return {"PYSPARK_SUBMIT_ARGS": f"--jars {jars} {confs} pyspark-shell"}
