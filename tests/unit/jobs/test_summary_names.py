"""Names in the summaries of jobs, as the code and the pages spell them."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from pylog_jobs import (
    cleanup,
    compact,
    diff,
    export,
    extract,
    ingest,
    job,
    merge,
    verify,
)

DOCS = Path(__file__).parents[3] / "docs"
NAME = re.compile("[a-z]+([A-Z][a-z]+)*")


@pytest.mark.parametrize(
    "module",
    [job, ingest, export, verify, compact, cleanup, merge, diff, extract],
    ids=lambda module: module.__name__,
)
def test_a_summary_is_written_in_camel_case(module: object) -> None:
    tree = ast.parse(inspect.getsource(module))  # type: ignore[arg-type]
    names = [
        key.value
        for each in ast.walk(tree)
        if isinstance(each, ast.Dict)
        for key in each.keys
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and "." not in key.value
    ]
    assert names
    assert [name for name in names if not NAME.fullmatch(name)] == []


def test_the_pages_show_them_in_camel_case_with_the_number_of_the_shape() -> None:
    text = "".join((DOCS / f"{page}.md").read_text("utf-8") for page in ("jobs", "json"))
    lines = [line for line in text.splitlines() if '"exitStatus"' in line or '"job":' in line]
    assert len(lines) == 3
    for line in lines:
        assert line.startswith('{"schemaVersion": 1, "job": ')
        names = [name for name in re.findall(r'"([^"]+)": ', line) if "." not in name]
        assert "exitStatus" in names
        assert [name for name in names if not NAME.fullmatch(name)] == []
