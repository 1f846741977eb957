"""The browser as its users see it: screens, keys, and text that is not to be trusted."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from pylog.cli.browse.record_windows import PartitionRecords, RowWindow
from tests.support.batches import Stored, batch_v2, plain_records, with_bad_crc
from tests.support.log_files import write_partition
from tests.unit.cli.browse.conftest import LARGE, SMALL, Driver, app_of, drive
from tests.unit.cli.browse.walks import reaches, tells

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
        await driver.press("z")
        await driver.until(lambda: driver.app.screen.maximized is not None)
        await looks_like(driver, f"full-record-{name}", tmp_path)
        await driver.press("z")
        await driver.sees("offset 14 of 59")
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


LONG_TOPIC = "a-topic-with-a-name-that-is-longer-than-any-screen-is-wide." * 4


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x60"])
def test_keys_and_values_stay_on_the_screen_beside_a_long_name(
    size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "logs").mkdir()
    monkeypatch.chdir(tmp_path)
    for number in (8, 9):
        batch = batch_v2([Stored(0, 1_731_000_000_000, b"user-7", b'{"found": 1}')])
        write_partition(tmp_path / "logs", {0: [batch]}, name=f"{LONG_TOPIC}-{number}")
    shown = f"{size[0]}x{size[1]}"

    async def steps(driver: Driver) -> None:
        await driver.sees("1 topic, 2 partitions", "lag is not known")
        await looks_like(driver, f"long-names-{shown}", tmp_path)
        await driver.press("slash")
        await driver.type("found")
        await driver.press("enter")
        await driver.sees("2 matches", "-8 ", "-9 ", "user-7", '{"found": 1}')
        await driver.press("enter")
        await driver.sees("-8  offset 0", "user-7")

    drive(app_of("logs"), steps, size)


def test_the_footer_has_the_keys_of_the_pane_with_the_focus(demo_directory: Path) -> None:
    async def footer(driver: Driver, *keys: str) -> str:
        await driver.press(*keys)
        await driver.settled()
        return " ".join(driver.lines[-1].split())

    async def steps(driver: Driver) -> None:
        await driver.sees("9 partitions")
        common = "/ Search all q Quit d Doctor ? Help"
        assert await footer(driver, "G") == f"⏎ Partitions tab Next pane {common}"
        assert await footer(driver, "enter") == f"⏎ Records esc Topics tab Next pane {common}"
        assert await footer(driver, "escape") == f"⏎ Partitions tab Next pane {common}"
        await driver.press("enter", "enter")
        await driver.sees("orders-0@0")
        common = "/ Search : Go to d Doctor c Copy ? Help"
        assert await footer(driver) == f"e Damage esc Back ⏎ Details {common}"
        assert await footer(driver, "enter") == f"⏎ Fold esc Table p View q Back {common}"
        assert await footer(driver, "escape") == f"e Damage esc Back ⏎ Details {common}"

    drive(app_of(demo_directory / "damaged"), steps)


def test_damage_is_remembered_once_it_was_read(tmp_path: Path) -> None:
    batches = [batch_v2(plain_records(first, 100)) for first in range(0, 3_000, 100)]
    batches[27] = with_bad_crc(batches[27])
    write_partition(tmp_path, {0: batches})

    async def steps(driver: Driver) -> None:
        await driver.sees("orders-0@0")
        await driver.press("G")
        await reaches(driver, 2_999)
        await driver.sees("damage in 1 place so far")
        await driver.press("g")
        await reaches(driver, 0)
        assert any(line.rstrip().endswith("!") for line in driver.lines)
        await driver.press("e")
        await reaches(driver, 2_700)

    drive(app_of(tmp_path), steps)


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
