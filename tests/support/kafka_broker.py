"""A real Kafka broker: one process on the loopback interface, KRaft, no replication.

``start``, ``stop`` and ``kill`` may follow each other on the same directories, and these may be
changed between a stop and a start::

    with KafkaBroker(tmp_path, properties={"log.cleaner.backoff.ms": "50"}) as broker:
        broker.create_topic("orders", partitions=2)
        broker.stop()
        ...  # put other partition directories in place of the broker's
        broker.start()
        records = broker.consume("orders")
"""

from __future__ import annotations

import atexit
import base64
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tests.support.kafka_broker_clients import BrokerClients
from tests.support.kafka_broker_jars import (
    NEWEST_VERSION,
    class_archive,
    find_java,
    formatted_storage,
    kafka_class_path,
)
from tests.support.short_lived_java import SHORT_LIVED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"

_JAVA_OPTIONS = ("-Xmx300m", *SHORT_LIVED)
_START_SECONDS = 90.0
_STOP_SECONDS = 60.0
_FORMAT_SECONDS = 90.0
_STARTED = "Kafka Server started"
_POLL_SECONDS = 0.05
_LOG_LINES_SHOWN = 30

_LOG4J2 = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
"""

# One broker and small machines: no replicas, few partitions of internal topics, few threads, a
# small map for the cleaner (by default 128 MB of the heap), no waiting for other consumers.
_PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "auto.create.topics.enable": "false",
    "num.network.threads": "2",
    "num.io.threads": "2",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    # The first look for segments to delete or clean is due 30 s after the start by default.
    "log.initial.task.delay.ms": "100",
}


_DECIDE_THE_FORMAT = {
    *("log.dirs", "metadata.log.dir", "node.id", "process.roles"),
    *("controller.quorum.voters", "controller.quorum.bootstrap.servers"),
    *("unstable.api.versions.enable", "unstable.feature.versions.enable"),
}
"""Properties by which one formatted log directory differs from another, apart from its ids."""


class BrokerFailedError(RuntimeError):
    """The broker did not start, or did not stop, as it should."""


class KafkaBroker(BrokerClients):
    """One broker on directories of its own; ends its process when left, whatever happened.

    Invariant: at most one process runs, and it leads a process group. One thread starts and stops;
    clients may be used by any.

    Parameters
    ----------
    directory
        Gets the broker's configuration, its output and, by default, its log directory.
    version
        Of Kafka.
    log_dir
        Where partitions lie, and ``__cluster_metadata-0``; ``directory/logs`` by default.
    properties
        Server properties on top of, or instead of, those for a small broker.
    java_options
        Of the broker's JVM and of its tools; by default those for a short life.
    user
        Id of the user, and the group, that the broker runs as; only root can start it as another.
    ports
        For clients, and for controllers; others at each start by default.
    format_options
        More options of the tool that formats the log directory.

    Attributes
    ----------
    is_to_be_formatted
        Whether a log directory without ``meta.properties`` is formatted before a start.
    """

    def __init__(
        self,
        directory: Path,
        *,
        version: str = NEWEST_VERSION,
        log_dir: Path | None = None,
        properties: Mapping[str, str] | None = None,
        java_options: Sequence[str] = _JAVA_OPTIONS,
        user: int | None = None,
        ports: tuple[int, int] | None = None,
        format_options: Sequence[str] = (),
    ) -> None:
        self._format_options = tuple(format_options)
        self.version = version
        self.directory = directory
        self.log_dir = log_dir if log_dir is not None else directory / "logs"
        self.cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._own_properties = dict(properties or {})
        self._java_options = tuple(java_options)
        self._as_user: tuple[str, ...] = ()
        if user is not None:
            self._as_user = ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups")
        self._java = find_java()
        self._class_path = kafka_class_path(version)
        self._class_archive = class_archive(version)
        self._process: subprocess.Popen[bytes] | None = None
        self._output_start = 0
        self.ports = ports
        self._port = 0
        self.is_to_be_formatted = True
        directory.mkdir(parents=True, exist_ok=True)
        self.log_dir.mkdir(parents=True, exist_ok=True)
        (directory / "log4j2.properties").write_text(_LOG4J2)
        self._output.touch()

    def __enter__(self) -> Self:
        if not self.is_running:
            self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def is_running(self) -> bool:
        """Whether there is a process that has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def process_id(self) -> int:
        """Of the process that was started last."""
        assert self._process is not None
        return self._process.pid

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect; another port after each start."""
        return f"127.0.0.1:{self._port}"

    @property
    def log_dirs(self) -> list[Path]:
        """All of them, where the properties name several."""
        named = self._own_properties.get("log.dirs", str(self.log_dir))
        return [Path(each) for each in named.split(",")]

    @property
    def server_log(self) -> str:
        """What the broker has logged since it was started last."""
        with self._output.open("rb") as file:
            file.seek(self._output_start)
            return file.read().decode(errors="replace")

    @property
    def was_stopped_cleanly(self) -> bool:
        """Whether the log directory carries the mark of a clean shutdown."""
        return (self.log_dir / CLEAN_SHUTDOWN_FILE).exists()

    def partition_directory(self, topic: str, partition: int = 0) -> Path:
        """Return where the broker keeps a partition."""
        return self.log_dir / f"{topic}-{partition}"

    def start(self) -> None:
        """Start the broker, on formatted storage, and wait until it serves clients.

        Raises
        ------
        BrokerFailedError
            It did not come up; the message ends with what it logged last.
        """
        if self.is_running:
            msg = "the broker runs already"
            raise BrokerFailedError(msg)
        self._write_server_properties()
        if self.is_to_be_formatted:
            self.format()
        self._output_start = self._output.stat().st_size
        with self._output.open("ab") as output:
            process = subprocess.Popen(
                self._command("kafka.Kafka", str(self._server_properties), archives=True),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                start_new_session=True,  # a Ctrl-C for the tests is not one for the broker
            )
        self._process = process
        atexit.register(self.kill)
        with ExitStack() as on_failure:
            on_failure.callback(self.kill)
            self._wait_until_started(process)
            on_failure.pop_all()

    def stop(self) -> None:
        """End the broker as an operator does, and wait for it.

        Raises
        ------
        BrokerFailedError
            It had ended before, did not end in time, or ended with an error.
        """
        if self._process is None or self._process.poll() is not None:
            raise BrokerFailedError(self._with_end_of_log("the broker does not run"))
        self.close_clients()
        self._process.send_signal(signal.SIGTERM)
        try:
            status = self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired as error:
            self.kill()
            msg = f"the broker was told to stop {_STOP_SECONDS:.0f} s ago"
            raise BrokerFailedError(self._with_end_of_log(msg)) from error
        if status not in (0, 128 + signal.SIGTERM, -signal.SIGTERM):  # a JVM ends with 143
            raise BrokerFailedError(
                self._with_end_of_log(f"the broker stopped with status {status}")
            )
        if self._new_archive.exists():
            self._new_archive.replace(self._class_archive)

    def kill(self) -> None:
        """End the broker at once (SIGKILL), and whatever it started; nothing if none runs."""
        self.close_clients()
        atexit.unregister(self.kill)
        if self._process is None or self._process.poll() is not None:
            return
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    @property
    def _output(self) -> Path:
        return self.directory / "server.log"

    @property
    def _server_properties(self) -> Path:
        return self.directory / "server.properties"

    def _write_server_properties(self) -> None:
        self._port, controller_port = self.ports or free_ports(2)
        properties = {
            **_PROPERTIES,
            "listeners": f"PLAINTEXT://127.0.0.1:{self._port},"
            f"CONTROLLER://127.0.0.1:{controller_port}",
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "log.dirs": str(self.log_dir),
            **self._own_properties,
        }
        lines = [f"{name}={value}\n" for name, value in properties.items()]
        self._server_properties.write_text("".join(lines))

    def format(self) -> None:
        """Format the log directory as an operator does, unless it was formatted before."""
        if (self.log_dir / "meta.properties").exists():
            return
        if not self._server_properties.exists():
            self._write_server_properties()
        formatted = formatted_storage(self.version)
        is_like_others = not (
            self._format_options
            or self._as_user
            or _DECIDE_THE_FORMAT & self._own_properties.keys()
            or any(self.log_dir.iterdir())
        )
        if is_like_others and formatted.exists():
            self._copy(formatted)
            return
        command = self._command("kafka.tools.StorageTool", "format")
        # With an equals sign: one id of 64 begins with a hyphen.
        command += [f"--cluster-id={self.cluster_id}", f"--config={self._server_properties}"]
        command += self._format_options
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=_FORMAT_SECONDS
        )
        if done.returncode:
            msg = f"the storage was not formatted: {done.stdout}{done.stderr}"
            raise BrokerFailedError(msg)
        if is_like_others:
            new = formatted.with_suffix(f".{os.getpid()}-{self._port}")
            shutil.copytree(self.log_dir, new)
            try:
                new.rename(formatted)
            except OSError:  # another process was first
                shutil.rmtree(new)

    def _copy(self, formatted: Path) -> None:
        """Take what the tool has written for another node, with ids of this one: a JVM less."""
        shutil.copytree(formatted, self.log_dir, dirs_exist_ok=True)
        path = self.log_dir / "meta.properties"
        text = path.read_text()
        for name, own in (
            ("cluster.id", self.cluster_id),
            ("directory.id", random_directory_id()),
        ):
            text, count = re.subn(rf"^{name}=.*$", f"{name}={own}", text, flags=re.MULTILINE)
            assert count == 1, text
        path.write_text(text)

    @property
    def _new_archive(self) -> Path:
        return self._class_archive.with_suffix(f".{os.getpid()}-{self._port}")

    def _shared_classes(self, *, archives: bool) -> list[str]:
        """Let a JVM map the classes that an earlier broker has loaded: half of its start."""
        quiet = ["-Xlog:disable", "-Xlog:all=error:stderr"]
        if self._class_archive.exists():
            return [f"-XX:SharedArchiveFile={self._class_archive}", *quiet]
        if not archives or self._as_user:
            return []
        return [f"-XX:ArchiveClassesAtExit={self._new_archive}", *quiet]

    def _command(self, main_class: str, *arguments: str, archives: bool = False) -> list[str]:
        return [
            *self._as_user,
            str(self._java),
            *self._java_options,
            *self._shared_classes(archives=archives),
            f"-Dlog4j2.configurationFile={self.directory / 'log4j2.properties'}",
            *("-cp", self._class_path, main_class, *arguments),
        ]

    def _wait_until_started(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while _STARTED not in self.server_log:
            if process.poll() is not None:
                msg = f"the broker ended with status {process.returncode} instead of starting"
                raise BrokerFailedError(self._with_end_of_log(msg))
            if time.monotonic() > deadline:
                msg = f"the broker has not started within {_START_SECONDS:.0f} s"
                raise BrokerFailedError(self._with_end_of_log(msg))
            time.sleep(_POLL_SECONDS)

    def _with_end_of_log(self, what: str) -> str:
        lines = self.server_log.splitlines()[-_LOG_LINES_SHOWN:]
        return "\n".join([f"{what}; its log ends:", *lines])


def random_directory_id() -> str:
    """Return a directory id; Kafka makes none that begins with a hyphen."""
    return "A" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")[1:]


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listened to a moment ago."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
