"""The table of records: a bounded number of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.cli.browse import record_table
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition
from tests.unit.cli.browse.conftest import LARGE, Driver, app_of, drive
from tests.unit.cli.browse.walks import offset_of, reaches, table_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_walk_through_many_records_keeps_a_bounded_number_of_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_table, "MOST_ROWS", 1_200)
    batches = [batch_v2(plain_records(first, 100)) for first in range(0, 3_000, 100)]
    write_partition(tmp_path, {0: batches})

    async def steps(driver: Driver) -> None:
        await driver.sees("orders-0@0")
        table = table_of(driver)
        for pages, end in ((1, 2_999), (-1, 0)):
            seen = [offset_of(driver)]
            while seen[-1] != end:
                for _ in range(10):
                    table.action_page(pages)
                await driver.until(lambda: not table.is_reading)
                offsets = [row.offset for row in table.loaded.rows]
                assert offsets == list(range(offsets[0], offsets[-1] + 1))
                assert len(offsets) <= 1_200
                seen.append(offset_of(driver))
                assert seen[-1] != seen[-2]
        for key, end in (("G", 2_999), ("g", 0)):
            await driver.press(key)
            await reaches(driver, end)

    drive(app_of(tmp_path), steps, LARGE)


def test_the_row_with_the_cursor_stays_on_the_screen(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 100))]})

    async def steps(driver: Driver) -> None:
        await driver.sees("orders-0@0")
        for key, offsets in (("j", range(1, 15)), ("k", range(13, -1, -1))):
            for offset in offsets:
                await driver.press(key)
                await driver.sees(
                    f"orders-0@{offset}\n", f" {offset} 00:00:01.{offset:03} k{offset} "
                )

    drive(app_of(tmp_path), steps)
