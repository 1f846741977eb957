"""Azurite, Microsoft's emulator of Azure's blob protocol: a program for Node.js, fetched once.

It is the program that the environment variable ``AZURITE`` names, else ``azurite-blob`` on the
``PATH``, else what ``npm`` has installed below ``build/azurite`` for the first test that asked. A
machine that has nothing but Python has no ``npm``, and the tests say so.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
from pathlib import Path

VERSION = "3.35.0"
_BUILD = Path(__file__).parents[2] / "build" / "azurite"
_FETCH_SECONDS = 300
_TRIES = 3
_SECONDS_BETWEEN_TRIES = 10


class AzuriteNotFoundError(RuntimeError):
    """No Azurite to run: neither installed, nor to be fetched."""


def find_azurite(build: Path = _BUILD) -> Path:
    """Return the program, fetched into ``build`` at the first call of all.

    Raises
    ------
    AzuriteNotFoundError
        It is nowhere, and there is no ``npm`` or ``npm`` cannot fetch it.
    """
    if given := os.environ.get("AZURITE") or shutil.which("azurite-blob"):
        return Path(given)
    directory = build / VERSION
    program = directory / "node_modules" / ".bin" / "azurite-blob"
    mark = directory / "fetched"
    if not mark.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise AzuriteNotFoundError(
                "no npm here to fetch Azurite with, and AZURITE names no program of its kind"
            )
        directory.mkdir(parents=True, exist_ok=True)
        with (directory / ".lock").open("w") as lock:  # tests run in several processes
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not mark.exists():
                _fetch_in_tries(npm, directory)
                mark.touch()
    return program


def _fetch_in_tries(npm: str, directory: Path) -> None:
    for left in reversed(range(_TRIES)):
        try:
            return _fetch(npm, directory)
        except AzuriteNotFoundError:
            if not left:
                raise
            time.sleep(_SECONDS_BETWEEN_TRIES)  # a registry may be busy for a moment
    return None


def _fetch(npm: str, directory: Path) -> None:
    command = [
        *(npm, "install", "--prefix", str(directory), "--no-audit", "--no-fund"),
        *("--ignore-scripts", f"azurite@{VERSION}"),
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
        msg = f"npm did not install azurite within {_FETCH_SECONDS} seconds"
        raise AzuriteNotFoundError(msg) from error
    except subprocess.CalledProcessError as error:
        last = (error.stderr or "").strip().splitlines()[-1:]
        msg = f"npm cannot install azurite@{VERSION}: {' '.join(last)}"
        raise AzuriteNotFoundError(msg) from error
