"""In a virtual environment that is not activated, whose ``bin`` is not on PATH.

As in an IDE, in cron, and in a Jupyter kernel.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition
from tests.support.spark_session import NEEDS_SPARK, SPARK_CONF, require_java

pytestmark = NEEDS_SPARK


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Give the Python of an environment that has pylog and what it needs, by a .pth file."""
    directory = tmp_path_factory.mktemp("environment")
    venv.create(directory, with_pip=False, symlinks=True)
    [packages] = directory.glob("lib/python*/site-packages")

    sources = [each for each in sys.path if any(Path(each or ".").glob("p*log*/__init__.py"))]
    others = sysconfig.get_path("purelib")
    lines = [*sources, f"import site; site.addsitedir({others!r})"]
    (packages / "pylog.pth").write_text("\n".join(lines) + "\n", "utf-8")
    return str(directory / "bin" / "python")


@pytest.fixture
def surroundings(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Give environment variables with another ``python3`` on PATH, which has no package."""
    java_home = require_java()
    bare = tmp_path_factory.mktemp("bare")
    venv.create(bare, with_pip=False, symlinks=True)
    write_partition(tmp_path / "logs", {0: [batch_v2([Stored(0, 0, None, b"v")])]})
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PY")}
    return {
        **kept,
        "PATH": f"{bare / 'bin'}:/usr/bin:/bin",
        "JAVA_HOME": str(java_home),
        "SPARK_CONF_DIR": str(SPARK_CONF),
    }


def run(python: str, script: str, logs: Path, surroundings: dict[str, str]) -> list[str]:
    """Return the lines that a script prints, run as a user would."""
    done = subprocess.run(
        [python, "-c", script, str(logs)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=surroundings,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


_AT_ONCE = """
import sys
import pyspark_pylog
spark = pyspark_pylog.session()
print(spark.read.format("pylog").load(sys.argv[1]).count(), "rows")
print(spark.sparkContext.pythonExec)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("driver_python", [None, "jupyter"])
def test_a_session_of_ours_finds_the_source(
    python: str, tmp_path: Path, surroundings: dict[str, str], driver_python: str | None
) -> None:
    if driver_python is not None:  # with which Spark looks for data sources
        surroundings["PYSPARK_DRIVER_PYTHON"] = driver_python
    assert run(python, _AT_ONCE, tmp_path / "logs", surroundings) == ["1 rows", python]


_TOO_LATE = """
import sys
from pyspark.sql import SparkSession
import pyspark_pylog
from pyspark_pylog.errors import WorkerPythonError
spark = SparkSession.builder.getOrCreate()
try:
    pyspark_pylog.table(spark, sys.argv[1]).where("offset < 9").count()
except WorkerPythonError as error:
    print(error)
spark.stop()
spark = pyspark_pylog.session()
print(spark.read.format("pylog").load(sys.argv[1]).count(), "rows")
print(pyspark_pylog.table(spark, sys.argv[1]).where("offset < 9").count(), "rows")
"""


def test_table_says_what_to_set_and_that_helps(
    python: str, tmp_path: Path, surroundings: dict[str, str]
) -> None:
    bare = f"{surroundings['PATH'].partition(':')[0]}/python3"
    assert run(python, _TOO_LATE, tmp_path / "logs", surroundings) == [
        (
            f"Spark's Python workers run 'python3' ({bare}), which has no module 'pyspark_pylog'; "
            f"stop() this session and set environment variable PYSPARK_PYTHON to {python!r} before "
            "Spark starts again, or start it by pyspark_pylog.session(), which does so where the "
            "variable is not set"
        ),
        "1 rows",
        "1 rows",
    ]
