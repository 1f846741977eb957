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
    r"\bspark\b|s3://|abfss://|az://|gs://|pip install|COMPLETE|make |users|payments|billing"
    r"|/mnt/snapshot|/mnt/metadata|/data/logs|docker|customers|leave.page.cache"
)
_BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# The page, and which of the directories it is about; how many blocks are run at least.
PAGES = {
    "index": ("intact", 2),
    "recover": ("damaged", 5),
    "python": ("intact", 5),
    "sql": ("intact", 3),
}


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
def kitchen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Kitchen:
    samples, repaired, here = tmp_path / "samples", tmp_path / "repaired", tmp_path / "here"
    for each in (tmp_path / "bin", here):
        each.mkdir()
    monkeypatch.chdir(here)
    directory = samples / PAGES[request.param][0]
    kitchen = Kitchen({"/mnt/kafka-logs": directory, "/mnt/repaired": repaired}, tmp_path / "bin")
    kitchen.run(Step("sh", f"pylog demo {samples}", ""))
    return kitchen


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kitchen", "page"), [(each, each) for each in PAGES], indirect=["kitchen"]
)
def test_the_blocks_of_a_page_run_one_after_the_other(kitchen: Kitchen, page: str) -> None:
    names: dict[str, object] = {"__name__": "__page__"}
    count = 0
    for language, code in blocks(page):
        count += 1
        if language == "sh":
            kitchen.run(Step("sh", code, ""))
            continue
        real = code
        for shown, place in kitchen.places.items():
            real = real.replace(shown, str(place))
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(real, f"docs/{page}.md", "exec"), names)  # noqa: S102 - our page
    assert count >= PAGES[page][1]
