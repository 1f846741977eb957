"""The page that holds Spark's own tests against ours, held against the tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "tests/spark_tests.md").read_text(encoding="utf-8")


def test_every_test_that_the_page_names_exists() -> None:
    files = [file for file in (ROOT / "tests").rglob("*.py") if "golden/cases" not in str(file)]
    functions = [re.findall(r"\bdef (test_\w+)", file.read_text("utf-8")) for file in files]
    names = {file.stem for file in files}.union(*functions)
    named = set(re.findall(r"\btest_\w*[a-z0-9]\b", PAGE))
    assert len(named) > 60
    assert not named - names


def test_every_file_that_the_page_names_exists() -> None:
    missing = {path for path in re.findall(r"tests/[\w/]+\.py", PAGE) if not (ROOT / path).exists()}
    assert not missing


def test_every_row_says_ours_or_why_not() -> None:
    rows = [
        line for line in PAGE.splitlines() if line.startswith("| ") and "Spark's test" not in line
    ]
    answers = [row.split(" | ", 1)[1] for row in rows]
    assert len(answers) > 50
    assert not [each for each in answers if "`" not in each and "— " not in each]
