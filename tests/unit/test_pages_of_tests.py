"""The pages that name our tests for those of others, held against the tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEAST_NAMES = {"kafka_tests": 100, "spark_tests": 60}


@pytest.fixture(params=LEAST_NAMES)
def page(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def text(page: str) -> str:
    return (ROOT / f"tests/{page}.md").read_text("utf-8")


@pytest.fixture(scope="module")
def names() -> set[str]:
    """Return the names of all test functions and test files."""
    files = [file for file in (ROOT / "tests").rglob("*.py") if "golden/cases" not in str(file)]
    functions = [re.findall(r"\bdef (test_\w+)", file.read_text("utf-8")) for file in files]
    return {file.stem for file in files}.union(*functions)


def test_every_test_that_the_page_names_exists(page: str, text: str, names: set[str]) -> None:
    named = set(re.findall(r"\btest_\w*[a-z0-9]\b", text))
    assert len(named) > LEAST_NAMES[page]
    assert not named - names


def test_every_file_that_the_page_names_exists(text: str) -> None:
    missing = {path for path in re.findall(r"tests/[\w/]+\.py", text) if not (ROOT / path).exists()}
    assert not missing


def test_every_row_about_a_test_of_spark_says_ours_or_why_not() -> None:
    lines = (ROOT / "tests/spark_tests.md").read_text("utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ") and "Spark's test" not in line]
    answers = [row.split(" | ", 1)[1] for row in rows]
    assert len(answers) > 50
    assert not [each for each in answers if "`" not in each and "— " not in each]
