from __future__ import annotations

import io
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.release_check.checks import (
    changelog_problems,
    description_problems,
    linux_problems,
    metadata_problems,
    sdist_problems,
    uncommitted_problems,
    wheel_differences,
    wheel_problems,
)
from tests.release_check.distribution import Distribution, read_sdist, read_wheel
from tests.release_check.problem import StepFailedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tests.release_check.problem import Problem

METADATA = """\
Metadata-Version: 2.4
Name: sample
Version: 1.2.0
License-Expression: Apache-2.0
License-File: LICENSE
License-File: NOTICE
Project-URL: Source, https://host/sample
Description-Content-Type: text/markdown

# Sample

It [does](https://host/sample/blob/HEAD/docs/it.md) [something](#how).
"""
INFO = "sample-1.2.0.dist-info"
WHEEL = {
    "pylog/__init__.py": "",
    "pylog_jobs/demo.py": "",
    "sample-1.2.0.data/data/share/man/man1/pylog.1": ".TH",
    f"{INFO}/METADATA": METADATA,
    f"{INFO}/RECORD": "a",
    f"{INFO}/licenses/LICENSE": "may",
    f"{INFO}/licenses/NOTICE": "by",
}
MODULES = {"pylog/__init__.py", "pylog_jobs/demo.py"}
SDIST = {"PKG-INFO": METADATA, "LICENSE": "may", "NOTICE": "by", "storage_core/pylog/a.py": ""}
TRACKED = {*SDIST, "tests/golden/cases/large.tar.xz"} - {"PKG-INFO"}


def wheel(directory: Path, contents: Mapping[str, str], name: str = "s.whl") -> Distribution:
    with zipfile.ZipFile(directory / name, "w") as archive:
        for path, text in contents.items():
            archive.writestr(path, text)
    return read_wheel(directory / name)


def sdist(directory: Path, contents: Mapping[str, str]) -> Distribution:
    with tarfile.open(directory / "s.tar.gz", "w:gz") as archive:
        for path, text in contents.items():
            member = tarfile.TarInfo(f"sample-1.2.0/{path}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return read_sdist(directory / "s.tar.gz")


def texts_of(problems: Iterable[Problem]) -> list[str]:
    return [each.what for each in problems]


def changed(contents: Mapping[str, str], old: str, new: str) -> dict[str, str]:
    """Return contents whose metadata has another text in place of ``old``."""
    place = f"{INFO}/METADATA" if f"{INFO}/METADATA" in contents else "PKG-INFO"
    assert old in contents[place]
    return {**contents, place: contents[place].replace(old, new)}


def test_sound_distributions_have_no_problem(tmp_path: Path) -> None:
    of_tree, archive = wheel(tmp_path, WHEEL), sdist(tmp_path, SDIST)
    for each in (of_tree, archive):
        assert list(metadata_problems(each, "1.2.0")) == []
        assert list(description_problems(each)) == []
    assert list(wheel_problems(of_tree, MODULES)) == []
    assert list(sdist_problems(archive, TRACKED)) == []
    again = wheel(tmp_path, {**WHEEL, f"{INFO}/RECORD": "b"}, "again.whl")
    assert list(wheel_differences(of_tree, again)) == []


def test_another_version_is_told(tmp_path: Path) -> None:
    for each in (wheel(tmp_path, WHEEL), sdist(tmp_path, SDIST)):
        assert texts_of(metadata_problems(each, "1.3.0")) == [
            f"{each.name} has version 1.2.0, and pylog.__version__ is 1.3.0"
        ]


@pytest.mark.parametrize("licence", ["LICENSE", "NOTICE"])
def test_a_licence_has_to_be_there_and_named(tmp_path: Path, licence: str) -> None:
    without = {path: text for path, text in WHEEL.items() if not path.endswith(f"/{licence}")}
    unnamed = changed(WHEEL, f"License-File: {licence}\n", "")
    for contents in (without, unnamed):
        assert texts_of(metadata_problems(wheel(tmp_path, contents), "1.2.0")) == [
            f"s.whl lacks {licence}"
        ]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("Project-URL: Source, https://example.org/s\n", "s.whl has no real address for Source"),
        ("", "s.whl has no real address for anything"),
    ],
)
def test_a_made_up_address_is_a_warning(tmp_path: Path, line: str, what: str) -> None:
    contents = changed(WHEEL, "Project-URL: Source, https://host/sample\n", line)
    [problem] = metadata_problems(wheel(tmp_path, contents), "1.2.0")
    assert (problem.what, problem.is_warning) == (what, True)
    assert problem.advice.startswith("set project.urls before a release")


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("text/markdown", "text/plain", "s.whl has no description in Markdown"),
        ("# Sample", "Sample", "the description of s.whl begins with no heading"),
        (
            "(https://host/sample/blob/HEAD/docs/it.md)",
            "(docs/it.md)",
            "the description of s.whl links to docs/it.md, which an index does not have",
        ),
        (
            "It ",
            "![it](docs/it.png) ",
            "the description of s.whl links to docs/it.png, which an index does not have",
        ),
    ],
)
def test_a_description_that_an_index_cannot_show_is_told(
    tmp_path: Path, old: str, new: str, what: str
) -> None:
    assert texts_of(description_problems(wheel(tmp_path, changed(WHEEL, old, new)))) == [what]


def test_metadata_that_an_index_refuses_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(StepFailedError, match=r"would refuse the metadata of s\.whl: .*license"):
        wheel(tmp_path, changed(WHEEL, "Expression: Apache-2.0", "Expression: Whatever I like"))


@pytest.mark.parametrize(
    ("more", "less", "what"),
    [
        ("tests/test_a.py", "", "s.whl would install tests"),
        ("pylog/forgotten.py", "", "s.whl has pylog/forgotten.py, which git does not know"),
        ("", "pylog_jobs/demo.py", "s.whl lacks pylog_jobs/demo.py"),
        ("", "sample-1.2.0.data/data/share/man/man1/pylog.1", "s.whl lacks the manual pages"),
    ],
)
def test_a_wheel_has_our_modules_and_manual_and_nothing_else(
    tmp_path: Path, more: str, less: str, what: str
) -> None:
    contents = {path: text for path, text in WHEEL.items() if path != less}
    contents |= {more: ""} if more else {}
    assert texts_of(wheel_problems(wheel(tmp_path, contents), MODULES)) == [what]


@pytest.mark.parametrize(
    ("more", "less", "what"),
    [
        ("scratch.txt", "", "s.tar.gz has scratch.txt, which git does not know"),
        (
            "tests/golden/cases/large.tar.xz",
            "",
            "s.tar.gz has tests/golden/cases/large.tar.xz, which is left out of sdists",
        ),
        ("", "storage_core/pylog/a.py", "s.tar.gz lacks storage_core/pylog/a.py"),
    ],
)
def test_an_sdist_has_what_git_knows_but_for_the_large_files(
    tmp_path: Path, more: str, less: str, what: str
) -> None:
    contents = {path: text for path, text in SDIST.items() if path != less}
    contents |= {more: ""} if more else {}
    assert texts_of(sdist_problems(sdist(tmp_path, contents), TRACKED)) == [what]


def test_a_wheel_that_comes_out_otherwise_of_the_sdist_is_told(tmp_path: Path) -> None:
    other = {**WHEEL, "pylog/__init__.py": "x = 1", "pylog/more.py": ""}
    del other["pylog_jobs/demo.py"]
    assert texts_of(wheel_differences(wheel(tmp_path, WHEEL), wheel(tmp_path, other, "o.whl"))) == [
        "the wheel that is built of the sdist has another pylog/__init__.py",
        "only the wheel that is built of the sdist has pylog/more.py",
        "the wheel that is built of the sdist lacks pylog_jobs/demo.py",
    ]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("## Unreleased\n\n- All.\n", "the changelog has no section for 1.2.0"),
        ("## 1.2.0\n\n- All.\n", "the changelog has no date for 1.2.0"),
        (
            "## 1.2.0 - 2026-11-23\n\n## 1.1.0 - 2026-01-01\n\n- A.\n",
            "the changelog says nothing of 1.2.0",
        ),
    ],
)
def test_a_changelog_without_the_version_is_a_warning_that_says_what_to_do(
    text: str, what: str
) -> None:
    [problem] = changelog_problems(f"# Changelog\n\n{text}", "1.2.0")
    assert (problem.what, problem.is_warning) == (what, True)
    assert problem.advice


@pytest.mark.parametrize("heading", ["## 1.2.0 - 2026-11-23", "## [1.2.0] - 2026-11-23"])
def test_a_changelog_with_the_version_is_sound(heading: str) -> None:
    text = f"# Changelog\n\n{heading}\n\n### Added\n\n- All.\n\n## 1.1.0 - 2026-01-01\n"
    assert list(changelog_problems(text, "1.2.0")) == []


def test_what_is_not_committed_is_a_warning() -> None:
    assert list(uncommitted_problems("")) == []
    [problem] = uncommitted_problems(" M a\n?? b\n M c\n M d\n")
    assert (problem.what, problem.is_warning) == ("not committed: a, b, c and 1 more", True)


def test_a_wheel_for_linux_needs_no_library_and_no_version_of_one() -> None:
    shown = (
        "s.whl is consistent with manylinux_2_5.\n\nThe wheel references no external versioned\n"
        "symbols from system-provided shared libraries.\n\n"
        "The wheel requires no external shared libraries! :)\n"
    )
    assert list(linux_problems("s.whl", shown)) == []
    of_glibc = shown.replace("no external versioned\nsymbols", "external versioned symbols")
    (problem,) = linux_problems("s.whl", of_glibc)
    assert (
        problem.what == "s.whl: auditwheel does not say: references no external versioned symbols"
    )
