"""Kafka clients that are not Python's: programs in Go, JavaScript and Java, in ``tests/interop``.

Each is built, or its packages are fetched, for the first test that asks. A machine may lack Go or
Node.js, or have no way to their packages: `ForeignClientNotFoundError` says why.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tests.support.java_source import java_command
from tests.support.kafka_broker_jars import LAST_VERSION_3, NEWEST_VERSION
from tests.support.npm import NpmError, install_once
from tests.support.short_lived_java import SHORT_LIVED

if TYPE_CHECKING:
    from types import TracebackType

    from tests.support.served_clients import Wanted

_SOURCES = Path(__file__).parents[1] / "interop"
_BUILD = Path(__file__).parents[2] / "build"
_BUILD_SECONDS = 400  # sarama and franz-go take a minute on two cores, the first time
_SECONDS = 40.0

GO_CLIENTS = ("franz-go", "sarama")
JAVA_CLIENTS = {f"java-{version}": version for version in (LAST_VERSION_3, NEWEST_VERSION)}
GROUP_CLIENTS = (*GO_CLIENTS, "kafkajs")


class ForeignClientNotFoundError(RuntimeError):
    """A client cannot be run here."""


class ForeignClientError(RuntimeError):
    """What a client says of a partition that it cannot read."""


def reader_command(client: str) -> list[str]:
    """Return the command of a reader.

    Raises
    ------
    ForeignClientNotFoundError
        There is no Go or Node.js, or what the client needs cannot be fetched.
    KafkaNotFoundError
        There is no Java, or Kafka's jars cannot be fetched.
    """
    if client in JAVA_CLIENTS:
        source = _SOURCES / "java" / "PartitionReader.java"
        return java_command(source, SHORT_LIVED, version=JAVA_CLIENTS[client])
    return _command(client, "read")


def member_command(client: str, *arguments: str) -> list[str]:
    """Return the command of a member; the arguments are address, group and topics."""
    return [*_command(client, "member"), *arguments]


def _command(client: str, mode: str) -> list[str]:
    if client in GO_CLIENTS:
        return [str(_go_program()), mode, client]
    node, source = shutil.which("node"), _SOURCES / "js"
    if node is None:
        raise ForeignClientNotFoundError("no node here")
    wanted = json.loads((source / "package.json").read_text("utf-8"))["dependencies"]
    packages = [f"{name}@{version}" for name, version in wanted.items()]
    try:
        modules = install_once(_BUILD / "js" / f"kafkajs-{wanted['kafkajs']}", *packages)
    except NpmError as error:
        raise ForeignClientNotFoundError(str(error)) from error
    # Packages are looked for beside the program, and there they are not.
    return ["/usr/bin/env", f"NODE_PATH={modules}", node, str(source / "clients.js"), mode]


def _go_program() -> Path:
    go = shutil.which("go")
    if go is None:
        raise ForeignClientNotFoundError("no go here")
    directory = _BUILD / "go"
    directory.mkdir(parents=True, exist_ok=True)
    program = directory / "clients"
    command = [go, "build", "-buildvcs=false", "-o", str(program), "."]
    with (directory / ".lock").open("w") as lock:  # tests run in several processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            subprocess.run(
                command,
                check=True,
                capture_output=True,
                text=True,
                timeout=_BUILD_SECONDS,
                stdin=subprocess.DEVNULL,
                cwd=_SOURCES / "go",
            )
        except subprocess.TimeoutExpired as error:
            msg = f"go did not build the clients within {_BUILD_SECONDS} seconds"
            raise ForeignClientNotFoundError(msg) from error
        except subprocess.CalledProcessError as error:
            msg = f"go cannot build the clients: {' '.join(error.stderr.splitlines()[-1:])}"
            raise ForeignClientNotFoundError(msg) from error
    return program


class ForeignReader:
    """A client in another process, which reads one partition after the other.

    One that hangs is killed; the next partition gets a new process.
    """

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def read(
        self, address: str, wanted: Wanted, isolation: str, lines: list[dict[str, Any]]
    ) -> None:
        """Add what the client reads to ``lines``.

        Raises
        ------
        ForeignClientError
            The client says that it cannot read on.
        TimeoutError
            It hung, or ended.
        """
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                env=dict(os.environ),
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        watchdog = threading.Timer(_SECONDS, process.kill)
        watchdog.start()
        try:
            asked = {"address": address, **wanted._asdict()}
            asked["committed"] = isolation == "read_committed"
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
            for text in process.stdout:
                line = json.loads(text)
                if "error" in line:
                    if line["error"]:
                        raise ForeignClientError(line["error"])
                    return
                lines.append(line)
        finally:
            watchdog.cancel()
        self._stop()
        msg = f"{wanted}: the client ended, or did not within {_SECONDS:.0f} s"
        raise TimeoutError(msg)
