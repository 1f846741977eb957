"""A real standalone cluster of Spark on loopback: a master and its workers, each a process.

pyspark ships the classes; nothing else has to be installed.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from pyspark_pylog.java_home import find_java_home
from tests.support.short_lived_java import SHORT_LIVED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import TracebackType

_HOST = "127.0.0.1"
_SPARK_HOME = Path(pyspark.__file__).parent
_MASTER_STARTED = re.compile(r"Starting Spark master at (spark://\S+)")
_WORKER_REGISTERED = re.compile(r"Registering worker ")
_SECONDS_TO_STOP = 10
# What this process has set for a Python of its own must not choose that of the cluster.
_NOT_INHERITED = ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_MASTER")


class ClusterStartError(RuntimeError):
    """The master or a worker did not start; the text has the end of its log."""


class StandaloneCluster:
    """A master and workers, running while the ``with`` block does.

    Each process has a process group of its own, which is ended as a whole: what a worker started
    (executors, and by their end Python workers) goes with it. That holds for every way out of the
    block, errors, Ctrl-C and `SystemExit` included. A signal that ends this process at once leaves
    the cluster running: SIGKILL, and SIGTERM unless there is a handler.

    Parameters
    ----------
    directory
        Where logs and the work directories of the workers go; made if it is not there.
    configuration
        Directory with ``spark-defaults.conf`` and ``log4j2.properties`` for all processes. Master
        and worker must log at level INFO: that is how their start is noticed.
    workers, cores, memory
        How many workers, and the cores and the memory that each offers.
    start_timeout
        Seconds until all workers must have registered.
    home
        ``SPARK_HOME`` of all processes; by default that of the installed pyspark.

    Attributes
    ----------
    master_url
        ``spark://127.0.0.1:port``, the port being one that was free.
    """

    def __init__(
        self,
        directory: Path,
        *,
        configuration: Path,
        workers: int = 2,
        cores: int = 1,
        memory: str = "1g",
        start_timeout: float = 120,
        home: Path = _SPARK_HOME,
    ) -> None:
        self._directory = directory
        self._configuration = configuration
        self._workers = workers
        self._offer = ("--cores", str(cores), "--memory", memory)
        self._start_timeout = start_timeout
        self._home = home
        self._processes = ExitStack()
        self.master_url = ""

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variables of master, workers and drivers."""
        inherited = {
            name: value for name, value in os.environ.items() if name not in _NOT_INHERITED
        }
        return {
            **inherited,
            "JAVA_HOME": str(find_java_home()),
            "SPARK_HOME": str(self._home),
            "SPARK_CONF_DIR": str(self._configuration),
            "SPARK_LOCAL_IP": _HOST,
        }

    def __enter__(self) -> StandaloneCluster:
        self._directory.mkdir(parents=True, exist_ok=True)
        with ExitStack() as processes:  # which ends what has been started if a later one fails
            self._processes = processes
            deadline = time.monotonic() + self._start_timeout
            master = self._start("master", "master.Master")
            self.master_url = self._wait_for(_MASTER_STARTED, 1, {"master": master}, deadline)
            daemons = {"master": master}
            for number in range(self._workers):
                name = f"worker-{number}"
                daemons[name] = self._start(
                    name,
                    "worker.Worker",
                    *self._offer,
                    *("--work-dir", str(self._directory / name)),
                    self.master_url,
                )
            self._wait_for(_WORKER_REGISTERED, self._workers, daemons, deadline)
            self._processes = processes.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._processes.close()

    def submit(
        self,
        script: Path,
        arguments: Sequence[str] = (),
        *,
        python: Path,
        options: Sequence[str] = (),
    ) -> subprocess.CompletedProcess[str]:
        """Run ``spark-submit`` with a script; return its output when it has ended.

        Parameters
        ----------
        script, arguments
            A Python file and what it gets as ``sys.argv[1:]``.
        python
            Of driver and Python workers.
        options
            Of ``spark-submit``, such as ``--py-files``.
        """
        command = [
            str(self._home / "bin" / "spark-submit"),
            *("--master", self.master_url, *options),
            *(str(script), *arguments),
        ]
        with _process_group(
            command,
            env={**self.environment, "PYSPARK_PYTHON": str(python)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            stdout, stderr = process.communicate()
        return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)

    def log(self, name: str) -> str:
        """Return what "master", "worker-0", … has logged so far."""
        return self._log_file(name).read_text(encoding="utf-8", errors="replace")

    def _log_file(self, name: str) -> Path:
        return self._directory / f"{name}.log"

    def _start(self, name: str, class_name: str, *arguments: str) -> subprocess.Popen[str]:
        command = [
            str(self._home / "bin" / "spark-class"),
            f"org.apache.spark.deploy.{class_name}",
            *("--host", _HOST, "--port", "0", "--webui-port", "0"),
            *arguments,
        ]
        with self._log_file(name).open("wb") as log:
            return self._processes.enter_context(
                _process_group(
                    command,
                    # Executors have the environment of their worker.
                    env={**self.environment, "JDK_JAVA_OPTIONS": " ".join(SHORT_LIVED)},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            )

    def _wait_for(
        self,
        line: re.Pattern[str],
        times: int,
        daemons: Mapping[str, subprocess.Popen[str]],
        deadline: float,
    ) -> str:
        """Wait until the master has logged a line; return what its group, or all of it, matched."""
        while len(found := line.findall(self.log("master"))) < times:
            for name, process in daemons.items():
                if process.poll() is not None:
                    self._fail(name, f"ended with status {process.returncode}")
            if time.monotonic() > deadline:
                self._fail("master", f"logged {line.pattern!r} {len(found)} times, not {times}")
            time.sleep(0.1)
        return str(found[0])

    def _fail(self, name: str, what: str) -> None:
        end = "\n".join(self.log(name).splitlines()[-20:])
        msg = f"{name} of the cluster {what}; the end of {self._log_file(name)}:\n{end}"
        raise ClusterStartError(msg)


@contextmanager
def _process_group(command: Sequence[str], **options: object) -> Iterator[subprocess.Popen[str]]:
    """Start a process in a group of its own; end the group when the block ends."""
    process: subprocess.Popen[str] = subprocess.Popen(command, start_new_session=True, **options)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        _signal_group(process, signal.SIGTERM)
        try:
            process.wait(_SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            pass
        finally:
            _signal_group(process, signal.SIGKILL)  # also what outlived the first of the group
            process.wait()


def _signal_group(process: subprocess.Popen[str], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # all of them have ended
        os.killpg(process.pid, number)
