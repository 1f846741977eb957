"""Packages of Node.js, fetched once by ``npm`` into a folder below ``build``."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_FETCH_SECONDS = 300
_TRIES = 3
_SECONDS_BETWEEN_TRIES = 10
_MARK = "fetched"


class NpmError(RuntimeError):
    """There is no ``npm``, or it cannot fetch what it is asked for."""


def install_once(directory: Path, *packages: str) -> Path:
    """Return the ``node_modules`` with packages such as azurite@3.35.0.

    Raises
    ------
    NpmError
        They are not there, and cannot be fetched.
    """
    mark = directory / _MARK
    if not mark.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise NpmError("no npm here")
        directory.mkdir(parents=True, exist_ok=True)
        with (directory / ".lock").open("w") as lock:  # tests run in several processes
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not mark.exists():
                _fetch_in_tries(npm, directory, packages)
                mark.touch()
    return directory / "node_modules"


def _fetch_in_tries(npm: str, directory: Path, packages: tuple[str, ...]) -> None:
    for left in reversed(range(_TRIES)):
        try:
            return _fetch(npm, directory, packages)
        except NpmError:
            if not left:
                raise
            time.sleep(_SECONDS_BETWEEN_TRIES)  # a registry may be busy for a moment
    return None


def _fetch(npm: str, directory: Path, packages: tuple[str, ...]) -> None:
    command = [
        *(npm, "install", "--prefix", str(directory), "--no-audit", "--no-fund"),
        *("--ignore-scripts", *packages),
    ]
    try:
        subprocess.run(
            command,
            check=True,
            capture_output=True,
            text=True,
            timeout=_FETCH_SECONDS,
            stdin=subprocess.DEVNULL,
            cwd=directory,
        )
    except subprocess.TimeoutExpired as error:
        msg = f"npm did not install {' '.join(packages)} within {_FETCH_SECONDS} seconds"
        raise NpmError(msg) from error
    except subprocess.CalledProcessError as error:
        last = (error.stderr or "").strip().splitlines()[-1:]
        msg = f"npm cannot install {' '.join(packages)}: {' '.join(last)}"
        raise NpmError(msg) from error
