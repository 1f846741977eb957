"""Parts that are programs of their own, since Spark fetches jars only when its JVM starts."""

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from tests.benchmarks.measuring import NotHereError


def figures_of_program(
    module: str, arguments: Sequence[str], seconds: float
) -> list[dict[str, Any]]:
    """Run a module of this package, and return the lines of JSON that it writes.

    Raises
    ------
    NotHereError
        It ended with an error; the text is the last line of it.
    """
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=seconds)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise NotHereError(lines[-1])
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
