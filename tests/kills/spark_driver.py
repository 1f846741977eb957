"""A Spark driver that writes what it is asked for, and may be killed: ``python -m … MASTER``.

Lines come in as JSON, see `Write`; ``answer`` and an error, or nothing, goes out for each.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from pylog_jobs.session import spark_session
from tests.kills.jobs import BATCH_SIZE_BYTES, PARTITION_OF_ROW, TOPIC, row_count
from tests.kills.kill_point import kill_session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from pyspark.sql import DataFrame, SparkSession

LOCAL = "local[2]"

PROJECT = Path(__file__).parents[2]
SPARK_CONF = PROJECT / "spark-conf"
_ANSWER = "answer"
_START_SECONDS = 300
_POLL_SECONDS = 0.3
_SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}


@dataclass(frozen=True, slots=True)
class Write:
    """What a driver is to write.

    Attributes
    ----------
    directory
        The log directory.
    number
        Of the job.
    query
        Where a stream has its files and its checkpoint; None for a batch job.
    kill
        A `KillPoint` as JSON; None to write by ``format("pylog")`` itself.
    files_per_trigger
        How many files a micro-batch of a stream has; None for all that are there.
    """

    directory: str
    number: int
    query: str | None = None
    kill: str | None = None
    files_per_trigger: int | None = None


class Driver:
    """The process of a driver, in a session of its own.

    Parameters
    ----------
    master
        Of Spark.
    log
        Gets what Spark prints.
    home
        ``SPARK_HOME``.
    configuration
        Directory with ``spark-defaults.conf``.
    module
        What runs in the process: answers each line as this module does.
    variables
        More of its environment.
    """

    def __init__(
        self,
        master: str,
        log: Path,
        *,
        home: Path,
        configuration: Path = SPARK_CONF,
        module: str = __name__,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.log = log
        paths = [str(PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])]
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, master],
                cwd=PROJECT,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(paths),
                    "PYSPARK_PYTHON": sys.executable,
                    "SPARK_HOME": str(home),
                    "SPARK_CONF_DIR": str(configuration),
                    "SPARK_LOCAL_IP": "127.0.0.1",
                    **(variables or {}),
                },
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,
            )
        self._is_ready = False
        self._has_ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def kill(self) -> None:
        """Kill it, and all that it has started."""
        if not self._has_ended:  # else its number may by now be another process's
            kill_session(self._process.pid)

    def end(self) -> int:
        """Kill what is left of it; return its exit status."""
        if self._has_ended:
            return self._process.wait()
        self.kill()
        self._has_ended = True
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        return self._process.wait()

    def stop(self) -> None:
        """Let it end as drivers do."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)
        self.end()

    def write(self, write: Write, look: Callable[[], object] = lambda: None) -> str | None:
        """Return the error of a write, as of `ask`."""
        return self.ask(asdict(write), look)

    def ask(
        self, request: Mapping[str, object], look: Callable[[], object] = lambda: None
    ) -> str | None:
        """Return the error of a request, empty if there is none; None of a driver that died.

        Parameters
        ----------
        request
            What to do.
        look
            Called all the time while the driver is at it.
        """
        if not self._is_ready:
            assert self._answer() == "", self.log.read_text("utf-8", "replace")[-4_000:]
            self._is_ready = True
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        return self._answer(look)

    def _answer(self, look: Callable[[], object] = lambda: None) -> str | None:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while True:
                for _ in range(round(_START_SECONDS / _POLL_SECONDS)):
                    if selector.select(_POLL_SECONDS):
                        break
                    look()
                else:
                    msg = f"no answer for {_START_SECONDS} s: {self.log.read_text()[-4_000:]}"
                    raise TimeoutError(msg)
                line = self._process.stdout.readline().decode()
                if not line:
                    return None
                if line.startswith(_ANSWER):
                    return str(json.loads(line.removeprefix(_ANSWER)))


def _rows(spark: SparkSession, write: Write) -> DataFrame:
    if write.query is None:
        frame = spark.range(row_count(write.number), numPartitions=2).selectExpr(
            f"format_string('job %05d row %05d %s', {write.number}, id, repeat('x', 40)) value",
        )
    else:
        reader = spark.readStream.format("text").option("pathGlobFilter", "*.txt")
        if write.files_per_trigger is not None:
            reader = reader.option("maxFilesPerTrigger", write.files_per_trigger)
        frame = reader.load(f"{write.query}/input")
    row = PARTITION_OF_ROW.replace("row", "cast(substring(value, 15, 5) as int)")
    return frame.selectExpr("value", f"{row} partition")


def _write(spark: SparkSession, write: Write) -> None:
    from tests.kills.deadly_source import FORMAT  # noqa: PLC0415 - registered when Spark runs

    frame = _rows(spark, write)
    options = {"topic": TOPIC, "batchSizeBytes": str(BATCH_SIZE_BYTES)}
    format_name = "pylog"
    if write.kill is not None:
        format_name = FORMAT
        options["kill"] = write.kill
    if write.query is None:
        options["jobId"] = f"job {write.number}"
        writer = frame.write.format(format_name).mode("append")
        writer.options(**options).save(write.directory)
    else:
        stream = frame.writeStream.format(format_name).options(**options)
        stream = stream.option("checkpointLocation", f"{write.query}/checkpoint")
        query = stream.trigger(availableNow=True).start(write.directory)
        query.awaitTermination()


def _serve(master: str) -> None:
    from tests.kills.deadly_source import DeadlyDataSource  # noqa: PLC0415

    # Executors of a cluster have the environment of their worker, which knows nothing of the tests.
    settings = {**_SETTINGS, "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"]}
    spark = spark_session("kills", master=master, settings=settings)
    spark.dataSource.register(DeadlyDataSource)
    say("")
    while line := sys.stdin.readline():
        try:
            _write(spark, Write(**json.loads(line)))
            say("")
        except (PySparkException, Py4JError) as error:  # the latter: a committing process died
            say(str(error) or type(error).__name__)
    spark.stop()


def say(error: str) -> None:
    """Answer a request."""
    sys.stdout.write(f"{_ANSWER}{json.dumps(error)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _serve(sys.argv[1])
