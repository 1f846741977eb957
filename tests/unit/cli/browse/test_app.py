"""The browser as its users see it: screens, keys, and text that is not to be trusted."""

from __future__ import annotations

import hashlib
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

from pylog.cli.browse import record_table
from pylog.cli.browse.record_tree import SHOWN_BYTES
from pylog.cli.browse.record_windows import PartitionRecords, RowWindow
from pylog.cli.browse.records_screen import RecordsScreen
from pylog.cli.browse.search_screen import SearchScreen
from tests.support.batches import Stored, batch_v2, plain_records, with_bad_crc
from tests.support.log_files import write_partition
from tests.unit.cli.browse.conftest import LARGE, SMALL, Driver, app_of, drive

if TYPE_CHECKING:
    from collections.abc import Callable

    from pylog.cli.browse.app import BrowseApp
    from pylog.cli.browse.record_table import RecordTable
    from tests.unit.cli.conftest import Outcome

THOROUGH = pytest.mark.thorough
SCREENS = Path(__file__).parent / "screens"


async def looks_like(driver: Driver, name: str, tmp_path: Path) -> None:
    """Compare the screen with the one that somebody has looked at."""
    text = await driver.settled()
    (tmp_path / f"{name}.txt").write_text(text)
    expected = SCREENS / f"{name}.txt"
    assert text == (expected.read_text() if expected.exists() else ""), (
        f"{name} looks different: if {tmp_path / name}.txt is right, copy it to {SCREENS}"
    )


def state_of(directory: Path) -> dict[str, tuple[int, str]]:
    return {
        str(path): (
            path.stat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in [directory, *directory.rglob("*")]
    }


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


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x60"])
def test_screens_are_those_that_were_looked_at(
    size: tuple[int, int],
    demo_directory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(demo_directory)
    name = f"{size[0]}x{size[1]}"
    before = state_of(demo_directory)

    async def steps(driver: Driver) -> None:
        await driver.sees("33 grp-late", "9 partitions")
        await driver.press("G")
        await driver.sees("4.2KiB         2")
        await looks_like(driver, f"topics-{name}", tmp_path)
        await driver.press("enter", "enter")
        await driver.sees("orders-0@0")
        await driver.press("e")
        await driver.sees("offsets 15 to 27")
        await looks_like(driver, f"damage-{name}", tmp_path)
        await driver.press("k")
        await driver.sees("orders-0@14", "offset 14 of 59")
        await looks_like(driver, f"record-{name}", tmp_path)
        await driver.press("d")
        await driver.sees("damaged_batches", "15 to 27")
        await looks_like(driver, f"findings-{name}", tmp_path)
        await driver.press("escape", "slash")
        await driver.sees("--value-regex")
        await driver.type("$.currency=JPY")
        await driver.press("enter")
        await driver.sees("5 matches in 47 records")
        await looks_like(driver, f"search-{name}", tmp_path)

    drive(app_of("damaged"), steps, size)
    assert state_of(demo_directory) == before


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x60"])
def test_the_doctor_reads_all_partitions_from_the_first_screen(
    size: tuple[int, int], demo_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(demo_directory)

    async def steps(driver: Driver) -> None:
        await driver.sees("33 grp-late", "9 partitions")
        await driver.press("d")
        await driver.sees("20 records are lost")
        await driver.press("G")
        await driver.sees("3 findings", *(["damaged_batches, offsets 15 to 27"] * (size == LARGE)))
        await looks_like(driver, f"examined-{size[0]}x{size[1]}", tmp_path)

    drive(app_of("damaged"), steps, size)


def test_enter_opens_and_q_goes_back_to_the_first_screen_and_leaves(demo_directory: Path) -> None:
    app = app_of(demo_directory / "intact", "-t", "orders", "-p", "1")

    async def steps(driver: Driver) -> None:
        await driver.sees("orders-1@0")
        await driver.press("q")
        await driver.sees("TOPIC", "PARTITION")
        await driver.press("enter")
        await driver.sees("orders-1@0")
        await driver.press("q", "q")
        await driver.until(lambda: not app.is_running or app._exit)

    drive(app, steps)


POSITIONS = [
    ("57", 57),
    ("0", 0),
    ("999", 59),
    ("-10", 50),
    ("50%", 29),
    ("2024-11-07T17:20:58Z", 45),
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


def told(app: BrowseApp) -> str:
    """Return the notifications that are on the screen."""
    return "\n".join(each.message for each in app._notifications)


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


NO_SEARCHES = [
    ("--nope x", "No such option"),
    ("--key a b", "belongs to no option"),
    ("--key 'a", "No closing quotation"),
    ("--key a --count", "--count is for output"),
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


def test_a_huge_value_is_cut_and_shown_on_request(tmp_path: Path) -> None:
    value = b"v" * (3 * SHOWN_BYTES)
    write_partition(tmp_path, {0: [batch_v2([Stored(0, 1, b"k", value)])]})

    async def steps(driver: Driver) -> None:
        await driver.sees("the first 64.0KiB here: l shows more")
        await driver.press("l")
        await driver.until(lambda: "here" not in driver.text and "192KiB" in driver.text)

    drive(app_of(tmp_path), steps, LARGE)


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


def test_a_log_that_grows_is_seen_after_r(tmp_path: Path) -> None:
    batches = [batch_v2(plain_records(first, 5)) for first in (0, 5)]
    write_partition(tmp_path, {0: batches[:1]})

    async def steps(driver: Driver) -> None:
        await driver.sees("offsets 0 to 4")
        write_partition(tmp_path, {0: batches})
        await driver.press("r")
        await driver.sees("offsets 0 to 9")

    drive(app_of(tmp_path), steps)


def test_help_lists_the_keys_of_the_screen(demo_directory: Path) -> None:
    async def steps(driver: Driver) -> None:
        await driver.sees("orders-0@0")
        await driver.press("question_mark")
        await driver.sees("Next match", "lnav, kaskade, VisiData", "Copy JSON")

    drive(app_of(demo_directory / "intact", "-t", "orders", "-p", "0"), steps, LARGE)


def test_an_error_has_no_escape_sequence(
    demo_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def around(self: PartitionRecords, offset: int) -> RowWindow:
        message = "cannot read a\x1b[2Jb"
        raise OSError(message)

    async def steps(driver: Driver) -> None:
        await tells(driver, "cannot read a\\x1b[2Jb")

    monkeypatch.setattr(PartitionRecords, "around", around)
    drive(app_of(demo_directory / "intact", "-t", "orders", "-p", "1"), steps)
