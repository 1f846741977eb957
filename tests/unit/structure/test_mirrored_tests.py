from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.structure.mirrored_tests import LIST, MOST, mirrored_tests
from tests.unit.structure.made_up import tree_of

if TYPE_CHECKING:
    from pathlib import Path

DECIDES = "def f(x):\n    return 1 if x else 2\n"


def problems(root: Path, sources: dict[str, str], listed: str = "") -> list[str]:
    (root / LIST).parent.mkdir(parents=True, exist_ok=True)
    (root / LIST).write_text(listed)
    return list(map(str, mirrored_tests(root, tree_of(sources))))


def make(root: Path, path: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).touch()


@pytest.mark.parametrize(
    ("module", "path"),
    [
        ("pylog.log.append", "tests/unit/log/test_append.py"),
        ("pylog.model", "tests/unit/test_model.py"),
        ("pyspark_pylog.options", "tests/unit/connector/test_options.py"),
        ("pylog_jobs.ingest", "tests/unit/jobs/test_ingest.py"),
    ],
)
def test_a_module_has_its_tests_at_the_mirrored_path(
    tmp_path: Path, module: str, path: str
) -> None:
    (found,) = problems(tmp_path, {module: DECIDES})
    assert f"no test file mirrors {module}" in found
    assert f"Write {path}" in found
    make(tmp_path, path)
    assert problems(tmp_path, {module: DECIDES}) == []


def test_what_decides_nothing_needs_none(tmp_path: Path) -> None:
    assert problems(tmp_path, {"pylog.a": "B = [1]\ndef f():\n    return B\n"}) == []


def test_the_list_names_what_tests_a_module_and_has_no_stale_lines(tmp_path: Path) -> None:
    sources = {"pylog.a": DECIDES}
    (found,) = problems(tmp_path, sources, "# why\npylog.a tests/unit/test_b.py\n")
    assert f"{LIST}:2: there is no tests/unit/test_b.py" in found
    make(tmp_path, "tests/unit/test_b.py")
    assert problems(tmp_path, sources, "pylog.a tests/unit/test_b.py a reason\n") == []
    (found,) = problems(tmp_path, sources, "pylog.a tests/unit/test_b.py\n")
    assert "no reason is given for pylog.a" in found
    make(tmp_path, "tests/unit/test_a.py")
    (found,) = problems(tmp_path, sources, "pylog.a tests/unit/test_b.py a reason\n")
    assert "pylog.a is gone, or has a test file" in found


def test_the_list_is_short(tmp_path: Path) -> None:
    names = [f"pylog.a{number:02}" for number in range(MOST + 1)]
    make(tmp_path, "tests/unit/test_b.py")
    listed = "".join(f"{each} tests/unit/test_b.py a reason\n" for each in names)
    (found,) = problems(tmp_path, dict.fromkeys(names, DECIDES), listed)
    assert f"{LIST}:{MOST + 1}: more than {MOST} modules" in found
