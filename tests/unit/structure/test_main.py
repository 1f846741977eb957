from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.structure import __main__ as program
from tests.structure.page import PAGE, PICTURE

if TYPE_CHECKING:
    from pathlib import Path

PYPROJECT = """
[[tool.importlinter.contracts]]
type = "layers"
layers = ["pyspark_pylog", "pylog"]

[[tool.importlinter.contracts]]
type = "layers"
layers = ["pylog.log", "pylog.files"]
"""
SOUND = {
    "pyproject.toml": PYPROJECT,
    "docs/kept.txt": "",
    "man/kept.txt": "",
    "storage_core/pylog/__init__.py": "",
    "storage_core/pylog/log/__init__.py": "import pylog.files",
    "storage_core/pylog/files.py": "",
    "connector/pyspark_pylog/__init__.py": "import pylog",
    "tests/support/builder.py": "import zlib",
    "tests/structure/headings.txt": "",
    "tests/structure/tested_elsewhere.txt": "",
}
BROKEN = {
    "storage_core/pylog/files.py": "x = 1\nx = 2\n",
    "storage_core/pylog/log/a.py": "def f():\n" + "    pass\n" * 80,
    "storage_core/pylog/log/b.py": "import pylog.log.c",
    "storage_core/pylog/log/c.py": "import pylog.log.b",
    "storage_core/pylog/log/d.py": "def f():\n    import pylog.files",
    "storage_core/pylog/other.py": "import pylog.log",
    "connector/pyspark_pylog/a.py": "import importlib\nimport pylog.files",
    "tests/support/builder.py": "import pylog",
    "storage_core/pylog/log/e.py": "def f(x):\n    return x or 1",
    "storage_core/pylog/log/g.py": "import a\nA = 1\n\n# More.\n\n\nB = 2\n",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path, SOUND)
    monkeypatch.setattr(program, "ROOT", tmp_path)
    return tmp_path


def write(root: Path, sources: dict[str, str]) -> None:
    for path, source in sources.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(source)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["structure", *arguments])
    return program.main()


def test_a_sound_project_has_no_problem_once_its_page_is_written(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch) == 1
    assert f"{PAGE}:1: the file is out of date" in capsys.readouterr().out
    assert run(monkeypatch, "--write") == 0
    assert (project / PICTURE).exists()
    assert run(monkeypatch) == 0
    assert "No problem" in capsys.readouterr().out


@pytest.mark.parametrize(
    "what",
    [
        "storage_core/pylog/files.py:2: x is bound again, first on line 1",
        "storage_core/pylog/log/a.py:1: f has 81 lines",
        "storage_core/pylog/log/b.py:1: a circle of imports",
        "storage_core/pylog/log/d.py:2: pylog.files is imported inside a function",
        "storage_core/pylog/other.py:1: pylog.other is in no layer",
        "connector/pyspark_pylog/a.py:1: the connector uses importlib",
        "connector/pyspark_pylog/a.py:2: pyspark_pylog.a imports pylog.files, which is not public",
        "tests/support/builder.py:1: tests.support.builder imports pylog",
        "storage_core/pylog/log/g.py:4: a second subject below a heading: More.",
        "storage_core/pylog/log/e.py:1: no test file mirrors pylog.log.e",
        f"{PAGE}:1: the file is out of date",
    ],
)
def test_every_broken_rule_is_reported(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    what: str,
) -> None:
    write(project, BROKEN)
    assert run(monkeypatch) == 1
    assert what in capsys.readouterr().out


def test_an_import_that_points_up_is_reported(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, {"storage_core/pylog/files.py": "import pylog.log"})
    assert run(monkeypatch) == 1
    assert "pylog.files imports pylog.log, which is not below it" in capsys.readouterr().out
