"""An environment that has the wheel and what it needs, and nothing of the repository."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.release_check.problem import StepFailedError

if TYPE_CHECKING:
    from collections.abc import Sequence

_FOREIGN = ("PYTHON", "XDG_", "NUMBA_", "SPARK_", "PYSPARK_", "VIRTUAL_ENV", "UV_PROJECT")


def run(command: Sequence[str | Path], directory: Path, environment: dict[str, str]) -> str:
    """Run a program and return what it prints.

    Raises
    ------
    StepFailedError
        It ended with another status than 0; the text has the last lines that it wrote.
    """
    done = subprocess.run(
        command,
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode:
        last = "\n  ".join((done.stderr.strip() or done.stdout.strip()).splitlines()[-15:])
        shown = " ".join(map(str, command))
        msg = f"{shown} ended with status {done.returncode}:\n  {last}"
        raise StepFailedError(msg)
    return done.stdout


class FreshEnvironment:
    """A virtual environment of its own, and an empty directory to run programs in.

    Parameters
    ----------
    directory
        Where both are made; it has neither yet.

    Attributes
    ----------
    prefix
        The environment's directory.
    home
        What programs there take for the user's own directory; empty at first.
    """

    def __init__(self, directory: Path) -> None:
        self.prefix = directory / "environment"
        self._empty = directory / "empty"
        self._empty.mkdir(parents=True)
        self.home = directory / "home"
        self.home.mkdir()
        self._uv("venv", "--python", sys.executable, str(self.prefix))

    def install_locked(self, requirements: Path) -> None:
        """Install what a file of requirements lists, by its hashes."""
        self._uv(*self._install, "--require-hashes", "-r", str(requirements))

    def install_wheel(self, wheel: Path) -> None:
        """Install the wheel; what it needs has to be there, in versions that it takes."""
        self._uv(*self._install, "--no-deps", str(wheel))
        self._uv("pip", "check", "--python", str(self.prefix))

    def run(self, program: str, *arguments: str) -> str:
        """Return what one of the environment's programs prints; raises as `run` does."""
        return run([self.prefix / "bin" / program, *arguments], self._empty, self._variables())

    def installed(self) -> dict[str, str]:
        """Return a hash of each file of our packages, but for the bytecode that Python writes."""
        return {
            str(path.relative_to(self.prefix)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in self.prefix.glob("lib/python*/site-packages/py*log*/**/*")
            if path.is_file() and path.parent.name != "__pycache__"
        }

    def succeeds(self, program: str, *arguments: str) -> bool:
        """Return whether it ends with status 0."""
        try:
            self.run(program, *arguments)
        except StepFailedError:
            return False
        return True

    @property
    def _install(self) -> tuple[str, ...]:
        return ("pip", "install", "--quiet", "--python", str(self.prefix))

    def _uv(self, *arguments: str) -> None:
        command: list[str | Path] = [Path(sys.executable).with_name("uv"), *arguments]
        run(command, self._empty, self._variables())

    def _variables(self) -> dict[str, str]:
        """Return the variables of this process but those that lead to other installations."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
        return {
            **kept,
            "HOME": str(self.home),
            "PATH": f"{self.prefix / 'bin'}{os.pathsep}{os.environ['PATH']}",
        }
