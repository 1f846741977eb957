"""Kafka's own tools over files at rest; no broker has to run."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from tests.support.kafka_broker_jars import (
    NEWEST_VERSION,
    find_java,
    is_version_3,
    kafka_class_path,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_TOOL_SECONDS = 120.0


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
    main_class = "kafka.tools.DumpLogSegments"
    if not is_version_3(version):
        main_class = "org.apache.kafka.tools.DumpLogSegments"
    files = ",".join(os.fspath(path) for path in paths)
    return _run(version, main_class, "--files", files, *flags)


def segment_files(partition_directory: Path, suffix: str = ".log") -> list[Path]:
    """Return the files of a partition that are part of its log, in offset order."""
    return sorted(partition_directory.glob(f"{'[0-9]' * 20}{suffix}"))


def _run(version: str, main_class: str, *arguments: str) -> str:
    command = [
        *(str(find_java()), "-Xmx300m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
        *("-cp", kafka_class_path(version), main_class, *arguments),
    ]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=_TOOL_SECONDS
    )
    return done.stdout
