"""What can be known of a target before Spark starts: names, levels, the directory."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pylog
from pylog_jobs.job import UsageError
from pylog_jobs.sql_text import LITERAL, SPARK, SqlText
from pyspark_pylog.options import WriteOptions

if TYPE_CHECKING:
    from pylog_jobs.config_file import ConfigTable
    from pylog_jobs.ingest_config import IngestConfig, RecordExpressions, Target


def check_target(table: ConfigTable, target: Target, *, is_stream: bool) -> None:
    """Raise if the data source, or Kafka, would not take what the table says."""
    table.checked(lambda: pylog.LogConfig.from_properties(target.properties), "properties")
    table.checked(target.write_job)
    options = {"path": target.directory, **target.write_options()}
    table.checked(lambda: WriteOptions.parse(options, is_stream=is_stream))


def check_topic_of_record(table: ConfigTable, record: RecordExpressions, target: Target) -> None:
    """Raise if all rows name a topic that cannot be one."""
    parts = [] if record.topic is None else SqlText(record.topic.strip(), SPARK).parts
    if record.topic is None or [(each.kind, each.prefix) for each in parts] != [(LITERAL, "")]:
        return  # each row has its own
    name = record.topic.strip()[1:-1]
    table.checked(replace(target, topic=name).write_job, "topic")


def check_places(config: IngestConfig) -> None:
    """Raise if the log directory, or the checkpoint, cannot be made; look at no log."""
    for key, text in (
        ("[target]: directory", config.target.directory),
        ("[trigger]: checkpoint", config.trigger.checkpoint),
    ):
        if text is not None and ":" not in text:
            _check_directory(key, Path(text).absolute())


def _check_directory(key: str, path: Path) -> None:
    try:
        path.stat()
    except FileNotFoundError:
        pass  # it is made
    except OSError as error:
        raise UsageError(f"{key} cannot be {str(path)!r}: {error.strerror}") from error
    nearest = next(each for each in (path, *path.parents) if os.path.lexists(each))
    if not nearest.is_dir():
        raise UsageError(f"{key} cannot be {str(path)!r}: {nearest} is no directory")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise UsageError(f"{key} cannot be {str(path)!r}: {nearest} may not be written to")
