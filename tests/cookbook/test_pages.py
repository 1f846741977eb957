"""The guides: their blocks of code run, in the order of the page, on the sample directories."""

from __future__ import annotations

import contextlib
import io
import re
from typing import TYPE_CHECKING

import pytest

from tests.cookbook.recipes import ROOT, Kitchen, Step

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# What a block cannot have here: Spark, stores, packages, and directories that are not a demo's.
_ELSEWHERE = re.compile(
    r"\bspark\b|s3://|abfss://|az://|gs://|pip install|COMPLETE|make |--follow|/mnt/|/data/"
    r"|/var/|/etc/|docker|customers|leave.page.cache|jq |pylog browse|pylog serve|--as-user"
)
_DEMO = "pylog demo kafka"
_BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_RULES = re.compile(r"^```toml\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = {
    "index": 2,
    "recover": 5,
    "python": 5,
    "sql": 3,
    "operators": 35,
    "merge": 6,
    "diff": 6,
    "writing": 17,
    "erase": 3,
    "extract": 5,
    "mask": 3,
}
"""How many blocks of a page, or lines of its blocks for a shell, are run at least."""
ELSEWHERE = {
    "cookbook": "test_cookbook.py compares what its blocks print",
    "spark": "tests/unit/connector and tests/spark have its examples",
    "jobs": "its commands need sources, Spark and a scheduler; tests/unit/jobs/test_jobs_page.py",
    "clusters": "its commands need a cluster, a registry of images or a machine of its own",
    "dead-cluster": "its commands need the disks of several nodes; tests/broker starts them",
    "serving": "its commands serve until they are stopped; tests/unit/cli/commands/test_serve.py",
    "browse": "it needs a terminal; tests/unit/cli/browse",
    "typed-values": "the sample has no registry; tests/unit/typed",
    "compatibility": "it installs packages",
}
"""Pages whose blocks do not run here, and why."""


def blocks(page: str) -> Iterator[tuple[str, str]]:
    """Yield the blocks that can run here: language and code, each command on its own."""
    for language, code in _BLOCK.findall((ROOT / f"docs/{page}.md").read_text("utf-8")):
        if language == "python":
            if not _ELSEWHERE.search(code):
                yield language, code
        else:
            lines = code.replace("\\\n", " ").splitlines()
            yield from (("sh", each) for each in lines if each and not _ELSEWHERE.search(each))


@pytest.fixture
def kitchen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kitchen:
    (tmp_path / "bin").mkdir()
    monkeypatch.chdir(tmp_path)
    return Kitchen({}, tmp_path / "bin")


def test_each_page_with_a_block_runs_or_says_why_not() -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md") if _BLOCK.search(path.read_text())}
    assert pages - PAGES.keys() == ELSEWHERE.keys()


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run_one_after_the_other(
    kitchen: Kitchen, tmp_path: Path, page: str
) -> None:
    names: dict[str, object] = {"__name__": "__page__"}
    count = 0
    if ("sh", _DEMO) not in blocks(page):
        kitchen.run(Step("sh", _DEMO, ""))
    for name, rules in _RULES.findall((ROOT / f"docs/{page}.md").read_text("utf-8")):
        (tmp_path / name).write_text(rules)
    for language, code in blocks(page):
        count += 1
        if language == "sh":
            kitchen.run(Step("sh", code, ""))
            continue
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(code, f"docs/{page}.md", "exec"), names)  # noqa: S102 - our page
    assert count >= PAGES[page]
