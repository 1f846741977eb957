from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.website.notebook_page import notebook_page
from tests.website.page_tree import PageTree

NOTEBOOKS = sorted((Path(__file__).parents[3] / "notebooks").glob("*.ipynb"))
CELLS = [
    {"cell_type": "markdown", "source": ["# Title\n", "\n", "See [the page](../docs/spark.md).\n"]},
    {"cell_type": "code", "source": ["import pylog\n", "pylog.scan(path)"], "outputs": []},
    {"cell_type": "markdown", "source": []},
]


def test_texts_stay_and_code_is_a_block(tmp_path: Path) -> None:
    notebook = tmp_path / "01_look.ipynb"
    notebook.write_text(json.dumps({"cells": CELLS}), "utf-8")
    assert notebook_page(notebook) == (
        "# Title\n\nSee [the page](../docs/spark.md).\n\n"
        "This is `notebooks/01_look.ipynb`; `jupyter lab notebooks` in a clone runs it.\n\n"
        "```python\nimport pylog\npylog.scan(path)\n```\n"
    )


def test_a_link_to_a_notebook_leads_to_its_page_and_links_in_it_to_theirs(tmp_path: Path) -> None:
    root, site = tmp_path / "root", tmp_path / "site"
    for name, text in {
        "docs/index.md": "[look](../notebooks/01_look.ipynb)\n",
        "docs/spark.md": "# Spark\n",
        "CONTRIBUTING.md": "nothing\n",
        "CHANGELOG.md": "nothing\n",
        "notebooks/01_look.ipynb": json.dumps({"cells": CELLS}),
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    (root / "tests").mkdir()
    PageTree(root, site).write()
    assert (site / "index.md").read_text() == "[look](project/notebooks/01_look.ipynb.md)\n"
    page = (site / "project" / "notebooks" / "01_look.ipynb.md").read_text()
    assert "[the page](../../spark.md)" in page


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_begins_with_a_heading(notebook: Path) -> None:
    assert notebook_page(notebook).startswith("# ")
