"""A notebook as a page: its texts, and its code as blocks. What it prints is not kept with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def notebook_page(notebook: Path) -> str:
    """Return the cells of a notebook in Markdown, and how to run them below the heading."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    parts = ["".join(cell["source"]).strip() for cell in cells]
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            parts[number] = f"```python\n{parts[number]}\n```"
    run = f"This is `notebooks/{notebook.name}`; `jupyter lab notebooks` in a clone runs it."
    return "\n\n".join([parts[0], run, *(each for each in parts[1:] if each)]) + "\n"
