"""A server program on loopback, in a process of its own, from `__enter__` to `stop`."""

from __future__ import annotations

import re
import socket
import subprocess
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Self

HOST = "127.0.0.1"
_START_SECONDS = 60


def free_port() -> int:
    """Return a port that nobody listened on just now."""
    with socket.create_server((HOST, 0)) as server:
        return int(server.getsockname()[1])


class ServerProgram:
    """A program that says on its output when it listens; what it says afterwards is kept.

    Parameters
    ----------
    name
        What it is called in errors.
    command, environment
        What is run, and all of its environment.
    says
        A regular expression of the line that says it listens, with the port as its group.
    """

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], says: str
    ) -> None:
        self._name = name
        self._command = command
        self._environment = environment
        self._says = re.compile(says)
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._lines: list[str] = []
        self.port = 0

    @property
    def endpoint(self) -> str:
        """Host and port."""
        return f"{HOST}:{self.port}"

    @property
    def lines(self) -> list[str]:
        """What it has said since it listens; most programs log their requests."""
        return list(self._lines)

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=dict(self._environment),
        )
        watchdog = threading.Timer(_START_SECONDS, self._process.kill)
        watchdog.start()
        try:
            self.port = self._read_port()
        finally:
            watchdog.cancel()
        # A pipe that nobody reads would fill and stop it.
        self._reader = threading.Thread(target=self._keep_lines, daemon=True)
        self._reader.start()
        return self

    def _output(self) -> Iterator[str]:
        if self._process is None or self._process.stdout is None:
            raise RuntimeError(f"{self._name} is not running")
        return iter(self._process.stdout)

    def _read_port(self) -> int:
        said = []
        for line in self._output():
            if found := self._says.search(line):
                return int(found[1])
            said.append(line)
        raise RuntimeError(f"{self._name} did not start: {''.join(said)}")

    def _keep_lines(self) -> None:
        for line in self._output():
            self._lines.append(line)

    def stop(self) -> None:
        """End the process; a second call does nothing."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._reader is not None:
                # It reads to the end of the pipe, which must not be closed beside it.
                self._reader.join()
                self._reader = None
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
