"""Kafka's own ``UnifiedLog`` and ``Cleaner`` in one JVM that does job after job.

``java/KafkaLog.java`` is compiled when the JVM starts (`tests.support.java_source`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tests.support.java_source import java_command
from tests.support.kafka_broker_jars import NEWEST_VERSION
from tests.support.peer_process import PeerProcess
from tests.support.short_lived_java import SHORT_LIVED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import TracebackType

    from tests.support.random_log import Step

_SOURCE = Path(__file__).parent / "java" / "KafkaLog.java"
_JAVA_OPTIONS = ("-Xmx512m", *SHORT_LIVED)

Job = dict[str, Any]
Answer = dict[str, Any]


class KafkaFailedError(RuntimeError):
    """Kafka refused what no test asks it to refuse."""


class KafkaLogs:
    """The JVM; a context manager. Each job opens the log of a directory, works on it, closes it.

    `KafkaNotFoundError` if there is no Java, or Kafka's jars are not to be had.

    Parameters
    ----------
    prefix
        A program that starts the JVM, and its arguments.
    java_options
        Of the JVM; by default those for small logs and a short life.
    version
        Of Kafka.
    """

    def __init__(
        self,
        prefix: Sequence[str] = (),
        java_options: Sequence[str] = _JAVA_OPTIONS,
        *,
        version: str = NEWEST_VERSION,
    ) -> None:
        self.version = version
        # An error in a pass is part of the answer; Kafka would write it to the console as well.
        options = (*java_options, "-Dlog4j2.level=OFF")
        command = [*prefix, *java_command(_SOURCE, options, version=version)]
        self._process = PeerProcess("KafkaLog", command)

    def __enter__(self) -> Self:
        self._process.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.__exit__(kind, error, traceback)

    def run(self, what: str, directory: Path, job: Mapping[str, Any]) -> Answer:
        """Do a job on the log in a log directory, and return what Kafka said of it."""
        question = {"what": what, "directory": str(directory), **job}
        answer: Answer = json.loads(self._process.ask(json.dumps(question)))
        if "error" in answer:
            raise KafkaFailedError(answer["error"])
        return answer

    def prepare(self, directory: Path, job: Mapping[str, Any], steps: Iterable[Step]) -> Answer:
        """Append, roll and delete records."""
        return self.run("prepare", directory, {**job, "steps": [each.as_json() for each in steps]})
