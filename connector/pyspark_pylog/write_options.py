"""The options of ``df.write.format("pylog")`` and of ``writeStream``.

As for reads, keys are case-insensitive, values are strings, an unknown option is an error, and
options of the ``kafka`` sink that have no meaning here are accepted with one warning. Those of them
that would change where a record goes, or what it holds, are errors.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pylog
from pylog import PARTITIONER_NAMES, CompressionType, absolute_location
from pyspark_pylog import option_values as values
from pyspark_pylog.nearest_name import nearest_name_hint
from pyspark_pylog.options import READ_OPTIONS
from pyspark_pylog.path_options import INSERT_INTO_VIEW, STORAGE_PREFIX
from pyspark_pylog.write_option_names import TOPIC_PROPERTY_PREFIX, WRITE_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_BATCH_SIZE_BYTES = 256 << 10
"""More than a producer's 16 KB, since rows come in bulk: they compress better, and the commit's
work is in batches. A quarter of what a topic allows, so that a look-up decodes little in vain."""
DEFAULT_COMMIT_TIMEOUT_MS = 60_000

_WITHOUT_EFFECT = ("includeHeaders",)
"""The kafka sink lists it, and goes by whether there is a column ``headers``, as is done here."""

_OF_STREAMS = frozenset({"checkpointlocation", "queryname"})
"""What Spark takes for itself, and passes on."""

_CLIENT_PREFIX = "kafka."
_REFUSED_OF_CLIENT = {
    "kafka.key.serializer": "keys are written as the bytes that the column holds",
    "kafka.value.serializer": "values are written as the bytes that the column holds",
    "kafka.partitioner.class": (
        "classes of the JVM do not run here; option partitioner takes default, round_robin or "
        "integer_key, and a column named partition says where each row goes"
    ),
}
_LEVEL = re.compile(r"[+-]?[0-9]{1,9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Checked options of one write.

    Attributes
    ----------
    directory
        Absolute path of the log directory.
    topic
        For all rows; None: each row says it in column ``topic``.
    compression, level
        The codec's label, and its level; None for Kafka's default.
    batch_size_bytes
        The most bytes of a record batch before compression.
    partitions
        Of topics that the write creates; None for 1.
    partitioner
        One of `pylog.PARTITIONER_NAMES`.
    job_id
        The name under which the write is committed once; None: a new one each time.
    commit_timeout_ms
        How long the commit waits for the directory's lock.
    topic_properties
        Of topics that the write creates.
    without_effect
        Names of options that are known and have no meaning here, sorted.
    """

    directory: str
    topic: str | None = None
    compression: str = CompressionType.NONE.label
    level: int | None = None
    batch_size_bytes: int = DEFAULT_BATCH_SIZE_BYTES
    partitions: int | None = None
    partitioner: str = PARTITIONER_NAMES[0]
    job_id: str | None = None
    commit_timeout_ms: int = DEFAULT_COMMIT_TIMEOUT_MS
    topic_properties: Mapping[str, str] = field(default_factory=dict)
    without_effect: tuple[str, ...] = ()

    @classmethod
    def parse(cls, given: Mapping[str, str], *, is_stream: bool = False) -> WriteOptions:
        """Return the options that ``given`` means.

        Raises
        ------
        ValueError
            An option is unknown, not one of writes, or its value makes no sense; the text names
            the option and what it takes.
        """
        lower = {name.lower(): value for name, value in given.items()}
        without_effect = _check_names(lower, is_stream=is_stream)
        if is_stream and "jobid" in lower:
            msg = (
                "option jobId is for batch writes; leave it out: a micro-batch is known by its "
                "query's id and its number, which the checkpoint keeps"
            )
            raise ValueError(msg)
        timeout = values.milliseconds(lower, "commitTimeout")
        return cls(
            directory=_directory(lower, is_stream=is_stream),
            topic=_text(lower, "topic"),
            compression=values.one_of(
                lower, "compression", tuple(codec.label for codec in CompressionType)
            ),
            level=_level(lower),
            batch_size_bytes=values.size_bytes(lower, "batchSizeBytes", DEFAULT_BATCH_SIZE_BYTES),
            partitions=values.count(lower, "numPartitions"),
            partitioner=values.one_of(lower, "partitioner", PARTITIONER_NAMES),
            job_id=_text(lower, "jobId"),
            commit_timeout_ms=DEFAULT_COMMIT_TIMEOUT_MS if timeout is None else timeout,
            topic_properties=_topic_properties(lower),
            without_effect=without_effect,
        )

    def job(self, job_id: str, batch_id: int | None = None) -> pylog.WriteJob:
        """Return the library's write job.

        Parameters
        ----------
        job_id, batch_id
            What names it in the ledger: a name, or a query and its micro-batch.

        Raises
        ------
        ValueError
            A topic, a property, a level or the name is not possible.
        """
        return pylog.WriteJob(
            self.directory,
            job_id=job_id,
            batch_id=batch_id,
            topic=self.topic,
            partitions=self.partitions,
            partitioner=self.partitioner,
            compression=self.compression,
            level=self.level,
            batch_size_bytes=self.batch_size_bytes,
            config=dict(self.topic_properties),
        )


def _check_names(lower: Mapping[str, str], *, is_stream: bool) -> tuple[str, ...]:
    """Return the names that have no effect; `ValueError` for one that is not of a write."""
    known = {name.lower(): name for name in WRITE_OPTIONS}
    without_effect = {name.lower(): name for name in _WITHOUT_EFFECT}
    of_reads = {name.lower(): name for name in READ_OPTIONS}
    ignored = []
    for name in lower:
        if name in known or name.startswith(TOPIC_PROPERTY_PREFIX):
            continue
        if is_stream and name in _OF_STREAMS:
            continue
        _refuse_client_option(name)
        if name in without_effect or name.startswith(_CLIENT_PREFIX):
            ignored.append(without_effect.get(name, name))
            continue
        listed = f"The options are: {', '.join(WRITE_OPTIONS)}, {TOPIC_PROPERTY_PREFIX}<property>"
        if name in of_reads or name.startswith(STORAGE_PREFIX):
            msg = f"option {of_reads.get(name, name)!r} is for reads, not for writes. {listed}"
            raise ValueError(msg)
        msg = f"unknown option {name!r}{nearest_name_hint(name, known.values())} {listed}"
        raise ValueError(msg)
    return tuple(sorted(ignored))


def _refuse_client_option(name: str) -> None:
    """Raise `ValueError` for an option whose loss would change what is written, or where."""
    near = difflib.get_close_matches(name, _REFUSED_OF_CLIENT, n=1, cutoff=0.9)
    if near:
        msg = f"option {name!r} is not supported: {_REFUSED_OF_CLIENT[near[0]]}"
        raise ValueError(msg)


def _directory(lower: Mapping[str, str], *, is_stream: bool) -> str:
    if "path" not in lower:
        call = "start" if is_stream else "save"
        msg = f'no path: say {call}("/path/to/kafka-logs"). {INSERT_INTO_VIEW}'
        raise ValueError(msg)
    # Against the driver's working directory, which an executor does not share.
    location = absolute_location(lower["path"])
    if "://" in location:
        msg = (
            f"path {str(location)!r} is in an object store; a topic is written to a directory that "
            "the driver and all executors have mounted"
        )
        raise ValueError(msg)
    return location


def _topic_properties(lower: Mapping[str, str]) -> dict[str, str]:
    properties = {
        name.removeprefix(TOPIC_PROPERTY_PREFIX): value.strip()
        for name, value in lower.items()
        if name.startswith(TOPIC_PROPERTY_PREFIX)
    }
    pylog.LogConfig.from_properties(properties)  # raises for what is not a property of topics
    return properties


def _text(lower: Mapping[str, str], name: str) -> str | None:
    text = lower.get(name.lower())
    if text is None:
        return None
    if not text.strip():
        msg = f"option {name} is empty"
        raise ValueError(msg)
    return text.strip()


def _level(lower: Mapping[str, str]) -> int | None:
    text = lower.get("level")
    if text is None:
        return None
    if not _LEVEL.fullmatch(text.strip()):
        msg = f"option level is {text!r}, expected a number"
        raise ValueError(msg)
    return int(text)
