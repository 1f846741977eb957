from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.structure.source_tree import Import, SourceTree
from tests.unit.structure.made_up import tree_of

if TYPE_CHECKING:
    from pathlib import Path


def imports_of_a(source: str) -> list[Import]:
    others = {"pylog.b": "", "pylog.rooms.c": "", "pylog.lazy_modules": ""}
    tree = tree_of({"pylog.a": source, **others})
    return tree.imports_of(tree.modules["pylog.a"])


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("import pylog.b", "pylog.b"),
        ("from pylog import b", "pylog.b"),
        ("from pylog.b import name", "pylog.b"),
        ("from pylog.rooms import c", "pylog.rooms.c"),
        ("from pylog.rooms import name", "pylog.rooms"),
        ("from pylog.gone.further import name", "pylog"),
        ("from . import b", "pylog.b"),
        ("from .b import name", "pylog.b"),
    ],
)
def test_an_import_is_of_the_longest_name_that_is_a_module(source: str, target: str) -> None:
    assert imports_of_a(source) == [Import(target, 1)]


def test_imports_of_other_people_do_not_count() -> None:
    assert imports_of_a("import numpy\nfrom pylogger import b\n") == []


def test_a_module_does_not_import_itself() -> None:
    assert imports_of_a("import pylog.a") == []


def test_two_names_of_one_module_are_one_import() -> None:
    assert imports_of_a("from pylog.b import one, two") == [Import("pylog.b", 1)]


def test_imports_for_type_checkers_and_in_branches_count() -> None:
    source = "if TYPE_CHECKING:\n    import pylog.b\ntry:\n    import pylog.rooms\nfinally: ...\n"
    assert imports_of_a(source) == [Import("pylog.b", 2), Import("pylog.rooms", 4)]


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    import pylog.b\n",
        "async def f():\n    from pylog import b\n",
        "class A:\n  def f(self):\n    if True:\n      import pylog.b\n",
    ],
)
def test_an_import_in_a_function_is_known_as_one(source: str) -> None:
    (found,) = imports_of_a(source)
    assert found.target == "pylog.b"
    assert found.is_in_function


def test_an_import_in_a_class_body_runs_at_once() -> None:
    assert imports_of_a("class A:\n    import pylog.b\n") == [Import("pylog.b", 2)]


def test_names_given_to_the_loader_are_lazy_imports() -> None:
    source = "from pylog.lazy_modules import load\nB = load('pylog.b')\nC = 'pylog.nothing'\n"
    assert imports_of_a(source) == [
        Import("pylog.lazy_modules", 1),
        Import("pylog.b", 2, is_lazy=True),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f'{__package__}.b'", ["pylog.b"]),
        ("f'pylog.{name}'", ["pylog.b", "pylog.lazy_modules", "pylog.rooms", "pylog.rooms.c"]),
        ("f'pylog.rooms.{name}'", ["pylog.rooms.c"]),
        ("f'{__name__}.b'", []),
        ("f'{name}.b'", []),
        ("f'pylog.b: {name}'", []),
        ("f'numpy.{name}'", []),
    ],
)
def test_an_f_string_names_all_that_it_may_come_to(text: str, expected: list[str]) -> None:
    found = imports_of_a(f"from pylog.lazy_modules import load\nB = load({text})\n")
    assert [each.target for each in found if each.is_lazy] == expected
    assert {each.line for each in found if each.is_lazy} <= {2}


def test_without_the_loader_a_name_is_a_string() -> None:
    assert imports_of_a("B = 'pylog.b'") == []


def test_relative_imports_of_a_package_begin_in_itself() -> None:
    tree = tree_of({"pylog.rooms": "from . import c\nfrom .. import b\n", "pylog.rooms.c": "",
                    "pylog.b": ""})  # fmt: skip
    assert tree.imports_of(tree.modules["pylog.rooms"]) == [
        Import("pylog.rooms.c", 1),
        Import("pylog.b", 2),
    ]


def test_a_tree_is_read_from_folders(tmp_path: Path) -> None:
    package = tmp_path / "core" / "pylog" / "rooms"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text('"""The log. And more."""')
    (package / "__init__.py").write_text("")
    (package / "c.py").write_text("import pylog")
    tree = SourceTree.read(tmp_path, {"pylog": "core"})
    assert {each.name: each.path for each in tree} == {
        "pylog": "core/pylog/__init__.py",
        "pylog.rooms": "core/pylog/rooms/__init__.py",
        "pylog.rooms.c": "core/pylog/rooms/c.py",
    }
    assert tree.modules["pylog"].summary == "The log"
