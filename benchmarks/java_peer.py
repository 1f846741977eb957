"""Kafka's own Java classes over the same files: ``FileRecords``, one warm JVM a data set.

The jar comes through PySpark's own Ivy (no Maven needed), the classes are compiled by the
``javac`` of this machine. Where either is missing, :func:`java_tools` says why and there are no
Java rows.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.data_sets import Bench, DataSet
from benchmarks.measuring import NotHereError, Run, Tally, ensure_equal
from tests.support.peer_process import PeerProcess

KAFKA_CLIENTS = "org.apache.kafka:kafka-clients:4.3.1"
WARM_UP_REPETITIONS = 5  # before the first that counts, and for
WARM_UP_SECONDS = 4.0  # this long: C2 has the loop by then
HEAP = "1g"
FILE_RECORDS = "FileRecordsPeer"  # main classes, by what they measure
MEMORY_RECORDS = "MemoryRecordsPeer"

_SOURCES = Path(__file__).parent / "java"
_IVY_SECONDS = 300


@dataclass(frozen=True, slots=True)
class JavaTools:
    """What it takes to run the Java peers: class path and the versions to report."""

    class_path: str
    versions: dict[str, str]


def _run(command: list[str], seconds: int = _IVY_SECONDS) -> str:
    """Return what `command` printed, both streams."""
    paths = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    # spark-submit looks for its home with the python3 of the PATH, which need not be ours
    environment = {**os.environ, "PATH": os.pathsep.join(paths)}
    try:
        done = subprocess.run(
            command,
            check=True,
            capture_output=True,
            text=True,
            timeout=seconds,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.CalledProcessError as error:
        lines = (error.stderr or error.stdout).strip().splitlines()
        message = f"{Path(command[0]).name} failed: {lines[-1] if lines else error.returncode}"
        raise NotHereError(message) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotHereError(f"{Path(command[0]).name}: {error}") from error
    return done.stdout + done.stderr


def _spark_submit() -> str:
    """Return the spark-submit of the running environment."""
    beside = Path(sys.executable).parent / "spark-submit"
    found = str(beside) if beside.exists() else shutil.which("spark-submit")
    if found is None:
        raise NotHereError("no spark-submit in this environment to fetch kafka-clients with")
    return found


def _jars(build: Path) -> list[Path]:
    """Return kafka-clients and what it needs, fetched once into ``build/ivy``."""
    jars = build / "ivy" / "jars"
    if not any(jars.glob("*kafka-clients*.jar")):
        program = build / "ivy" / "noop.py"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text("")
        _run(
            [
                _spark_submit(),
                *("--conf", f"spark.jars.ivy={build / 'ivy'}"),
                *("--conf", "spark.ui.enabled=false"),
                *("--packages", KAFKA_CLIENTS),
                str(program),
            ]
        )
    found = sorted(jars.glob("*.jar"))
    if not found:
        raise NotHereError(f"Ivy left no jar under {jars}")
    return found


def java_tools(build: Path) -> JavaTools:
    """Return the compiled peers with their class path, or raise :class:`NotHereError`."""
    if shutil.which("javac") is None or shutil.which("java") is None:
        raise NotHereError("no JDK: javac is not on the PATH")
    jars = _jars(build)
    classes = build / "bench-java"
    classes.mkdir(parents=True, exist_ok=True)
    class_path = os.pathsep.join([str(classes), *map(str, jars)])
    for source in sorted(_SOURCES.glob("*.java")):
        compiled = classes / f"{source.stem}.class"
        if not compiled.exists() or compiled.stat().st_mtime < source.stat().st_mtime:
            _run(["javac", "-cp", class_path, "-d", str(classes), str(source)])
    version = re.search(r'version "([^"]+)"', _run(["java", "-version"]))
    number = version.group(1) if version else "of unknown version"
    package, _, clients = KAFKA_CLIENTS.rpartition(":")
    return JavaTools(class_path, {"Java": number, package: clients})


class Jvm(PeerProcess):
    """One JVM that answers each line with a line of numbers."""

    def __init__(self, tools: JavaTools, main_class: str, arguments: Sequence[str] = ()) -> None:
        command = ["java", f"-Xms{HEAP}", f"-Xmx{HEAP}", "-cp", tools.class_path, main_class]
        # SLF4J says on stderr that it has no logger.
        super().__init__(main_class, [*command, *arguments], is_quiet=True)

    def numbers(self, line: str) -> list[int]:
        """Return the numbers that the JVM answers ``line`` with."""
        return list(map(int, self.ask(line).split()))


def warm_up(repeat: Callable[[], Run]) -> None:
    """Repeat until the JVM has compiled what is measured."""
    done, seconds = 0, 0.0
    while done < WARM_UP_REPETITIONS or seconds < WARM_UP_SECONDS:
        seconds += repeat().seconds
        done += 1


class JavaReader:
    """``FileRecords`` over one data set, repetition by repetition, in one warm JVM."""

    name = "Kafka's Java FileRecords"

    def __init__(self, jvm: Jvm, bench: Bench, data_set: DataSet) -> None:
        self._jvm = jvm
        self._data_set = data_set
        self._log = bench.logs(data_set.name)[0]
        self.records = data_set.records
        self.log_bytes = data_set.log_bytes

    def check(self) -> None:
        """Warm the JVM up, comparing the sums each time."""
        warm_up(self.repeat)

    def repeat(self) -> Run:
        """Read the segment once by the JVM's own clock; the sums must be those written."""
        numbers = self._jvm.numbers(str(self._log.resolve()))
        ensure_equal(self.name, Tally(*numbers[:5]), self._data_set.tally)
        return Run(numbers[5] / 1e9, numbers[6] / 1e9)
