"""The notebooks run from top to bottom in Jupyter's own kernel, and carry no output."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.spark_session import NEEDS_SPARK, SPARK_CONF, require_java

if TYPE_CHECKING:
    from tests.support.golden import GoldenRoot

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = {
    # Each with how many pictures it draws.
    "01_explore_a_topic_with_spark": 3,
    "02_find_and_follow_records": 2,
    "03_ingest_a_table_and_read_it_back": 1,
    "04_anatomy_of_a_segment": 4,
    "05_recover_a_damaged_disk": 1,
    "06_typed_values": 1,
}
READING = ["02_find_and_follow_records", "04_anatomy_of_a_segment"]


def _marks_of(name: str) -> list[pytest.MarkDecorator]:
    if name in READING:
        return []
    if name.startswith(("05_", "06_")):
        return [pytest.mark.thorough]
    return [*NEEDS_SPARK, *([pytest.mark.thorough] if name.startswith("03_") else [])]


def code_cells(name: str) -> list[dict[str, Any]]:
    book = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    return [cell for cell in book["cells"] if cell["cell_type"] == "code"]


def render(name: str, directory: Path, **variables: str) -> str:
    """Run a notebook in a copy of the folder; return it as HTML, with its output."""
    folder = directory / "notebooks"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__", ".ipynb*"))
    environment = {
        **os.environ,
        "JAVA_HOME": str(require_java()),
        "SPARK_CONF_DIR": str(SPARK_CONF),
        "PYTHONWARNINGS": "default",
        **variables,
    }
    convert = [sys.executable, "-m", "nbconvert", "--to", "html", "--execute", f"{name}.ipynb"]
    ran = subprocess.run(
        convert,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return (folder / f"{name}.html").read_text(encoding="utf-8")


def tables(html: str) -> list[list[str]]:
    """Return the cells of each table that pylog's objects show."""
    found = re.findall(r"<div><div><strong>.*?</table>", html, re.DOTALL)
    return [re.findall(r"<td[^>]*>(.*?)</td>", each) for each in found]


def test_the_list_of_notebooks_is_whole() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NOTEBOOKS)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_carries_no_output(name: str) -> None:
    for cell in code_cells(name):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=_marks_of(name)) for name in NOTEBOOKS],
)
@pytest.mark.slow
def test_a_notebook_runs_from_top_to_bottom_and_draws(name: str, tmp_path: Path) -> None:
    html = render(name, tmp_path)
    # Such as Spark's, of workers whose rows nobody takes: a reader would take it for a failure.
    assert "Traceback (most recent call last)" not in html
    assert html.count('src="data:image/png;base64,') == NOTEBOOKS[name]
    assert tables(html)


@pytest.mark.parametrize("name", READING)
def test_a_notebook_looks_at_the_directory_that_is_named(
    name: str, tmp_path: Path, golden_root: GoldenRoot
) -> None:
    directory = golden_root.case("4.3.0/internal-logdir")
    html = render(name, tmp_path, PYLOG_DIRECTORY=str(directory), PYLOG_TOPIC="orders")
    assert f"{directory}" in html
    assert not (tmp_path / "build").exists()
