"""A PostgreSQL server for tests, with a password: Debian's, started as a user of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PASSWORD = "correct-horse-battery"  # noqa: S105 - of a server that lives as long as a test
_START_SECONDS = 60


class PostgresServer:
    """A server that runs."""

    def __init__(self, programs: Path, port: int) -> None:
        self._programs = programs
        self.port = port

    @property
    def url(self) -> str:
        """The JDBC URL of its database."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    def execute(self, sql: str) -> str:
        """Run statements in one transaction; return what psql prints of the last one."""
        done = subprocess.run(
            [
                *(self._programs / "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-1"),
                *("-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-c", sql),
            ],
            env={**os.environ, "PGPASSWORD": PASSWORD},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def _programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    if on_path is None:
        pytest.skip("no PostgreSQL server is installed")
    return Path(on_path).parent


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Give a server, which is gone afterwards; skip the test where none is installed."""
    programs = _programs()
    # It refuses to run as root, and its files have to be its own.
    user = "postgres" if os.getuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="pylog-postgres-") as name:
        root = Path(name)
        if user is not None:
            os.chown(root, pwd.getpwnam(user).pw_uid, -1)
        password = root / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        data = root / "data"
        subprocess.run(
            [
                *(programs / "initdb", "-D", data, "-U", "postgres", "--no-sync"),
                *("--auth=scram-sha-256", f"--pwfile={password}"),
            ],
            check=True,
            capture_output=True,
            user=user,
            cwd=root,
        )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with (root / "log").open("wb") as log:
            process = subprocess.Popen(
                [
                    *(programs / "postgres", "-D", data, "-p", str(port), "-k", root),
                    *("-c", "fsync=off", "-c", "listen_addresses=127.0.0.1"),
                ],
                user=user,
                cwd=root,
                stdout=log,
                stderr=log,
            )
        try:
            _wait_for(programs / "pg_isready", port, process)
            yield PostgresServer(programs, port)
        finally:
            process.terminate()
            process.wait(60)


def _wait_for(is_ready: Path, port: int, process: subprocess.Popen[bytes]) -> None:
    # It listens before it answers.
    command = [str(is_ready), "-q", "-h", "127.0.0.1", "-p", str(port)]
    for _ in range(_START_SECONDS * 10):
        assert process.poll() is None, "PostgreSQL has ended"
        if subprocess.run(command, check=False).returncode == 0:
            return
        time.sleep(0.1)
    pytest.fail(f"PostgreSQL does not answer within {_START_SECONDS} s")
