"""The screen of a partition: where it goes to, what it copies, when it looks again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition
from tests.unit.cli.browse.conftest import Driver, app_of, drive
from tests.unit.cli.browse.walks import reaches, told

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome

POSITIONS = [
    ("57", 57),
    ("0", 0),
    ("999", 59),
    ("-10", 50),
    ("50%", 29),
    ("50 %", 29),
    ("12.5%", 7),
    ("latest", 59),
    ("beginning", 0),
    ("2024-11-07T17:20:58Z", 45),
    ("2024-11-07 17:20:58", 45),
    ("17:20:58", 45),
    ("1990-01-01", 0),
    ("2999-01-01", 59),
]


def test_positions_are_offsets_shares_and_times(demo_directory: Path) -> None:
    async def steps(driver: Driver) -> None:
        await driver.sees("orders-0@0")
        for typed, offset in POSITIONS:
            await driver.press("colon")
            await driver.sees("An offset")
            await driver.type(typed)
            await driver.press("enter")
            await reaches(driver, offset)

    drive(app_of(demo_directory / "intact", "-t", "orders", "-p", "0"), steps)


def test_what_is_no_position_is_told(demo_directory: Path) -> None:
    app = app_of(demo_directory / "intact", "-t", "orders", "-p", "0")

    async def steps(driver: Driver) -> None:
        await driver.sees("orders-0@0")
        await driver.press("colon")
        await driver.type("yesterday")
        await driver.press("enter")
        await driver.until(lambda: "'yesterday' is not a time" in told(app))

    drive(app, steps)


def test_a_record_is_copied_as_cat_prints_it(
    demo_directory: Path, pylog_run: Callable[..., Outcome]
) -> None:
    directory = demo_directory / "intact"
    app = app_of(directory, "-t", "orders", "-p", "0", "-o", "5")

    async def steps(driver: Driver) -> None:
        await driver.sees("orders-0@5")
        await driver.press("Y")
        await driver.until(lambda: app.clipboard)

    drive(app, steps)
    done = pylog_run(
        "cat", directory, "-t", "orders", "-p", "0", "-o", "5", "-c", "1", "--values", "text"
    )
    assert app.clipboard == done.output.decode().rstrip("\n")


def test_a_log_that_grows_is_seen_after_r(tmp_path: Path) -> None:
    batches = [batch_v2(plain_records(first, 5)) for first in (0, 5)]
    write_partition(tmp_path, {0: batches[:1]})

    async def steps(driver: Driver) -> None:
        await driver.sees("offsets 0 to 4")
        write_partition(tmp_path, {0: batches})
        await driver.press("r")
        await driver.sees("offsets 0 to 9")

    drive(app_of(tmp_path), steps)
