"""What others are told of a run: a file of metrics for Prometheus, and OpenLineage events.

The file has the text format 0.0.4, which node_exporter's textfile collector reads; it is replaced
as a whole at the end of each run. Events go where openlineage-python's own configuration says
(``OPENLINEAGE_URL``, ``OPENLINEAGE_CONFIG`` and the like).
"""

from __future__ import annotations

import datetime as dt
import importlib
import logging
import os
import re
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pylog
from pylog_jobs.secret_values import without_credentials

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PRODUCER = "https://example.org/pyspark-pylog"
_CAPITAL = re.compile("(?<=[a-z])([A-Z])")
_LABELS = ("name", "directory", "topic")
_NOT_METRICS = frozenset({"schemaVersion", "started", "seconds", "exitStatus"})
_LOGGER = logging.getLogger(__name__)


class LineageNotFoundError(ValueError):
    """openlineage-python is asked for, and is not installed."""

    def __init__(self) -> None:
        command = pylog.jobs.install_command("lineage")
        super().__init__(f"--lineage needs openlineage-python: {command}")


def metrics_path(given: str, job: str, name: str, *, is_alone: bool) -> str:
    """Return the file for the metrics of a run: in a folder, or where ``{name}`` is, by its name.

    `ValueError`: there is no such folder, or several runs would replace one file.
    """
    if Path(given).is_dir():
        path = Path(given, f"{job}-{name}.prom" if name else f"{job}.prom")
    elif "{name}" not in given and not is_alone:
        raise ValueError(
            f"--metrics-file {given} is one file for several configurations: name a folder that "
            "exists, or write {name} into the file's name"
        )
    else:
        path = Path(given.replace("{name}", name or job))
    if not path.absolute().parent.is_dir():
        raise ValueError(f"--metrics-file {given}: there is no such folder")
    return str(path)


def write_metrics(path: str, summary: Mapping[str, Any], ended: dt.datetime) -> None:
    """Replace the file of metrics by those of a run."""
    target = Path(path)
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(_metric_lines(summary, ended))
            os.fchmod(descriptor, 0o644)  # the collector is another user
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _metric_lines(summary: Mapping[str, Any], ended: dt.datetime) -> Iterator[str]:
    given = {"job": summary["job"]} | {
        name: summary[name] for name in _LABELS if isinstance(summary.get(name), str)
    }
    labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in given.items())
    metrics: dict[str, tuple[str, float]] = {
        "exit_status": ("Exit status of the last run.", summary["exitStatus"]),
        "duration_seconds": ("How long the last run took.", summary["seconds"]),
        "end_timestamp_seconds": ("When the last run ended.", round(ended.timestamp(), 3)),
    }
    for name, value in summary.items():
        snake, what = _CAPITAL.sub(r"_\1", name).lower(), f"{name} in the summary of the last run."
        if isinstance(value, (bool, int, float)) and name not in _NOT_METRICS:
            metrics[snake] = (what, value)
        elif isinstance(value, (list, tuple)):
            metrics[snake] = (f"Length of {what}", len(value))
    for name, (text, value) in metrics.items():
        whole = f"pylog_job_{name}"
        yield f"# HELP {whole} {text}\n# TYPE {whole} gauge\n"
        yield f"{whole}{{{labels}}} {float(value):.15g}\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Lineage:
    """The OpenLineage events of one run. A backend that does not answer is logged, and no more."""

    def __init__(self, namespace: str, job: str) -> None:
        try:
            client = importlib.import_module("openlineage.client")
            self._events = importlib.import_module("openlineage.client.event_v2")
        except ImportError as error:
            raise LineageNotFoundError from error
        self._client = client.OpenLineageClient()
        self._namespace = namespace
        self._job = job
        self._run_id = str(uuid.uuid4())

    def start(self) -> None:
        """Say that the run has begun."""
        self._emit("START", {})

    def end(self, summary: Mapping[str, Any], reads: tuple[str, str] | None) -> None:
        """Say how the run has ended, what it has read and what it has written."""
        told = {} if "error" in summary else summary  # else nothing says what was read or written
        self._emit("COMPLETE" if summary["exitStatus"] == 0 else "FAIL", told, reads)

    def _emit(
        self, state: str, summary: Mapping[str, Any], reads: tuple[str, str] | None = None
    ) -> None:
        events = self._events
        directory, topic = summary.get("directory"), summary.get("topic")
        logs = [] if directory is None else [(f"file://{directory}", topic or "*")]
        inputs = logs if reads is None else [reads]
        outputs = [] if reads is None else logs
        event = events.RunEvent(
            eventTime=dt.datetime.now(dt.UTC).isoformat(),
            producer=_PRODUCER,
            eventType=getattr(events.RunState, state),
            run=events.Run(runId=self._run_id),
            job=events.Job(namespace=self._namespace, name=self._job),
            inputs=[events.InputDataset(namespace=each[0], name=each[1]) for each in inputs],
            outputs=[events.OutputDataset(namespace=each[0], name=each[1]) for each in outputs],
        )
        try:
            self._client.emit(event)
        except Exception as error:  # noqa: BLE001 - of whatever transport is configured
            _LOGGER.warning("no OpenLineage event was taken: %s", error)


def dataset_of(
    format_name: str, paths: tuple[str, ...], options: Mapping[str, str]
) -> tuple[str, str]:
    """Return namespace and name of what is read, as OpenLineage names data sets."""
    url = without_credentials(options.get("url", ""))
    if url:
        table = options.get("dbtable") or "query"
        return url.removeprefix("jdbc:").split("?")[0], table
    if paths:
        first = without_credentials(paths[0])
        scheme, separator, rest = first.partition("://")
        if separator:
            store, _, name = rest.partition("/")
            return f"{scheme}://{store}", name or "/"
        return "file", first
    return "spark", format_name
