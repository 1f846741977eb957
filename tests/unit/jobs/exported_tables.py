"""Exports to tables of Delta and Iceberg, as tests run and read them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pylog
from pylog_jobs import export

if TYPE_CHECKING:
    from pathlib import Path

    from pylog_jobs.export_parameters import ExportParameters

pyiceberg_catalog = pytest.importorskip("pyiceberg.catalog")
Config = pytest.importorskip("pyiceberg.utils.config").Config
DAY_MS = 86_400_000
FIRST_MS = 1_795_132_800_000  # 2026-11-20T00:00:00Z
ICEBERG = "lake.kafka.records"


def catalog_variables(folder: Path) -> dict[str, str]:
    prefix = "PYICEBERG_CATALOG__LAKE__"
    return {
        f"{prefix}TYPE": "sql",
        f"{prefix}URI": f"sqlite:///{folder}/catalog.db",
        f"{prefix}WAREHOUSE": f"file://{folder}/warehouse",
    }


def prepared(logs: Path, kind: str, *more: str) -> ExportParameters:
    parser = argparse.ArgumentParser()
    export.add_arguments(parser)
    output = ICEBERG if kind == "iceberg" else str(logs.parent / kind)
    given = [str(logs), output, "--format", kind, *more]
    return export.prepare(parser.parse_args(given))


def append(logs: Path, values: range, topic: str = "orders") -> None:
    """Write records whose values are the numbers, to two partitions, over three days."""
    pylog.write_topic(
        logs,
        topic,
        pa.table(
            {
                "value": [b"%d" % each for each in values],
                "partition": pa.array([each % 2 for each in values], pa.int32()),
                "timestamp": pa.array(
                    [FIRST_MS + each % 3 * DAY_MS for each in values], pa.timestamp("ms", "UTC")
                ),
            }
        ),
        partitions=2,
        add_partitions=True,
        timestamp="timestamp",
        partition="partition",
    )
