"""Kafka's own tools over files at rest; no broker has to run."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from tests.support.batches import LOG_APPEND_TIME, NO_TIMESTAMP_TYPE
from tests.support.kafka_broker_jars import (
    NEWEST_VERSION,
    find_java,
    kafka_class_path,
)
from tests.support.short_lived_java import SHORT_LIVED

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.support.batches import Stored

_TOOL_SECONDS = 120.0
_FIRST_IN_JAVA = "4.3"
_CONSUMER_TIMEOUT_MS = "60000"
_NULL = "<null>"
_LINE_END = "<end>"  # bytes may hold line breaks


def dump_log_segments(
    paths: Iterable[str | os.PathLike[str]], *flags: str, version: str = NEWEST_VERSION
) -> str:
    """Return what DumpLogSegments prints about ``.log``, index or snapshot files.

    Parameters
    ----------
    paths
        The files, in the order wanted.
    *flags
        As on its command line, such as ``--deep-iteration``, ``--print-data-log``.
    version
        Of Kafka.

    Raises
    ------
    subprocess.CalledProcessError
        The tool failed.
    """
    return run_dump_log_segments(paths, *flags, version=version)[0]


def run_dump_log_segments(
    paths: Iterable[str | os.PathLike[str]], *flags: str, version: str = NEWEST_VERSION
) -> tuple[str, str]:
    """Do as `dump_log_segments` does; return both streams: the second tells what is wrong."""
    main_class = "kafka.tools.DumpLogSegments"
    if version >= _FIRST_IN_JAVA:
        main_class = "org.apache.kafka.tools.DumpLogSegments"
    files = ",".join(os.fspath(path) for path in paths)
    done = _run(version, main_class, "--files", files, *flags)
    return done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def console_consume(
    bootstrap_servers: str,
    topics: Iterable[str],
    isolation: str,
    max_messages: int,
    *,
    partition: int | None = None,
) -> list[bytes]:
    """Return what Kafka's Java consumer prints of topics from their beginnings, a record each.

    As `console_line` says, without the topic. Partitions are in no particular order.

    Parameters
    ----------
    bootstrap_servers
        Of a running broker.
    topics
        What to read.
    isolation
        "read_uncommitted" or "read_committed".
    max_messages
        How many records to wait for, no longer than some seconds after the last one.
    partition
        Only this one, of the only topic: it is assigned, and no group is made.
    """
    formatting = {
        **{f"print.{each}": "true" for each in ("timestamp", "offset", "headers", "key")},
        "null.literal": _NULL,
        "line.separator": _LINE_END,
    }
    arguments = ["--bootstrap-server", bootstrap_servers, "--isolation-level", isolation]
    if partition is None:
        arguments += ["--include", "|".join(topics), "--from-beginning"]
    else:
        arguments += ["--topic", *topics, "--partition", str(partition), "--offset", "earliest"]
    arguments += ["--max-messages", str(max_messages), "--timeout-ms", _CONSUMER_TIMEOUT_MS]
    arguments += ["--command-property", "enable.auto.commit=false"]
    for name, value in formatting.items():
        arguments += ["--formatter-property", f"{name}={value}"]
    main_class = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    # The newest one, also for older brokers: the class path of 3.9 lacks these tools.
    done = _run(NEWEST_VERSION, main_class, *arguments)
    return done.stdout.split(_LINE_END.encode())[:-1]


def run_tool(main_class: str, *arguments: str) -> str:
    """Return what a tool of the newest Kafka prints, without what it says of problems.

    Raises
    ------
    subprocess.CalledProcessError
        The tool failed.
    """
    return _run(NEWEST_VERSION, main_class, *arguments).stdout.decode()


def tool_table(printed: str) -> list[dict[str, str]]:
    """Return the rows of what a tool prints, without lines that are no part of the table."""
    rows: list[dict[str, str]] = []
    headings: list[str] = []
    for line in printed.splitlines():
        cells = line.split()
        if cells and cells[0] in ("GROUP", "TransactionalId", "ProducerId"):
            headings = cells
        elif headings and len(cells) == len(headings):
            rows.append(dict(zip(headings, cells, strict=True)))
    return rows


def console_line(record: Stored) -> bytes:
    """Return what `console_consume` must give for a record."""
    kind = "LogAppendTime" if record.timestamp_type == LOG_APPEND_TIME else "CreateTime"
    headers = b",".join(name.encode() + b":" + _printed(value) for name, value in record.headers)
    has_timestamp = record.timestamp_type != NO_TIMESTAMP_TYPE
    fields = [
        f"{kind}:{record.timestamp}".encode() if has_timestamp else b"NO_TIMESTAMP",
        f"Offset:{record.offset}".encode(),
        headers or b"NO_HEADERS",
        _printed(record.key),
        _printed(record.value),
    ]
    return b"\t".join(fields)


def _printed(data: bytes | None) -> bytes:
    return _NULL.encode() if data is None else data


def segment_files(partition_directory: Path, suffix: str = ".log") -> list[Path]:
    """Return the files of a partition that are part of its log, in offset order."""
    return sorted(partition_directory.glob(f"{'[0-9]' * 20}{suffix}"))


def _run(version: str, main_class: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [
        *(str(find_java()), "-Xmx300m", *SHORT_LIVED),
        # By the first Java goes up to 17, by the second from 18 on.
        *("-Dsun.stdout.encoding=UTF-8", "-Dstdout.encoding=UTF-8"),
        *("-cp", kafka_class_path(version), main_class, *arguments),
    ]
    return subprocess.run(command, check=True, capture_output=True, timeout=_TOOL_SECONDS)
