"""One record as a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.cli.browse.record_tree import SHOWN_BYTES
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition
from tests.unit.cli.browse.conftest import LARGE, Driver, app_of, drive

if TYPE_CHECKING:
    from pathlib import Path


def test_a_huge_value_is_cut_and_shown_on_request(tmp_path: Path) -> None:
    value = b"v" * (3 * SHOWN_BYTES)
    write_partition(tmp_path, {0: [batch_v2([Stored(0, 1, b"k", value)])]})

    async def steps(driver: Driver) -> None:
        await driver.sees("the first 64.0KiB here: l shows more")
        await driver.press("l")
        await driver.until(lambda: "here" not in driver.text and "192KiB" in driver.text)

    drive(app_of(tmp_path), steps, LARGE)
