from __future__ import annotations

import io
import subprocess
import sys
from importlib import metadata
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import pylog

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def printed_versions() -> dict[str, str]:
    out = io.StringIO()
    pylog.show_versions(out)
    lines = out.getvalue().splitlines()
    return {line[:18].rstrip(): line[19:] for line in lines}


def test_it_shows_what_a_report_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYLOG_NUM_THREADS", "3")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nobody's business")
    rows = printed_versions()
    assert rows["pylog"].startswith(f"{pylog.__version__} (")
    assert rows["Python"].startswith(f"{sys.version.split()[0]} (cpython, {sys.executable}")
    assert (rows["numpy"], rows["pyarrow"]) == (np.__version__, pa.__version__)
    assert rows["PYLOG_NUM_THREADS"] == "3"
    assert "nobody's business" not in str(rows)
    assert "CLASH" not in rows


def test_it_says_what_stands_in_for_a_library_that_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def version(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", version)
    rows = printed_versions()
    assert rows["zstandard"] == "not installed: Arrow has zstd instead, slower"
    assert rows["numpy"] == f"MISSING: {pylog.jobs.install_command()}"
    assert rows["duckdb"] == "not installed"


def test_it_names_a_distribution_with_the_same_import_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / "other_logs-2.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: other-logs\nVersion: 2.0\n")
    (about / "top_level.txt").write_text("pylog\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert printed_versions()["CLASH"].startswith(
        "other-logs installs a package pylog as well: uninstall it"
    )


def test_it_imports_none_of_the_libraries() -> None:
    code = (
        "import sys, pylog; pylog.show_versions(); heavy = {'numpy', 'pyarrow', 'numba', 'lz4'}; "
        "print(*heavy & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("pylog ")
    assert done.stderr == "\n"
