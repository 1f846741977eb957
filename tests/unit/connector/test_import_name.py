"""What is said where ``import pylog`` gives another package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pylog
import pyspark_pylog
from pyspark_pylog.spark_workarounds import worker_process


def run(code: str, first_on_path: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(first_on_path), str(Path(pyspark_pylog.__file__).parents[1])])
    return subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        cwd=first_on_path,
        timeout=120,
    )


@pytest.fixture
def script_folder(tmp_path: Path) -> Path:
    """Make a folder with a script that is called ``pylog.py``."""
    (tmp_path / "pylog.py").write_text("level = 'INFO'\n")
    return tmp_path


def test_here_it_is_ours() -> None:
    assert worker_process.IS_OURS


def test_spark_finds_a_source_that_says_what_hides_ours(script_folder: Path) -> None:
    code = (
        "import pyspark_pylog; source = pyspark_pylog.DefaultSource; print(source.name())\n"
        "try: source({})\n"
        "except ImportError as error: print(error)\n"
    )
    done = run(code, script_folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        f"pylog\n'import pylog' gives {script_folder / 'pylog.py'}, which is not of pyspark-pylog: "
        "another distribution, or a file beside your script, has the same import name. Rename the "
        "file, or install pyspark-pylog into an environment of its own\n"
    )


@pytest.mark.parametrize("name", ["table", "session", "lag", "topic_views"])
def test_every_public_name_says_so(name: str, script_folder: Path) -> None:
    done = run(f"import pyspark_pylog; pyspark_pylog.{name}", script_folder)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ImportError: 'import pylog' gives ")


@pytest.fixture
def copied_package(tmp_path: Path) -> Path:
    """Make a copy of our package, for another distribution to change."""
    ignored = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(Path(pylog.__file__).parent, tmp_path / "pylog", ignore=ignored)


def test_the_program_says_that_another_distribution_has_written_over_it(
    copied_package: Path,
) -> None:
    (copied_package / "__init__.py").write_text("level = 'INFO'\n")
    done = run("from pylog.cli.main import main; main()", copied_package.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"pylog: error: {copied_package}/__init__.py is not of pyspark-pylog: another distribution "
        "has the same import name. Uninstall it and install pyspark-pylog again, or give each an "
        "environment\n"
    )


def test_the_program_says_that_another_distribution_has_taken_its_files_along(
    copied_package: Path,
) -> None:
    (copied_package / "__init__.py").unlink()
    alone = {**os.environ, "PYTHONPATH": str(copied_package.parent)}
    done = subprocess.run(
        [sys.executable, "-S", "-c", "from pylog.cli.main import main; main()"],  # no other pylog
        check=False,
        capture_output=True,
        text=True,
        env=alone,
        cwd=copied_package.parent,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "pylog: error: the package pylog has lost files, as it does when another distribution that "
        "has the same import name is uninstalled. Install pyspark-pylog again\n"
    )
