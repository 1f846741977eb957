"""Modules that are imported when they are first used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import pylog.kernels
from pylog.lazy_modules import LazyModule, LazyNames, load_name, modules_of


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a module that is not imported yet."""
    name = "pylog_test_of_lazy_modules"
    (tmp_path / f"{name}.py").write_text("answer = 42\n\n\ndef double(n):\n    return 2 * n\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return name


def test_a_lazy_module_is_imported_at_its_first_attribute(counted: str) -> None:
    module = LazyModule(counted)
    assert repr(module) == f"LazyModule({counted!r})"
    assert counted not in sys.modules
    assert module.double(21) == 42
    assert counted in sys.modules


def test_what_replaces_an_attribute_of_the_module_is_what_the_lazy_one_gives(
    counted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = LazyModule(counted)
    assert module.answer == 42
    monkeypatch.setattr(sys.modules[counted], "answer", 43)
    assert module.answer == 43


def test_an_attribute_that_the_module_has_not_is_an_attribute_error(counted: str) -> None:
    with pytest.raises(AttributeError, match=f"{counted}.*'nothing'"):
        _ = LazyModule(counted).nothing


def test_a_module_that_is_not_there_is_an_import_error_at_first_use() -> None:
    module = LazyModule("pylog.no_such_module")
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        _ = module.anything


def test_a_name_is_loaded_with_its_module(counted: str) -> None:
    assert load_name(counted, "answer") == 42


def test_a_lazy_name_becomes_an_attribute_of_its_package(
    counted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = sys.modules[__name__]
    monkeypatch.setattr(package, "answer", None, raising=False)  # is taken away afterwards
    names = LazyNames(__name__, {counted: ("double", "answer")})
    assert names.names == ["answer", "double"]
    assert counted not in sys.modules
    assert names.load("answer") == 42
    assert vars(package)["answer"] == 42
    with pytest.raises(AttributeError, match=f"module '{__name__}' has no attribute 'another'"):
        names.load("another")


@pytest.mark.parametrize(
    ("user", "heavy"),
    [
        ("pylog.files.storage", "pyarrow"),
        ("pylog.reading.log_end", "numpy"),
        ("pylog.reading.html_table", "html"),
        ("pylog.reading.reader", "pylog.reading.filtered_decode"),
        ("pylog.reading.scan", "pylog.reading.typed_choice"),
        ("pylog.cli.commands.cat", "pylog.typed.decoder"),
    ],
)
def test_a_user_of_heavy_parts_is_imported_without_them(user: str, heavy: str) -> None:
    code = f"import sys, {user}; print({heavy!r} in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_all_modules_of_a_package_are_given() -> None:
    names = {path.stem for path in Path(pylog.kernels.__path__[0]).glob("*.py")} - {"__init__"}
    found = [each.__name__ for each in modules_of(pylog.kernels)]
    assert found == sorted(f"pylog.kernels.{name}" for name in names)
