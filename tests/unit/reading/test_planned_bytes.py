from __future__ import annotations

from typing import TYPE_CHECKING

import pylog
from pylog.reading.planned_bytes import PlannedBytes
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path


def test_the_bytes_read_go_up_to_the_bytes_planned(tmp_path: Path) -> None:
    for name in ("orders-0", "orders-1"):
        segments = {
            base: [batch_v2(plain_records(at, 5)) for at in range(base, base + 20, 5)]
            for base in (0, 20)
        }
        write_partition(tmp_path, segments, name=name)
    scan = pylog.scan(tmp_path, columns=PlannedBytes.COLUMNS, start=10, window_bytes=300)
    planned = PlannedBytes(scan.plan())
    done = [planned.before_end_of(batch) for batch in scan.to_batches()]
    assert len(done) > 4
    assert done == sorted(set(done))
    assert 0 < done[0] < done[-1] == planned.total == sum(task.size_bytes for task in scan.plan())
