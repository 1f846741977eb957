from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import CorruptRecordError
from pylog.reading.damage import DamageReport, ReadMode
from pylog.reading.view_batches import view_batches
from tests.support.batches import batch_v2, plain_records, with_bad_crc
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path


def test_the_records_of_a_log_as_its_scan_gives_them(tmp_path: Path) -> None:
    batches = [batch_v2(plain_records(0, 3)), with_bad_crc(batch_v2(plain_records(3, 2)))]
    write_partition(tmp_path, {0: batches}, name="orders-0")
    view = pylog.open_directory(tmp_path)["orders", 0]
    report = DamageReport(is_logged=False)
    found = list(view_batches(view, ("offset", "key"), ReadMode.DROPMALFORMED, report))
    assert [each for batch in found for each in batch.column("offset").to_pylist()] == [0, 1, 2]
    assert len(report) == 1
    with pytest.raises(CorruptRecordError):
        list(view_batches(view, ("offset",), ReadMode.FAILFAST, DamageReport()))
