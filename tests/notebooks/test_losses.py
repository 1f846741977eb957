"""What the damaged sample directory has lost is told in one way, with the same offsets and counts.

The truth is the intact directory: what it has, and a scan of the damaged one does not find.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import pylog
from tests.notebooks.test_notebooks import render
from tests.unit.cli.browse.conftest import LARGE, Driver, app_of, drive

ROOT = Path(__file__).parents[2]


class Loss(NamedTuple):
    partition: str
    records: int
    first: int
    last: int


_TEXT = re.compile(
    r"(?:([\w-]+): )?(\d+) records(?: lost| may be missing)?, offsets (\d+) to (\d+)"
)


def told(text: str, partition: str = "") -> set[Loss]:
    """Return the losses of a text, each in the one form; ``partition`` where it names none."""
    text = " ".join(text.split())
    return {
        Loss(name or partition, int(count), int(first), int(last))
        for name, count, first, last in _TEXT.findall(text)
    }


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("demo")
    assert run(directory, "demo", "kafka")
    return directory


def run(directory: Path, *arguments: str) -> str:
    """Return what the program prints, errors included."""
    command = [sys.executable, "-m", "pylog", *arguments]
    done = subprocess.run(
        command,
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


@pytest.fixture(scope="module")
def lost(demo: Path) -> set[Loss]:
    """Return what is in the intact directory alone."""
    offsets = {}
    for name in ("intact", "damaged"):
        scan = pylog.scan(
            demo / "kafka" / name, mode="DROPMALFORMED", columns=["topic", "partition", "offset"]
        )
        offsets[name] = {tuple(row.values()) for row in scan.to_table().to_pylist()}
    gone: dict[str, list[int]] = {}
    for topic, partition, offset in sorted(offsets["intact"] - offsets["damaged"]):
        gone.setdefault(f"{topic}-{partition}", []).append(offset)
    losses = {Loss(name, len(each), each[0], each[-1]) for name, each in gone.items()}
    assert losses == {Loss("orders-0", 13, 15, 27), Loss("orders-1", 7, 42, 48)}
    return losses


def test_doctor_and_the_copy_tell_all_of_it(demo: Path, lost: set[Loss], tmp_path: Path) -> None:
    output = run(demo, "doctor", "kafka/damaged", "--repair-to", str(tmp_path / "copy"))
    verdict, _, copy = output.partition("a copy of what is intact")
    assert verdict.startswith(f"{sum(each.records for each in lost)} records are lost: ")
    assert told(verdict) == lost
    assert told(copy) == lost


def test_cat_tells_what_it_passes_over(demo: Path, lost: set[Loss]) -> None:
    output = run(demo, "cat", "kafka/damaged", "--mode", "DROPMALFORMED")
    [line] = [line for line in output.splitlines() if line.startswith("pylog: warning: ")]
    assert told(line, "orders-0") == {each for each in lost if each.partition == "orders-0"}


def test_the_browser_tells_what_is_damaged(demo: Path, lost: set[Loss]) -> None:
    [orders] = [each for each in lost if each.partition == "orders-0"]

    async def steps(driver: Driver) -> None:
        await driver.sees("orders-0@0")
        await driver.press("e")
        await driver.sees(f"offsets {orders.first} to {orders.last}")
        assert orders in told(driver.text, "orders-0")

    drive(app_of(demo / "kafka/damaged", "-t", "orders", "-p", "0"), steps, LARGE)


def test_the_readme_tells_all_of_it(lost: set[Loss]) -> None:
    assert told((ROOT / "README.md").read_text("utf-8")) == lost


@pytest.mark.thorough
@pytest.mark.slow
def test_the_notebook_tells_all_of_it(lost: set[Loss], tmp_path: Path) -> None:
    page = re.sub(r"<[^>]+>", " ", render("05_recover_a_damaged_disk", tmp_path))
    found = told(page, "orders-0")
    assert lost <= found
    assert {each[1:] for each in found} == {each[1:] for each in lost}
