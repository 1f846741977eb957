"""A real S3 server program on loopback, and directories in its buckets.

The server is moto's, in a process of its own; what it knows is gone when it ends. It serves ranged
GETs byte by byte as asked, and reads the whole object for each, which is enough for some hundred
megabytes. It takes any credentials unless it is told to check them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pyarrow.fs as pa_fs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from types import TracebackType

ACCESS_KEY_ID = "AKIATESTONLY00000001"
SECRET_ACCESS_KEY = "test/only+secret0000000000000000000000001"  # noqa: S105 - opens nothing
REGION = "us-east-1"
HOST = "127.0.0.1"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": ACCESS_KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY}
STORE_VARIABLES = (
    *CREDENTIALS,
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
)
_START_SECONDS = 60
_PROGRAM = "from moto.server import main; main()"
_RUNNING = re.compile(rf"Running on http://{re.escape(HOST)}:(\d+)")


class S3Server:
    """Moto's server on a free port, from `__enter__` to `__exit__` or `stop`.

    Parameters
    ----------
    checks_credentials
        Whether it refuses every access key it did not issue; it issues none.
    """

    def __init__(self, *, checks_credentials: bool = False) -> None:
        checks = {"INITIAL_NO_AUTH_ACTION_COUNT": "0"} if checks_credentials else {}
        self._environment = {**os.environ, **CREDENTIALS, **checks}
        self._process: subprocess.Popen[str] | None = None
        self.port = 0

    @property
    def endpoint(self) -> str:
        """Host and port."""
        return f"{HOST}:{self.port}"

    def __enter__(self) -> S3Server:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, "-H", HOST, "-p", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._environment,
        )
        watchdog = threading.Timer(_START_SECONDS, self._process.kill)
        watchdog.start()
        try:
            self.port = self._read_port()
        finally:
            watchdog.cancel()
        # It logs every request: a pipe that nobody reads would fill and stop it.
        threading.Thread(target=self._drain, daemon=True).start()
        return self

    def _lines(self) -> Iterator[str]:
        if self._process is None or self._process.stdout is None:
            raise RuntimeError("the S3 server is not running")
        return iter(self._process.stdout)

    def _read_port(self) -> int:
        said = []
        for line in self._lines():
            if found := _RUNNING.search(line):
                return int(found[1])
            said.append(line)
        raise RuntimeError(f"the S3 server did not start: {''.join(said)}")

    def _drain(self) -> None:
        for _ in self._lines():
            pass

    def stop(self) -> None:
        """End the process; a second call does nothing."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
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


class Bucket:
    """A bucket of a running server, made if it is missing; written past what is under test."""

    def __init__(self, server: S3Server, name: str) -> None:
        self.name = name
        self.endpoint = server.endpoint
        self._store = pa_fs.S3FileSystem(
            access_key=ACCESS_KEY_ID,
            secret_key=SECRET_ACCESS_KEY,
            endpoint_override=server.endpoint,
            scheme="http",
            region=REGION,
            allow_bucket_creation=True,
        )
        self._store.create_dir(name)

    def write(self, key: str, content: bytes) -> None:
        """Make or replace an object."""
        with self._store.open_output_stream(f"{self.name}/{key}") as stream:
            stream.write(content)

    def remove(self, key: str) -> None:
        """Delete an object."""
        self._store.delete_file(f"{self.name}/{key}")

    def upload(self, directory: Path, prefix: str) -> None:
        """Copy the files below a directory; empty directories do not exist in a store."""
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                self.write(f"{prefix}/{path.relative_to(directory).as_posix()}", path.read_bytes())

    def uri(self, key: str, *, endpoint: str = "", user_info: str = "") -> str:
        """Return the URI of a directory or file, with what leads to the server."""
        at = f"{user_info}@" if user_info else ""
        query = f"endpoint_override={endpoint or self.endpoint}&scheme=http&region={REGION}"
        return f"s3://{at}{self.name}/{key}?{query}"


def without_store_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which no credentials and no endpoint are named."""
    return {name: text for name, text in environment.items() if name not in STORE_VARIABLES}
