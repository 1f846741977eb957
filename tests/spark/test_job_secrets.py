"""A password of a real database: no file, line or event that a job or its Spark writes has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import pylog
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
url = "{url}?user=postgres&password=${{env:JOB_SECRET}}"
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


def run_ingest(
    folder: Path, number: int, config: str, secret: str, arguments: tuple[str, ...] = ()
) -> int:
    """Run the job as a user would; keep what it writes to its terminal, and return its status."""
    (folder / "job.toml").write_text(config)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pylog_jobs.ingest", "--config", str(folder / "job.toml")),
            *("--debug", "--metrics-file", str(folder / "job.prom"), *arguments),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "JAVA_HOME": str(require_java()),
            "SPARK_CONF_DIR": str(folder),
            "PYSPARK_PYTHON": sys.executable,
            "JOB_SECRET": secret,
        },
    )
    (folder / f"stdout-{number}").write_text(done.stdout)
    (folder / f"stderr-{number}").write_text(done.stderr)
    return done.returncode


def write_settings(folder: Path) -> None:
    (folder / "events").mkdir()
    jars = ",".join(map(str, jdbc_drivers()))
    (folder / "spark-defaults.conf").write_text(SETTINGS.format(jars=jars, folder=folder))


def files_with(folder: Path, secret: str) -> list[Path]:
    written = [path for path in folder.rglob("*") if path.is_file()]
    assert any("event" in path.name for path in written)
    return [path for path in written if secret.encode() in path.read_bytes()]


def test_a_password_is_found_in_nothing_that_is_written(tmp_path: Path) -> None:
    write_settings(tmp_path)
    (tmp_path / "password").write_text(PASSWORD)
    with postgres_server() as server:
        server.execute("CREATE TABLE orders AS SELECT generate_series(1, 5) AS id")
        runs = (
            # The last ones fail: at the database, and before Spark starts.
            ("", (), 0),
            ("", ("--dry-run",), 0),
            ("fetchsize = 10\nsessionInitStatement = 'SELECT nothing'", (), 3),
            (
                f"password = '${{file:{tmp_path}/password}}'\ndbtable = '${{env:JOB_SECRET}}'",
                (),
                2,
            ),
        )
        for number, (more, arguments, status) in enumerate(runs):
            config = CONFIG.format(url=server.url, folder=tmp_path, more=more)
            assert run_ingest(tmp_path, number, config, PASSWORD, arguments) == status
    assert json.loads((tmp_path / "stdout-0").read_text())["rows"] == 5
    assert files_with(tmp_path, PASSWORD) == [tmp_path / "password"]


LOCATIONS = """
[source]
format = "{source_format}"
path = "{folder}/${{env:JOB_SECRET}}/{source_format}"
[record]
value = "CAST(id AS STRING)"
[target]
directory = "{folder}/${{env:JOB_SECRET}}/logs"
topic = "{source_format}"
create_topic = true
"""
TRIGGER = """
[trigger]
kind = "available_now"
checkpoint = "{folder}/${{env:JOB_SECRET}}/checkpoint"
"""


def test_a_secret_in_a_location_is_in_no_plan(tmp_path: Path) -> None:
    secret = "of-nobody's(business)"  # noqa: S105
    write_settings(tmp_path)
    for source_format, line in (("json", '{"id": 7}\n'), ("csv", "id\n7\n")):
        (tmp_path / secret / source_format).mkdir(parents=True)
        (tmp_path / secret / source_format / "rows").write_text(line)
    of_json = LOCATIONS.format(source_format="json", folder=tmp_path)
    of_csv = LOCATIONS.format(source_format="csv", folder=tmp_path) + TRIGGER
    of_csv = of_csv.replace("[record]", "schema = 'id INT'\noptions.header = true\n[record]")
    runs = (
        (of_json, (), 0),
        (of_json, ("--dry-run",), 0),
        (of_csv.format(folder=tmp_path), (), 0),
        (of_json.replace("/json", "/nothing"), (), 3),
    )
    for number, (config, arguments, status) in enumerate(runs):
        assert run_ingest(tmp_path, number, config, secret, arguments) == status
    logs = tmp_path / secret / "logs"
    assert {record.value for record in pylog.scan(logs).records()} == {b"7"}
    told = [path for path in files_with(tmp_path, secret) if path.parent != logs]
    assert [path for path in told if (tmp_path / secret / "checkpoint") not in path.parents] == []
