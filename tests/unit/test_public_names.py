"""What is public: `pylog.__all__` and `pylog.errors`, loaded when used, enough for our own users.

The packages in `USERS` are users of the library like any other: they import nothing else of it.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import pylog

# What works rather than stands for something: it may need Arrow and Numba.
WORKERS = {
    "LogManager",
    "MetadataTable",
    "Scan",
    "UnifiedLog",
    "metadata_table",
    "read_table",
    "record_schema",
    "scan",
    "write_topic",
}
LOOKUPS = {"importlib.util", "importlib.metadata"}
"""Of `importlib`, what imports nothing of ours."""


USERS = ("pyspark_pylog", "pylog_jobs")
"""Packages that take public names alone; one inside `pylog` may import itself, too."""
PUBLIC_MODULES = {"pylog", "pylog.errors"}
LOADER = "pylog.lazy_modules"
"""What a package inside `pylog` loads its own modules with when they are used."""


def sources(package: str) -> list[Path]:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    [path] = spec.submodule_search_locations
    return sorted(Path(path).rglob("*.py"))


def seen_by_type_checkers() -> set[tuple[str, str]]:
    """Return (module, name) of what is imported for type checkers alone."""
    tree = ast.parse(Path(pylog.__file__).read_text())
    [block] = [each for each in tree.body if isinstance(each, ast.If)]
    names = set()
    for each in block.body:
        assert isinstance(each, ast.ImportFrom)
        assert each.module is not None
        for name in each.names:
            assert name.asname == name.name  # exported, as type checkers see it
            names.add((each.module, name.name))
    return names


def test_type_checkers_see_the_list_of_public_names() -> None:
    names = pylog._PUBLIC
    assert seen_by_type_checkers() == {(names.module_of(name), name) for name in names.names}


def test_every_public_name_is_there_and_no_other() -> None:
    assert len(set(pylog.__all__)) == len(pylog.__all__)
    for name in pylog.__all__:
        assert getattr(pylog, name) is not None
    assert set(pylog.__all__) <= set(dir(pylog))
    with pytest.raises(AttributeError, match="module 'pylog' has no attribute 'scna'"):
        _ = pylog.scna  # type: ignore[attr-defined]


def test_a_public_name_is_what_its_module_defines() -> None:
    for module, name in seen_by_type_checkers():
        found = getattr(pylog, name)
        assert found is getattr(importlib.import_module(module), name)
        # Not merely imported there: everything has one home.
        assert getattr(found, "__module__", module) in (module, "typing", "types"), name


def test_no_public_name_hides_a_module() -> None:
    assert {each.name for each in pkgutil.iter_modules(pylog.__path__)}.isdisjoint(pylog.__all__)


def test_modules_are_imported_as_any_are_and_scan_is_the_function() -> None:
    code = (
        "import pylog; scan = pylog.scan; import pylog.reading.reader, pylog.reading.scan; "
        "assert pylog.scan is scan is pylog.reading.scan.scan; assert callable(pylog.scan); "
        "assert pylog.reading.reader.TaskReader"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_values_are_loaded_without_arrow_and_numba() -> None:
    values = sorted(set(pylog.__all__) - WORKERS)
    code = (
        f"import sys, pylog; found = [getattr(pylog, name) for name in {values!r}]; "
        "print(*{'numpy', 'pyarrow', 'numba', 'typer', 'click', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


class _Uses(ast.NodeVisitor):
    """Collects what a module takes from `pylog`, and imports that no reader would look for."""

    def __init__(self, own_package: str) -> None:
        self.names: set[str] = set()
        self.modules: set[str] = set()
        self.late: list[str] = []
        self._own_package = own_package
        self._depth = 0

    def _note(self, module: str) -> None:
        top = module.partition(".")[0]
        is_own = f"{module}.".startswith(f"{self._own_package}.")
        if top == "pylog" and not is_own:
            self.modules.add(module)
        if self._depth and (top == "pylog" or is_own):
            self.late.append(module)
        if top == "importlib" and module not in LOOKUPS:
            self.late.append(module)

    def visit_Import(self, node: ast.Import) -> None:
        for each in node.names:
            self._note(each.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        self._note(module)
        if module == "pylog":
            self.names |= {each.name for each in node.names}

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name) and node.value.id == "pylog":
            self.names.add(node.attr)
        self.generic_visit(node)

    def _visit_function(self, node: ast.AST) -> None:
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _visit_function  # noqa: N815


def uses_of(path: Path, own_package: str) -> _Uses:
    uses = _Uses(own_package)
    uses.visit(ast.parse(path.read_text()))
    return uses


FILES = [
    pytest.param(path, package, id=f"{package}/{path.name}")
    for package in USERS
    for path in sources(package)
]


@pytest.mark.parametrize(("path", "package"), FILES)
def test_users_take_public_names_alone(path: Path, package: str) -> None:
    uses = uses_of(path, package)
    loaders = {LOADER} if package.startswith("pylog.") else set()
    assert uses.modules <= PUBLIC_MODULES | loaders
    assert uses.names <= {*pylog.__all__, "errors"}


@pytest.mark.parametrize(("path", "package"), FILES)
def test_users_import_at_the_head_of_a_file(path: Path, package: str) -> None:
    assert uses_of(path, package).late == []


def test_uses_are_found_wherever_they_are() -> None:
    uses = _Uses("ours")
    uses.visit(
        ast.parse(
            "import importlib\nimport importlib.util\nimport pylog.reading\n"
            "from pylog import scan\n"
            "if TYPE_CHECKING:\n  from pylog.model import X\n"
            "def f():\n  import ours.part\n  return lambda: pylog.nothing\n"
        )
    )
    assert uses.modules == {"pylog", "pylog.model", "pylog.reading"}
    assert uses.names == {"nothing", "scan"}
    assert uses.late == ["importlib", "ours.part"]


def test_a_package_inside_pylog_may_import_itself_at_the_head_of_a_file() -> None:
    uses = _Uses("pylog.cli")
    uses.visit(
        ast.parse(
            "from pylog.cli.printable import printable\nfrom pylog.cli import exit_status\n"
            "from pylog.client import x\ndef f():\n  from pylog.cli import progress\n"
        )
    )
    assert uses.modules == {"pylog.client"}
    assert uses.late == ["pylog.cli"]
