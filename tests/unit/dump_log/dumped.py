"""What `pylog.dump` prints, as text, objects and reports; a log to be dumped."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pylog
from tests.support.batches import COMMIT, Built, batch_v2, joined, marker, plain_records
from tests.support.log_files import segment_path

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BATCHES = [
    batch_v2(plain_records(0, 5, timestamp=100)),
    batch_v2(plain_records(5, 5, timestamp=200), codec="lz4"),
    marker(10, COMMIT, timestamp=300, coordinator_epoch=4),
    batch_v2(plain_records(11, 2, timestamp=400)),
]


def text_of(*paths: Path, **options: Any) -> list[str]:  # noqa: ANN401 - those of dump
    dumped = pylog.dump(*paths, **options)
    return b"".join(map(bytes, dumped)).decode().split("\n")[:-1]


def objects_of(*paths: Path, **options: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    return [json.loads(line) for line in text_of(*paths, output="jsonl", **options)]


def report_of(path: Path, **options: Any) -> pylog.results.FileReport:  # noqa: ANN401
    dumped = pylog.dump(path, **options)
    for _ in dumped:
        pass
    (report,) = dumped.reports
    return report


def write_log(directory: Path, batches: Sequence[Built], tail: bytes = b"") -> Path:
    path = segment_path(directory, batches[0].base_offset if batches else 0)
    path.write_bytes(joined(batches) + tail)
    return path
