"""The page that most people read first: what it shows is what the program prints."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.cookbook.recipes import ROOT, Kitchen, Step, read_recipes

if TYPE_CHECKING:
    from pathlib import Path

README = (ROOT / "README.md").read_text("utf-8")
COMMANDS, SPARK = read_recipes("README.md", "Try it", "Spark")


@pytest.fixture
def kitchen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kitchen:
    """Give a folder of the reader's own, which is the working directory."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return Kitchen({}, tmp_path / "bin")


def test_the_commands_print_what_the_page_says(kitchen: Kitchen) -> None:
    assert len(COMMANDS.steps) == 3
    for step in COMMANDS.steps:
        assert kitchen.run(step) == step.output


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_spark_prints_what_the_page_says(tmp_path: Path, kitchen: Kitchen) -> None:
    kitchen.run(Step("sh", "pylog demo kafka", ""))
    # The tests' Spark was started in another folder, from which it takes relative paths.
    spark_kitchen = Kitchen({"kafka/intact": tmp_path / "here/kafka/intact"}, kitchen.folder)
    [step] = SPARK.steps
    assert spark_kitchen.run(step) == step.output


def test_all_other_blocks_install_or_are_run_by_other_tests() -> None:
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    run = {step.code for recipe in (COMMANDS, SPARK) for step in recipe.steps}
    others = [code for language, code in blocks if language != "text" and code not in run]
    lines = [line.partition("#")[0].strip() for code in others for line in code.splitlines()]
    assert lines == ["pip install '.[spark,java]'", "make demo", "make test"]
