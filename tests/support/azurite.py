"""Azurite, Microsoft's emulator of Azure's blob protocol: a program for Node.js, fetched once.

It is the program that the environment variable ``AZURITE`` names, else ``azurite-blob`` on the
``PATH``, else what ``npm`` has installed below ``build/azurite`` for the first test that asked. A
machine that has nothing but Python has no ``npm``, and the tests say so.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.support.npm import NpmError, install_once

VERSION = "3.35.0"
_BUILD = Path(__file__).parents[2] / "build" / "azurite"


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
    try:
        modules = install_once(build / VERSION, f"azurite@{VERSION}")
    except NpmError as error:
        msg = f"{error}, and AZURITE names no program of its kind"
        raise AzuriteNotFoundError(msg) from error
    return modules / ".bin" / "azurite-blob"
