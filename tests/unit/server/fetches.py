"""Logs that a test writes and fetches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

import pylog

if TYPE_CHECKING:
    from pathlib import Path


def write(directory: Path, count: int, topic: str = "orders") -> None:
    pylog.write_topic(directory, topic, pa.table({"value": [b"%d" % n for n in range(count)]}))
