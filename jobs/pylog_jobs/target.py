"""Where records go: the table ``[target]``, and what is wrong with it before Spark starts."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pylog
from pylog_jobs.config_file import ConfigTable, config_key
from pylog_jobs.job import UsageError
from pyspark_pylog.jobs import WriteOptions

if TYPE_CHECKING:
    from collections.abc import Mapping


def _compression(table: ConfigTable, key: str) -> str | None:
    return table.choice(key, tuple(codec.label for codec in pylog.CompressionType))


def _positive(table: ConfigTable, key: str) -> int | None:
    return table.integer(key, at_least=1)


def _location(table: ConfigTable, key: str) -> str:
    text = table.required_text(key)
    return table.checked(lambda: str(pylog.jobs.absolute_location(text)), key)


_NO_OPTIONS = frozenset({"directory", "properties", "ambiguous_job_id"})
"""What is no option of ``format("pylog")``, or not under its own name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The log directory, and how it is written."""

    directory: str = config_key(_location)
    topic: str | None = config_key(ConfigTable.text)
    partitions: int | None = config_key(_positive)
    create_topic: bool | None = config_key(ConfigTable.boolean)
    partitioner: str | None = config_key(ConfigTable.text)
    compression: str | None = config_key(_compression)
    level: int | None = config_key(ConfigTable.integer)
    batch_size_bytes: int | None = config_key(_positive)
    commit_timeout: str | None = config_key(ConfigTable.duration)
    recover_as_broker: bool | None = config_key(ConfigTable.boolean)
    internal_topics: bool | None = config_key(ConfigTable.boolean)
    value_schema: str | None = config_key(ConfigTable.text)
    key_schema: str | None = config_key(ConfigTable.text)
    value_subject: str | None = config_key(ConfigTable.text)
    key_subject: str | None = config_key(ConfigTable.text)
    schema_framing: str | None = config_key(ConfigTable.text)
    schema_compatibility: str | None = config_key(ConfigTable.text)
    properties: Mapping[str, str] = config_key(ConfigTable.options, {})
    job_id: str | None = config_key(ConfigTable.text)
    fingerprint: str | None = None  # of a batch with a job id
    ambiguous_job_id: str | None = None  # what another window would have had before, too

    def write_options(self) -> dict[str, str]:
        """Return the options of ``format("pylog")``."""
        other_names = {
            "partitions": "numPartitions",
            "fingerprint": "jobFingerprint",
            "internal_topics": "writeInternalTopics",
        }
        options = {
            other_names.get(each.name, pylog.jobs.json_name(each.name)): str(value)
            for each in fields(self)
            if each.name not in _NO_OPTIONS and (value := getattr(self, each.name)) is not None
        }
        return options | {f"topic.{name}": value for name, value in self.properties.items()}

    def write_job(self) -> pylog.jobs.WriteJob:
        """Return the library's write job of this target; `ValueError` if a value is impossible."""
        optional: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("partitions", "partitioner", "compression", "level", "batch_size_bytes")
        }
        return pylog.jobs.WriteJob(
            self.directory,
            job_id=self.job_id or "unnamed",
            topic=self.topic,
            config=dict(self.properties),
            fingerprint=self.fingerprint,
            creates_similar_topic=bool(self.create_topic),
            writes_internal_topics=bool(self.internal_topics),
            **{name: value for name, value in optional.items() if value is not None},
        )


def check_target(table: ConfigTable, target: Target, *, is_stream: bool) -> None:
    """Raise if the data source, or Kafka, would not take what the table says."""
    table.checked(lambda: pylog.LogConfig.from_properties(target.properties), "properties")
    table.checked(target.write_job)
    options = {"path": target.directory, **target.write_options()}
    table.checked(lambda: WriteOptions.parse(options, is_stream=is_stream))


def check_directory(key: str, text: str) -> None:
    """Raise if a directory is none, and cannot be made; look at nothing in it."""
    if ":" in text:
        return  # of a store
    path = Path(text).absolute()
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
