from __future__ import annotations

from pathlib import Path

import pytest

from tests.cookbook.recipes import Kitchen, Recipe, Step, read_recipes
from tests.support.spark_session import NEEDS_SPARK

RECIPES = read_recipes("docs/cookbook.md")


@pytest.fixture
def kitchen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kitchen:
    data, programs = tmp_path / "data", tmp_path / "bin"
    data.mkdir()
    programs.mkdir()
    monkeypatch.chdir(tmp_path)
    kitchen = Kitchen({"/data": data}, programs)
    kitchen.run(Step("sh", "pylog demo kafka", ""))
    return kitchen


def check(recipe: Recipe, kitchen: Kitchen) -> None:
    for step in recipe.steps:
        assert kitchen.run(step) == step.output


@pytest.mark.parametrize(
    "recipe", [each for each in RECIPES if not each.needs_spark], ids=lambda each: each.title
)
def test_a_recipe_prints_what_the_page_says(recipe: Recipe, kitchen: Kitchen) -> None:
    check(recipe, kitchen)


@pytest.mark.parametrize(
    "recipe",
    [pytest.param(each, id=each.title, marks=NEEDS_SPARK) for each in RECIPES if each.needs_spark],
)
@pytest.mark.usefixtures("spark")
def test_a_recipe_for_spark_prints_what_the_page_says(recipe: Recipe, kitchen: Kitchen) -> None:
    # The tests' Spark was started in another folder, from which it takes relative paths.
    places = {**kitchen.places, "kafka/intact": Path.cwd() / "kafka" / "intact"}
    check(recipe, Kitchen(places, kitchen.folder))


@pytest.mark.parametrize("key", [b"\xff\x00\x80", b"\xc3", b"", b"\xf4\x90\x80\x80"])
def test_a_delta_table_is_in_sync_with_keys_of_any_bytes(kitchen: Kitchen, key: bytes) -> None:
    [recipe] = [each for each in RECIPES if each.title.startswith("Keep a Delta table in sync")]
    [step] = recipe.steps
    code = step.code.replace('"anna"', repr(key))
    expected = sorted([(key, b"30"), (b"carl", b"40")])
    assert kitchen.run(step._replace(code=code)) == f"{expected}\n"


def test_there_are_twenty_recipes_and_some_are_for_spark() -> None:
    assert len(RECIPES) >= 20
    assert all(recipe.steps for recipe in RECIPES)
    assert 3 <= sum(recipe.needs_spark for recipe in RECIPES) < len(RECIPES)
