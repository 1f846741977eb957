"""The examples in docstrings, and the folder that they run in."""

from __future__ import annotations

import doctest
import inspect
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.cli.commands.demo import demo

if TYPE_CHECKING:
    from types import FunctionType, ModuleType

_CERTIFICATES = Path(__file__).with_name("certificates")
_OURS = ("pylog.", "pyspark_pylog.")
# Outputs may be wrapped, and leave out what differs between machines.
_FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def examples_in(*modules: ModuleType) -> dict[str, list[doctest.Example]]:
    """Return the examples of each public function, and of public classes that have some."""
    public = {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in modules
        for name in module.__all__
    }
    found = {
        name: _examples_of(value)
        for name, value in public.items()
        if inspect.isfunction(value) or inspect.isclass(value)
    }
    return {name: each for name, each in found.items() if each or inspect.isfunction(public[name])}


def _examples_of(value: FunctionType | type) -> list[doctest.Example]:
    """Return the examples in the docstring of a function, or of a class and its methods."""
    values = inspect.getmro(value) if inspect.isclass(value) else (value,)
    finder = doctest.DocTestFinder()
    return [
        example
        for each in values
        if each.__module__.startswith(_OURS)
        for test in finder.find(each, each.__qualname__, module=False)
        for example in test.examples
    ]


def run_examples(examples: list[doctest.Example], **names: object) -> str:
    """Run examples, which may use ``names``; return what they print that they do not show."""
    test = doctest.DocTest(examples, {"pylog": pylog, **names}, "examples", None, None, None)
    printed: list[str] = []
    doctest.DocTestRunner(optionflags=_FLAGS).run(test, out=printed.append)
    return "".join(printed)


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what ``pylog demo kafka`` unpacks, and the files that examples name."""
    folder = tmp_path_factory.mktemp("sample")
    demo.main([str(folder / "kafka")], standalone_mode=False)
    for file in _CERTIFICATES.iterdir():
        shutil.copy(file, folder)
    return folder


@pytest.fixture
def folder_of_examples(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory: a copy of the sample, which examples may change."""
    folder = tmp_path / "examples"
    shutil.copytree(sample, folder)
    monkeypatch.chdir(folder)
    return folder
