from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/kafka-tests.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def names() -> set[str]:
    """Return the names of all test functions and test files."""
    files = [file for file in (ROOT / "tests").rglob("*.py") if "golden/cases" not in str(file)]
    functions = [re.findall(r"\bdef (test_\w+)", file.read_text("utf-8")) for file in files]
    return {file.stem for file in files}.union(*functions)


def test_every_test_that_the_page_names_exists(names: set[str]) -> None:
    named = set(re.findall(r"\btest_\w*[a-z0-9]\b", PAGE))
    assert len(named) > 100
    assert not named - names


def test_every_file_that_the_page_names_exists() -> None:
    missing = {path for path in re.findall(r"tests/[\w/]+\.py", PAGE) if not (ROOT / path).exists()}
    assert not missing
