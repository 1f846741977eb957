"""Parts that are programs of their own, since Spark fetches jars only when its JVM starts."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from benchmarks.measuring import NotHereError
from tests.support.kafka_broker import BrokerFailedError
from tests.support.kafka_broker_jars import KafkaNotFoundError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


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


def write_figures(measure: Callable[[], Iterable["DataclassInstance"]]) -> None:
    """Write a line of JSON for each figure; exit with the cause if Kafka's broker is not here."""
    try:
        figures = measure()
    except (BrokerFailedError, KafkaNotFoundError) as error:
        sys.exit(str(error))
    for figure in figures:
        sys.stdout.write(json.dumps(asdict(figure)) + "\n")
