from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition
from tests.unit.reading.followed_logs import settle
from tests.unit.reading.planned import three_segments

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]})
    settle(tmp_path)
    return tmp_path


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Give a partition of three segments."""
    return three_segments(tmp_path)
