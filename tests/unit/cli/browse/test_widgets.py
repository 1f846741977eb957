"""Widgets that all screens have: the keys that work now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.cli.browse.conftest import LARGE, Driver, app_of, drive

if TYPE_CHECKING:
    from pathlib import Path


def test_help_lists_the_keys_of_the_screen(demo_directory: Path) -> None:
    async def steps(driver: Driver) -> None:
        await driver.sees("orders-0@0")
        await driver.press("question_mark")
        await driver.sees("Next match", "lnav, kaskade, VisiData", "Copy")

    drive(app_of(demo_directory / "intact", "-t", "orders", "-p", "0"), steps, LARGE)
