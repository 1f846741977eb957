"""Steps of a walk through the browser, and what its screen tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.cli.browse import record_table
from pylog.cli.browse.records_screen import RecordsScreen

if TYPE_CHECKING:
    from pylog.cli.browse.app import BrowseApp
    from pylog.cli.browse.record_table import RecordTable
    from tests.unit.cli.browse.conftest import Driver


def table_of(driver: Driver) -> RecordTable:
    return driver.app.screen.query_one(record_table.RecordTable)


def offset_of(driver: Driver) -> int:
    row = table_of(driver).row
    return -1 if row is None else row.offset


async def tells(driver: Driver, message: str) -> None:
    await driver.until(lambda: message in told(driver.app))


async def reaches(driver: Driver, offset: int) -> None:
    await driver.until(
        lambda: isinstance(driver.app.screen, RecordsScreen) and offset_of(driver) == offset
    )


def told(app: BrowseApp) -> str:
    """Return the notifications that are on the screen."""
    return "\n".join(each.message for each in app._notifications)
