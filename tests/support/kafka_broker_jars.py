"""Kafka's server and tools as a class path, fetched once by the Ivy that comes with PySpark.

No Maven and no installed Kafka. Every version has a directory of its own below ``build/kafka``:
Ivy puts what it fetches into one folder, and two versions there would make one class path.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pyspark
import pytest

from pyspark_pylog.errors import JavaNotFoundError
from pyspark_pylog.java_home import find_java_home

if TYPE_CHECKING:
    from collections.abc import Iterator

NEWEST_VERSION = "4.4.0"
VERSION_BEFORE = "4.3.1"
LAST_VERSION_3 = "3.9.2"

KAFKA_SOURCE = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
"""Spark's own, the newest that Maven Central has; it runs in later versions of Spark, too."""

FROM_PYSPARK = "org.apache.hadoop:hadoop-client-api,org.apache.hadoop:hadoop-client-runtime"
"""What `KAFKA_SOURCE` would fetch a second time."""

_BUILD = Path(__file__).parents[2] / "build" / "kafka"
_FETCH_SECONDS = 300
_TRIES = 3
_SECONDS_BETWEEN_TRIES = 10
_MARK = "fetched"

# Spark brings these in versions that fit each other, and they must come first: Ivy leaves out
# scala-library since Spark has it, and after the slf4j that Kafka asks for its log stays silent.
_FROM_SPARK = ("scala-library", "slf4j-api", "log4j-slf4j2-impl", "log4j-core", "log4j-api")


class KafkaNotFoundError(RuntimeError):
    """No Kafka to run: no Java here, or its jars are neither in ``build`` nor to be fetched."""


def give_up_without_kafka(what: str, error: KafkaNotFoundError) -> NoReturn:
    """Fail continuous integration, where ``what`` must have been tried; skip elsewhere."""
    reason = f"{what}: {error}"
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def find_java() -> Path:
    """Return the ``java`` that Kafka runs on.

    Raises
    ------
    KafkaNotFoundError
        There is none of version 17 or newer.
    """
    try:
        return find_java_home() / "bin" / "java"
    except JavaNotFoundError as error:
        raise KafkaNotFoundError(str(error)) from error


def kafka_class_path(version: str) -> str:
    """Return the class path of Kafka's server and tools, fetched at the first call of all.

    Raises
    ------
    KafkaNotFoundError
        They could not be fetched.
    """
    directory = _BUILD / version
    jars = fetch_jars(_packages(version), directory)
    spark_jars = Path(pyspark.__file__).parent / "jars"
    first = [jar for name in _FROM_SPARK for jar in sorted(spark_jars.glob(f"{name}-[0-9]*.jar"))]
    return os.pathsep.join(map(str, [*first, *jars]))


def class_archive(version: str) -> Path:
    """Return where the classes of a broker lie as its JVM maps them, once a broker has stopped."""
    return _BUILD / version / "classes.jsa"


def formatted_storage(version: str) -> Path:
    """Return where lies what the tool writes into an empty log directory, once it has."""
    return _BUILD / version / "formatted"


def fetch_jars(packages: str, directory: Path, *, without: str = "") -> list[Path]:
    """Return the jars of Maven packages below ``build``, fetched at the first call of all.

    Packages in ``without`` are left out, such as those that PySpark has.

    Raises
    ------
    KafkaNotFoundError
        They could not be fetched.
    """
    if not (directory / _MARK).exists():
        with _alone_in(directory):
            if not (directory / _MARK).exists():
                _fetch_in_tries(packages, directory, without)
    return sorted((directory / "jars").glob("*.jar"))


def is_version_3(version: str) -> bool:
    """Tell 3.x, whose tools are part of the server, from what came later."""
    return version.startswith("3.")


def _packages(version: str) -> str:
    names = ["kafka_2.13"] if is_version_3(version) else ["kafka_2.13", "kafka-tools"]
    return ",".join(f"org.apache.kafka:{name}:{version}" for name in names)


@contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Let one process fetch; tests run in several at once, and Ivy fails beside another one."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch_in_tries(packages: str, directory: Path, without: str) -> None:
    for left in reversed(range(_TRIES)):
        try:
            return _fetch(packages, directory, without)
        except KafkaNotFoundError:
            if not left:
                raise
            time.sleep(_SECONDS_BETWEEN_TRIES)  # a repository may be busy for a moment
    return None


def _fetch(packages: str, directory: Path, without: str) -> None:
    """Let an empty program's spark-submit fetch ``packages`` into ``directory/jars``."""
    program = directory / "noop.py"
    program.write_text("")
    command = [
        *(_spark_submit(), "--master", "local[1]"),
        *("--conf", f"spark.jars.ivy={directory}"),
        *("--conf", "spark.ui.enabled=false"),
        *("--packages", packages, "--exclude-packages", without, str(program)),
    ]
    java_home = find_java().parents[1]
    # spark-submit looks for its home with the python3 of the PATH, which need not be ours.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    try:
        subprocess.run(
            command,
            check=True,
            capture_output=True,
            text=True,
            timeout=_FETCH_SECONDS,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PATH": path, "JAVA_HOME": str(java_home)},
        )
    except subprocess.CalledProcessError as error:
        lines = (error.stderr or error.stdout).strip().splitlines()
        msg = f"cannot fetch {packages}: {lines[-1] if lines else error.returncode}"
        raise KafkaNotFoundError(msg) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        msg = f"cannot fetch {packages}: {error}"
        raise KafkaNotFoundError(msg) from error
    (directory / _MARK).touch()  # after all jars: an interrupted fetch is done again


def _spark_submit() -> str:
    beside = Path(sys.executable).parent / "spark-submit"
    found = str(beside) if beside.exists() else shutil.which("spark-submit")
    if found is None:
        msg = "no spark-submit in this environment to fetch Kafka's jars with"
        raise KafkaNotFoundError(msg)
    return found
