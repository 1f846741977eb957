"""The search of a partition: matches, patterns, and what is no search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.cli.browse.search_screen import SearchScreen
from tests.unit.cli.browse.conftest import Driver, app_of, drive
from tests.unit.cli.browse.walks import reaches, tells, told

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_matches_are_walked_with_n(demo_directory: Path) -> None:
    async def steps(driver: Driver) -> None:
        await driver.sees("orders-0@0")
        await driver.press("slash")
        await driver.type("--value-regex J.Y")
        await driver.press("enter")
        await driver.until(finished(driver))
        await driver.sees("5 matches")
        await driver.press("j", "enter")
        for key, offset in (("", 28), ("n", 46), ("n", 47), ("N", 46), ("N", 28), ("N", 12)):
            await driver.press(*[key] if key else [])
            await reaches(driver, offset)
        await driver.press("N")
        await driver.until(lambda: "No further match in this partition." in told(driver.app))
        await driver.press("q")
        await driver.sees("5 matches")
        await driver.press("q")
        await driver.sees("orders-0@0")

    drive(app_of(demo_directory / "damaged", "-t", "orders", "-p", "0"), steps)


NO_SEARCHES = [
    ("--nope x", "No such option"),
    ("--key a b", "belongs to no option"),
    ("--key 'a", "No closing quotation"),
    ("--key a --count", "--count is for output"),
    ("--where value.id=1", "the browser searches bytes"),
    ("--key a --value-format auto", "the browser searches bytes"),
    ("--help", "pylog search --help lists the options"),
]


def test_what_is_no_search_is_told(demo_directory: Path) -> None:
    app = app_of(demo_directory / "intact", "-t", "orders", "-p", "0")

    async def steps(driver: Driver) -> None:
        await driver.sees("orders-0@0")
        for typed, message in NO_SEARCHES:
            app.search(typed, None)
            await tells(driver, message)

    drive(app, steps)


def test_what_the_search_itself_refuses_is_its_outcome(demo_directory: Path) -> None:
    app = app_of(demo_directory / "intact", "-t", "orders")

    async def steps(driver: Driver) -> None:
        await driver.sees("TOPIC")
        for typed in ("--value-regex (", "-t nope --key a"):
            app.search(typed, None)
            await driver.until(finished(driver))
            await driver.sees("error: ")
            await driver.press("q")
            await driver.sees("TOPIC")

    drive(app, steps)


def finished(driver: Driver) -> Callable[[], bool]:
    return lambda: (
        isinstance(driver.app.screen, SearchScreen) and not driver.app.screen.is_searching
    )
