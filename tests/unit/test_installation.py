"""Hints install the way pylog was installed, and every one in code and pages names what exists."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pylog
from pylog import installation

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULES = [
    path
    for package in ("storage_core", "connector", "jobs")
    for path in sorted((ROOT / package).rglob("*.py"))
]


def installed(
    monkeypatch: pytest.MonkeyPatch,
    origin: dict[str, Any] | None,
    requires: list[str] | None = None,
) -> None:
    """Make pylog one that was installed from there."""
    text = None if origin is None else json.dumps(origin)
    found = SimpleNamespace(read_text=lambda _: text, requires=requires)
    monkeypatch.setattr(metadata, "distribution", lambda _: found)


def command(extra: str | None = "duckdb", *options: str) -> str:
    """Return the command without the program."""
    return pylog.jobs.install_command(extra, *options).partition(" install ")[2]


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (None, "'pyspark-pylog[duckdb]'"),
        (
            {"url": "https://example.org/pylog.git", "vcs_info": {"vcs": "git"}},
            "'pyspark-pylog[duckdb] @ git+https://example.org/pylog.git'",
        ),
        (
            {
                "url": "https://example.org/pylog.git",
                "vcs_info": {"vcs": "git", "requested_revision": "v1"},
            },
            "'pyspark-pylog[duckdb] @ git+https://example.org/pylog.git@v1'",
        ),
        (
            {"url": "https://example.org/p-1-py3-none-any.whl", "archive_info": {}},
            "'https://example.org/p-1-py3-none-any.whl[duckdb]'",
        ),
    ],
)
def test_what_was_installed_is_installed_with_the_extra(
    monkeypatch: pytest.MonkeyPatch, origin: dict[str, Any] | None, expected: str
) -> None:
    installed(monkeypatch, origin)
    assert command() == expected


def test_a_clone_is_named_by_its_path_and_stays_editable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clone = tmp_path / "a clone"
    clone.mkdir()
    url = clone.as_uri()
    assert "%20" in url
    installed(monkeypatch, {"url": url, "dir_info": {}})
    assert command() == f"'{clone}[duckdb]'"
    assert command(None, "--force-reinstall") == f"--force-reinstall '{clone}'"
    monkeypatch.chdir(clone)
    assert command() == "'.[duckdb]'"
    installed(monkeypatch, {"url": url, "dir_info": {"editable": True}})
    assert command() == "-e '.[duckdb]'"


def test_what_an_extra_brings_is_named_where_the_clone_is_gone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    requires = ["click>=8.1", "duckdb>=2.0; extra == 'duckdb'", 'polars>=2; extra == "polars"']
    installed(monkeypatch, {"url": (tmp_path / "gone.whl").as_uri()}, requires)
    assert command() == "'duckdb>=2.0'"
    assert command("polars") == "'polars>=2'"


def test_packages_of_a_clone_that_is_not_installed_are_installed_from_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)

    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    assert command() == f"'{Path(installation.__file__).parents[2]}[duckdb]'"


def test_the_pip_is_that_of_this_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    python = Path(sys.executable)
    monkeypatch.chdir(tmp_path)
    for on_path, expected in (
        (str(python.parent / "pip"), "pip install "),
        ("/usr/bin/pip", f"{shlex.quote(str(python))} -m pip install "),
        (None, f"{shlex.quote(str(python))} -m pip install "),
    ):
        monkeypatch.setattr("shutil.which", lambda _, found=on_path: found)
        assert pylog.jobs.install_command("duckdb").startswith(expected)
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/uv")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert pylog.jobs.install_command().startswith(f"uv pip install --python {python} ")


def test_code_has_no_hint_of_its_own() -> None:
    hints = {
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in MODULES
        for line in path.read_text("utf-8").splitlines()
        if "pyspark-pylog[" in line or re.search(r"pip install pyspark-pylog", line)
    }
    assert hints == set()


def test_every_extra_that_a_hint_names_exists() -> None:
    calls = re.compile(
        r"install_command\(\"?'?(\w+)|missing_package\(\"[^\"]+\", \"[^\"]+\", \"([\w,]+)\"\)"
    )
    texts = [path.read_text("utf-8") for path in [*MODULES, *PAGES]]
    named = {
        name
        for text in texts
        for match in calls.findall(text)
        for names in match
        if names
        for name in names.split(",")
    }
    named |= {
        name
        for text in texts
        for names in re.findall(r"'\.\[([\w,]+)\]'", text)
        for name in names.split(",")
    }
    named -= {"extra", "package", "None"}
    assert {"duckdb", "polars", "browse", "java", "lineage", "spark"} <= named <= set(EXTRAS)


@pytest.mark.parametrize(
    ("missing", "code", "message"),
    [
        (
            "pandas",
            "pylog.results.Scan.to_pandas(None)",
            "to_pandas needs pandas: .* install pandas",
        ),
        (
            "polars",
            "pylog.results.Scan.to_polars(None)",
            r"to_polars needs Polars: .* install .*\[polars\]",
        ),
        ("polars", "import pylog.polars", r"pylog.polars needs Polars: .* install .*\[polars\]"),
        ("duckdb", "import pylog.duckdb", r"pylog.duckdb needs DuckDB: .* install .*\[duckdb\]"),
        (
            "pyspark",
            "import pyspark_pylog",
            r"pyspark_pylog needs PySpark 4.0 or later: .* install .*\[spark,java\]",
        ),
    ],
)
def test_a_package_that_is_missing_is_named_with_what_installs_it(
    missing: str, code: str, message: str
) -> None:
    program = f"import sys; sys.modules[{missing!r}] = None; import pylog; {code}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert re.fullmatch(f"ModuleNotFoundError: {message}'?", done.stderr.splitlines()[-1])


@pytest.mark.slow
def test_the_hints_of_the_pages_are_what_pip_takes_in_a_clone() -> None:
    hints = {
        hint
        for path in PAGES
        for hint in re.findall(
            r"pip install ('\.\[[\w,]+\]'|\.)(?= |`|\n)", path.read_text("utf-8")
        )
    }
    assert len(hints) >= 7
    checked = ["--dry-run", "--no-deps", "--no-build-isolation", "--no-index"]
    for hint in sorted(hints):
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", *checked, *shlex.split(hint)],
            cwd=ROOT,
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert "Would install pyspark-pylog-" in done.stdout
        assert "does not provide the extra" not in done.stderr
