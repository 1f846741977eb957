"""The recipes of a page: their blocks of code, and what each prints."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROGRAM = f'#!/bin/sh\nexec "{sys.executable}" -m pylog "$@"\n'


class Step(NamedTuple):
    """A block of code, and the block of text after it.

    Attributes
    ----------
    language
        ``python`` or ``sh``.
    code, output
        As they stand on the page.
    """

    language: str
    code: str
    output: str


@dataclass(frozen=True)
class Recipe:
    """A section of the page."""

    title: str
    steps: tuple[Step, ...]

    @property
    def needs_spark(self) -> bool:
        """Whether a block uses a Spark session."""
        return any("pyspark_pylog.session" in step.code for step in self.steps)


def read_recipes(page: str, *titles: str) -> list[Recipe]:
    """Return the recipes of a page of the project: all its sections, or those with these titles.

    Raises
    ------
    ValueError
        A block of code has no block of text after it that says what it prints.
    """
    _, *sections = (ROOT / page).read_text(encoding="utf-8").split("\n## ")
    return [_recipe(each) for each in sections if not titles or each.startswith(titles)]


def _recipe(section: str) -> Recipe:
    title = section.partition("\n")[0]
    blocks = _BLOCK.findall(section)
    steps = []
    for (language, code), (kind, output) in zip(blocks[::2], blocks[1::2], strict=True):
        if language not in ("python", "sh") or kind != "text":
            msg = f"{title!r}: a block of {language} is followed by one of {kind}"
            raise ValueError(msg)
        steps.append(Step(language, code, output))
    return Recipe(title, tuple(steps))


@dataclass(frozen=True)
class Kitchen:
    """Where recipes are run: the folders that the page names, and what lies there.

    Attributes
    ----------
    places
        The real folder for each path of the page.
    folder
        An empty folder for the program ``pylog``.
    """

    places: dict[str, Path]
    folder: Path

    def run(self, step: Step) -> str:
        """Run a block; return what it prints to stdout, with the paths of the page."""
        code = step.code
        for shown, real in self.places.items():
            code = re.sub(rf"{shown}(?![\w-])", str(real), code)
        printed = self._run_shell(code) if step.language == "sh" else _run_python(code)
        for shown, real in self.places.items():
            printed = printed.replace(str(real), shown)
        return printed

    def _run_shell(self, code: str) -> str:
        program = self.folder / "pylog"
        program.write_text(_PROGRAM)
        program.chmod(0o755)
        path = f"{self.folder}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", code],
            env={**os.environ, "PATH": path, "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,  # it may have to compile kernels
            check=False,
        )
        assert "error" not in done.stderr, done.stderr
        return done.stdout


def _run_python(code: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "recipe", "exec"), {"__name__": "__recipe__"})  # noqa: S102 - our page
    return printed.getvalue()
