"""The plan of a log of three segments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pylog
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.reading.scan_task import ScanTask

# Two batches of five records a segment. Keys of offsets below 10 are one byte shorter: the batches
# of the first segment have 156 bytes, all others 161.
LOG = {base: [batch_v2(plain_records(base + i, 5)) for i in (0, 5)] for base in (0, 10, 20)}


def three_segments(tmp_path: Path) -> Path:
    return write_partition(tmp_path, LOG)


def tasks(directory: Path, **options: Any) -> list[ScanTask]:  # noqa: ANN401 - of pylog.scan
    return pylog.scan(directory, **options).plan()
