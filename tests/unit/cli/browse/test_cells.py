"""Text from disk is no command to the terminal, and no markup."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

from pylog.cli.browse.cells import time_text
from pylog.cli.browse.records_screen import RecordsScreen
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition
from tests.unit.cli.browse.conftest import LARGE, SMALL, Driver, app_of, drive
from tests.unit.cli.browse.walks import reaches

if TYPE_CHECKING:
    from pathlib import Path


THOROUGH = pytest.mark.thorough
HOSTILE = [
    b"\x1b]0;title\x07\x1b[31mred\x1b[0m",
    b"[bold red]markup[/] [@click=app.quit]quit[/] \\[x]",
    "\u202eright to left\u202c \u2066isolated\u2069".encode(),
    "日本語のとても長い文字列".encode() * 20,
    "e\u0301\u0323 combining \u200d joined \U0001f469\u200d\U0001f469\u200d\U0001f467".encode(),
    b"\xff\xfe\x80 not UTF-8 \xed\xa0\x80",
    b'{"\\ud800": "\\u001b[2J", "a": 1.10, "a": 123456789012345678901234567890, "n": null}',
    b"[" * 20_000,
    b'{"key with \\n": [[], {}, [1, [2, {"x": "\\u0085"}]]]}',
    b"\r\n\t\x00\x7f\xc2\x85\xe2\x80\xa8",
    b"",
]


@pytest.mark.parametrize(
    ("timestamp", "with_date", "time"),
    [
        (1_001, "1970-01-01T00:00:01.001Z", "00:00:01.001"),
        (253_402_300_800_000, "+10000-01-01T00:00:00.000Z", "00:00:00.000"),
        (-1, "-", "-"),  # Kafka's word for none
        (-2, "1969-12-31T23:59:59.998Z", "23:59:59.998"),
    ],
)
def test_a_time_is_in_utc_and_none_is_no_time(timestamp: int, with_date: str, time: str) -> None:
    assert (time_text(timestamp), time_text(timestamp, has_date=False)) == (with_date, time)


@pytest.mark.parametrize(
    "size",
    [SMALL, pytest.param(LARGE, marks=THOROUGH), pytest.param((20, 8), marks=THOROUGH)],
    ids=["80x24", "200x60", "20x8"],
)
def test_nothing_from_disk_is_a_command_to_the_terminal_or_markup(
    size: tuple[int, int], tmp_path: Path
) -> None:
    records = [
        Stored(at, at, each or None, each, ((each.decode("utf-8", "replace"), each),))
        for at, each in enumerate(HOSTILE)
    ]
    batches = [batch_v2([record]) for record in records]
    write_partition(tmp_path, {0: batches}, name="t\x1b[1mo-0")
    app = app_of(tmp_path)

    def ensure_harmless(driver: Driver) -> None:
        for line in driver.lines:
            bad = [each for each in line if unicodedata.category(each) in ("Cc", "Cs")]
            assert not bad, line
            assert not set(line) & set("\u202e\u2066\u202c\u2069\u2028"), line
            assert cell_len(line) == size[0], line

    async def steps(driver: Driver) -> None:
        await driver.until(lambda: isinstance(driver.app.screen, RecordsScreen))
        for offset in range(len(records)):
            await reaches(driver, offset)
            for _ in range(3):
                ensure_harmless(driver)
                await driver.press("p")
            await driver.press("c", "j")
        for _ in range(6):
            ensure_harmless(driver)
            await driver.press("tab", "space", "j")

    drive(app, steps, size)
    assert app.failure is None
