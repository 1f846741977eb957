"""What is said of the distribution: its description, its page on an index, its container image."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
README = (ROOT / "README.md").read_text("utf-8")
SUPPORT = (ROOT / "docs/compatibility.md").read_text("utf-8")


def index_page(readme: str, source_url: str) -> str:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page: str = module.index_page(readme, source_url)
    return page


@pytest.mark.parametrize(
    ("readme", "page"),
    [
        ("[a](docs/a.md)", "[a](https://host/p/blob/HEAD/docs/a.md)"),
        (
            "[a](docs/a.md#b), [c](d/)",
            "[a](https://host/p/blob/HEAD/docs/a.md#b), [c](https://host/p/blob/HEAD/d/)",
        ),
        ('<source srcset="a/b.svg">', '<source srcset="https://host/p/raw/HEAD/a/b.svg">'),
        ('<img src="a.svg">', '<img src="https://host/p/raw/HEAD/a.svg">'),
        ('<img src="https://d/e">', '<img src="https://d/e">'),
        ("[a](#b) [c](https://d/e) `f](g`", "[a](#b) [c](https://d/e) `f](g`"),
    ],
)
def test_links_of_an_index_page_are_absolute(readme: str, page: str) -> None:
    assert index_page(readme, "https://host/p") == page


def test_no_link_of_the_readme_stays_relative() -> None:
    page = index_page(README, "https://host/p")
    assert page.count("](https://host/p/blob/HEAD/") > 10
    assert page.count('="https://host/p/raw/HEAD/docs/doctor-') == 2
    assert re.findall(r"\]\((?!https?://|#)[^)]*\)", page) == []
    assert re.findall(r'src(?:set)?="(?!https?://)', page) == []


def test_pythons_are_the_ones_that_the_support_page_has_results_of() -> None:
    named = {
        each.rpartition(" ")[2]
        for each in PYPROJECT["project"]["classifiers"]
        if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", each)
    }
    tested = set(re.findall(r"^\| (3\.\d+)[ .]", SUPPORT, re.MULTILINE))
    assert named == tested
    assert min(named, key=lambda text: int(text[2:])) in PYPROJECT["project"]["requires-python"]


def test_tools_of_developers_are_no_extra() -> None:
    extras = PYPROJECT["project"]["optional-dependencies"]
    assert {"dev", "release"}.isdisjoint(extras)
    assert {"dev", "notebooks", "release"} <= set(PYPROJECT["dependency-groups"])


def test_the_notice_names_every_dependency() -> None:
    project = PYPROJECT["project"]
    needed = [project["dependencies"], *project["optional-dependencies"].values()]
    names = {re.split(r"[<>=;\[ ]", each)[0] for some in needed for each in some}
    listed = re.findall(r"^  ([a-z0-9-]+)  ", (ROOT / "NOTICE").read_text("utf-8"), re.MULTILINE)
    assert set(listed) == names


def test_the_image_runs_the_program_as_an_ordinary_user_on_a_tested_python() -> None:
    text = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    instructions = [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]
    stages = [rest for name, rest in instructions if name == "FROM"]
    pythons = {re.match(r"python:(3\.\d+)-slim-\w+", each)[1] for each in stages}  # type: ignore[index]
    [python] = pythons
    assert f"| {python}" in SUPPORT
    last = instructions[[name for name, _ in instructions].index("FROM", 1) :]
    kinds = [name for name, _ in last]
    assert kinds.index("USER") < kinds.index("ENTRYPOINT")
    assert dict(last)["USER"] not in {"root", "0"}
    assert dict(last)["ENTRYPOINT"] == '["/opt/pylog/bin/pylog"]'
    [build] = [rest for name, rest in instructions if name == "RUN" and "pip install" in rest]
    assert "--require-hashes -r requirements/core.lock" in build
    assert (ROOT / "requirements/core.lock").exists()
