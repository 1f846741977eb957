"""An export to a Delta table in S3, which has no rename."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.spark.test_job_processes import TIMEOUT_SECONDS, environment, python, summary_of
from tests.support.s3_server import CREDENTIALS, REGION, Bucket, S3Server
from tests.support.spark_session import NEEDS_SPARK
from tests.unit.jobs.exported_tables import append

if TYPE_CHECKING:
    from pathlib import Path

deltalake = pytest.importorskip("deltalake")

pytestmark = [*NEEDS_SPARK, pytest.mark.slow, pytest.mark.thorough]


def test_a_delta_table_in_a_store_gets_each_record_once(tmp_path: Path) -> None:
    with S3Server() as server:
        Bucket(server, "lake")
        variables = {
            **CREDENTIALS,
            "AWS_ENDPOINT_URL": f"http://{server.endpoint}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": REGION,
            "AWS_CONDITIONAL_PUT": "etag",
        }
        found = []
        for count in range(1, 3):
            append(tmp_path / "logs", range(count * 10 - 10, count * 10))
            done = subprocess.run(
                python("export", tmp_path / "logs", "s3://lake/records", "--format", "delta"),
                env={**environment(), **variables},
                capture_output=True,
                text=True,
                check=False,
                timeout=TIMEOUT_SECONDS,
            )
            assert done.returncode == 0, done.stderr
            found.append(summary_of(done.stdout)["rows"])
        table = deltalake.DeltaTable("s3://lake/records", storage_options=variables)
        assert found == [10, 10]
        values = table.to_pyarrow_table()["value"].to_pylist()
        assert sorted(map(int, values)) == list(range(20))
