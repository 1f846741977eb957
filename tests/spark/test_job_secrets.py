"""A password of a real database: no file, line or event that a job or its Spark writes has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.jdbc_drivers import jdbc_drivers
from tests.support.postgres_server import PASSWORD, postgres_server
from tests.support.spark_session import NEEDS_SPARK, require_java

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [*NEEDS_SPARK, pytest.mark.slow, pytest.mark.thorough]

CONFIG = """
[source]
format = "jdbc"
[source.options]
url = "{url}?user=postgres&password=${{env:SHOP_PASSWORD}}"
query = "SELECT * FROM orders WHERE id >= {{from}} AND id < {{to}}"
driver = "org.postgresql.Driver"
{more}
[record]
value_format = "json"
[target]
directory = "{folder}/logs"
topic = "orders"
job_id = "orders"
[incremental]
column = "id"
lag = 10
"""
SETTINGS = """
spark.jars {jars}
spark.eventLog.enabled true
spark.eventLog.dir {folder}/events
spark.eventLog.compress false
spark.ui.enabled false
"""


def test_a_password_is_found_in_nothing_that_is_written(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    jars = ",".join(map(str, jdbc_drivers()))
    (tmp_path / "spark-defaults.conf").write_text(SETTINGS.format(jars=jars, folder=tmp_path))
    (tmp_path / "password").write_text(PASSWORD)
    with postgres_server() as server:
        server.execute("CREATE TABLE orders AS SELECT generate_series(1, 5) AS id")
        runs = (
            # The last ones fail: at the database, and before Spark starts.
            ("", (), 0),
            ("", ("--dry-run",), 0),
            ("fetchsize = 10\nsessionInitStatement = 'SELECT nothing'", (), 3),
            (
                f"password = '${{file:{tmp_path}/password}}'\ndbtable = '${{env:SHOP_PASSWORD}}'",
                (),
                2,
            ),
        )
        for number, (more, arguments, status) in enumerate(runs):
            config = tmp_path / "orders.toml"
            config.write_text(CONFIG.format(url=server.url, folder=tmp_path, more=more))
            done = subprocess.run(
                [
                    *(sys.executable, "-m", "pylog_jobs.ingest", "--config", str(config)),
                    *("--debug", "--metrics-file", str(tmp_path / "job.prom"), *arguments),
                ],
                capture_output=True,
                text=True,
                check=False,
                env={
                    **os.environ,
                    "JAVA_HOME": str(require_java()),
                    "SPARK_CONF_DIR": str(tmp_path),
                    "PYSPARK_PYTHON": sys.executable,
                    "SHOP_PASSWORD": PASSWORD,
                },
            )
            assert done.returncode == status, done.stdout + done.stderr
            (tmp_path / f"stdout-{number}").write_text(done.stdout)
            (tmp_path / f"stderr-{number}").write_text(done.stderr)
    summary = json.loads((tmp_path / "stdout-0").read_text())
    assert summary["rows"] == 5
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any("event" in path.name for path in written)
    has_it = [path for path in written if PASSWORD.encode() in path.read_bytes()]
    assert has_it == [tmp_path / "password"]
