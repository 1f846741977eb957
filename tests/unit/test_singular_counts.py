"""What is there once is not counted as several."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pylog
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path


def test_one_topic_partition_and_segment_are_counted_in_the_singular(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 1)), batch_v2(plain_records(2, 1))]})
    assert repr(pylog.stats(tmp_path)).startswith("LogStatistics(1 topic, 1 partition, ")
    [view] = pylog.open_directory(tmp_path)
    assert ": 1 segment," in view._repr_html_()
