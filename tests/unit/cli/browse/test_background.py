"""Work in another process: it can be ended, and what it finds is reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.cli.browse.search_screen import SearchScreen
from tests.support.batches import Stored, batch_v2, plain_records, with_bad_crc
from tests.support.log_files import write_partition
from tests.unit.cli.browse.conftest import LARGE, Driver, app_of, drive
from tests.unit.cli.browse.walks import reaches, told

if TYPE_CHECKING:
    from pathlib import Path


def test_a_pattern_that_backtracks_is_stopped_with_escape(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: [batch_v2([Stored(0, 1, b"k", b"a" * 64 + b"!")])]})

    async def steps(driver: Driver) -> None:
        await driver.sees("orders-0@0")
        await driver.press("slash")
        await driver.type("--value-regex (a+)+$")
        await driver.press("enter")
        await driver.until(lambda: isinstance(driver.app.screen, SearchScreen))
        await driver.press("escape")
        await driver.sees("stopped, 0 found")

    drive(app_of(tmp_path), steps)


def test_damage_far_away_is_reached_once_the_doctor_has_found_it(tmp_path: Path) -> None:
    batches = [batch_v2(plain_records(first, 100)) for first in range(0, 3_000, 100)]
    batches[27] = with_bad_crc(batches[27])
    write_partition(tmp_path, {0: batches})
    app = app_of(tmp_path)

    async def steps(driver: Driver) -> None:
        await driver.sees("orders-0@0")
        await driver.press("e")
        await driver.until(lambda: "No further damage is known." in told(app))
        await driver.press("d")
        await driver.sees("damaged_batches", "2700 to 2799")
        await driver.press("escape", "e")
        await reaches(driver, 2_700)
        await driver.sees("2700 to 2799  damaged")

    drive(app, steps, LARGE)
