from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.website.counted_tests import KINDS, count_table, count_tests
from tests.website.page_tree import COUNTS, PageTree

ROOT = Path(__file__).parents[3]
FILES = {
    "README.md": "# project\n",
    "CONTRIBUTING.md": "[rules](docs/rules.md#one) [start](README.md)\n",
    "CHANGELOG.md": "nothing\n",
    "docs/index.md": "[rules](rules.md) [elsewhere](https://kafka.apache.org/a.md) [here](#one)\n",
    "docs/rules.md": "[settings](../conf/) [how](../CONTRIBUTING.md) [code](../src/a.py)\n"
    "```sh\n[not](../a/link.md)\n```\n![picture](a.svg)\n",
    "docs/a.svg": "<svg/>",
    "docs/api/index.md": "[rules](../rules.md) [license](../../LICENSE)\n",
    "conf/spark.conf": "a 1\n",
    "src/a.py": "pass\n",
    "LICENSE": "free\n",
}


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        file = tmp_path / "root" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    PageTree(tmp_path / "root", tmp_path / "pages").write()
    return tmp_path / "pages"


def test_pages_of_the_root_lie_beside_those_of_docs_and_links_follow_them(pages: Path) -> None:
    assert (pages / "contributing.md").read_text() == "[rules](rules.md#one) [start](index.md)\n"
    assert (pages / "api/index.md").read_text() == (
        "[rules](../rules.md) [license](../project/LICENSE)\n"
    )


def test_what_lies_outside_of_docs_comes_along(pages: Path) -> None:
    rules = (pages / "rules.md").read_text().splitlines()
    assert rules[0] == (
        "[settings](project/conf.md) [how](contributing.md) [code](project/src/a.py)"
    )
    assert (pages / "project/src/a.py").read_text() == "pass\n"
    assert (pages / "project/LICENSE").read_text() == "free\n"
    assert "## spark.conf\n\n```text\na 1\n```" in (pages / "project/conf.md").read_text()


def test_code_and_links_to_other_hosts_stay_as_they_are(pages: Path) -> None:
    assert "[not](../a/link.md)" in (pages / "rules.md").read_text()
    assert (pages / "index.md").read_text() == FILES["docs/index.md"]
    assert (pages / "a.svg").read_text() == "<svg/>"


def test_a_link_to_a_file_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("CONTRIBUTING.md", "CHANGELOG.md", "docs/index.md"):
        (tmp_path / name).write_text("[gone](../../gone.txt)\n" if "index" in name else "")
    with pytest.raises(FileNotFoundError):
        PageTree(tmp_path, tmp_path / "pages").write()


def test_every_kind_of_tests_is_counted() -> None:
    folders = {file.parent.relative_to(ROOT / "tests").parts[0] for file in _test_files()}
    assert folders - {"."} == set(KINDS)
    counts = count_tests(ROOT / "tests")
    assert all(counts.values())
    assert count_table(ROOT / "tests").count("\n") == len(KINDS) + 2


def test_methods_and_functions_count_and_helpers_do_not(tmp_path: Path) -> None:
    (tmp_path / "unit" / "inner").mkdir(parents=True)
    (tmp_path / "unit" / "inner" / "test_a.py").write_text(
        "def test_a(): ...\ndef helper(): ...\nclass A:\n    def test_b(self): ...\n"
    )
    (tmp_path / "unit" / "support.py").write_text("def test_not(): ...\n")
    assert count_tests(tmp_path)["unit"] == 2


def test_the_page_about_the_tests_has_a_place_for_the_counts() -> None:
    assert (ROOT / "docs/guarantees.md").read_text("utf-8").count(COUNTS) == 1


def test_the_page_about_the_tests_counts_directories_segments_and_cases_right() -> None:
    page = (ROOT / "docs/guarantees.md").read_text("utf-8")
    archives = list((ROOT / "tests/golden/cases").rglob("*.tar.xz"))
    assert f"**{len(archives)} directories that brokers wrote**" in page
    faults = _constant("tests/golden/test_single_byte_faults.py", "SEGMENTS")
    assert isinstance(faults, ast.List)
    assert f"every byte of {len(faults.elts)} segments" in " ".join(page.split())
    cases = _constant("tests/property/test_pushdown_equivalence.py", "CASES")
    assert f"{ast.literal_eval(cases):,} random cases" in page


def _constant(file: str, name: str) -> ast.expr:
    """Return the expression that a test file assigns to a constant."""
    [value] = [
        each.value
        for each in ast.parse((ROOT / file).read_text("utf-8")).body
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == name
    ]
    return value


def _test_files() -> list[Path]:
    return [file for file in (ROOT / "tests").rglob("test_*.py") if "cases" not in file.parts]


def test_a_picture_for_light_and_dark_follows_the_colours_of_the_site(tmp_path: Path) -> None:
    picture = (
        '<picture>\n  <source media="(prefers-color-scheme: dark)" srcset="a-dark.svg">\n'
        '  <img alt="what it shows" src="a-light.svg">\n</picture>\n'
    )
    assert site_of(tmp_path, picture) == (
        "![what it shows](a-light.svg#only-light) ![what it shows](a-dark.svg#only-dark)\n"
    )


def test_sections_between_the_marks_become_tabs(tmp_path: Path) -> None:
    text = "# A\n<!-- tabs -->\n### One\n\n```\n### no\n```\n### Two\nb\n<!-- end of tabs -->\nc\n"
    assert site_of(tmp_path, text) == (
        '# A\n\n=== "One"\n\n    <a id="one"></a>\n\n    ```\n    ### no\n    ```\n'
        '=== "Two"\n\n    <a id="two"></a>\n    b\nc\n'
    )


def site_of(folder: Path, text: str) -> str:
    """Return what becomes of a page on the site."""
    (folder / "docs").mkdir()
    for name in ("a-light.svg", "a-dark.svg"):
        (folder / "docs" / name).write_text("<svg/>")
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        (folder / name).write_text("")
    (folder / "docs/index.md").write_text(text)
    PageTree(folder, folder / "pages").write()
    return (folder / "pages/index.md").read_text()
