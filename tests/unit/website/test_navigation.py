"""Which pages the site has, and that the reference has every public name."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pylog
import pylog.duckdb
import pylog.errors
import pylog.polars
import pylog.testing
import pyspark_pylog
from tests.website.page_tree import ROOT_PAGES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

ROOT = Path(__file__).parents[3]
API = ROOT / "docs" / "api"
NAMESPACES = [pylog, pylog.jobs, pylog.logs, pylog.results]
DESCRIBED_ELSEWHERE = {"__version__", "LogStorageError"}


def pages_of(entry: object) -> Iterator[str]:
    """Yield the pages of the navigation, or of a part of it."""
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, dict | list):
        for each in entry.values() if isinstance(entry, dict) else entry:
            yield from pages_of(each)


def test_every_page_is_in_the_navigation_once() -> None:
    site = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))
    listed = list(pages_of(site["project"]["nav"]))
    docs = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert sorted(listed) == sorted(docs | set(ROOT_PAGES.values()))


def directives() -> list[str]:
    return re.findall(
        r"^::: ([\w.]+)$",
        "\n".join(page.read_text("utf-8") for page in sorted(API.glob("*.md"))),
        re.MULTILINE,
    )


@pytest.mark.parametrize("namespace", NAMESPACES, ids=lambda each: each.__name__)
def test_the_reference_has_every_public_name_once(namespace: ModuleType) -> None:
    documented = sorted(each for each in directives() if each.startswith(f"{namespace.__name__}."))
    inner = {f"{namespace.__name__}.{each}" for each in namespace._PUBLIC.modules}
    own = [each for each in documented if each.rpartition(".")[0] == namespace.__name__]
    public = set(namespace.__all__) - DESCRIBED_ELSEWHERE
    assert sorted(set(own) - inner) == sorted(f"{namespace.__name__}.{each}" for each in public)
    assert len(own) == len(set(own))


def test_the_reference_has_every_name_for_spark() -> None:
    of_spark = {name.rpartition(".")[2] for name in directives() if "pyspark_pylog" in name}
    assert of_spark == (set(pyspark_pylog.__all__) - {"DefaultSource"}) | {"PylogTable"}


@pytest.mark.parametrize("module", [pylog.polars, pylog.duckdb], ids=lambda each: each.__name__)
def test_the_reference_has_every_name_of_the_modules_for_arrow_tools(module: ModuleType) -> None:
    documented = {each for each in directives() if each.startswith(f"{module.__name__}.")}
    assert documented == {f"{module.__name__}.{name}" for name in module.__all__}
    assert [name for name in module.__all__ if not inspect.getdoc(getattr(module, name))] == []


def docstring_after_assignment(module: str, name: str) -> str | None:
    """Return the string literal after the assignment of a constant."""
    body = ast.parse(inspect.getsource(importlib.import_module(module))).body
    for number, statement in enumerate(body[:-1]):
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        after = body[number + 1]
        if any(isinstance(each, ast.Name) and each.id == name for each in targets):
            is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            return str(after.value.value) if is_text else None  # type: ignore[attr-defined]
    return None


@pytest.mark.parametrize(
    ("namespace", "name"),
    [(each, name) for each in NAMESPACES for name in each._PUBLIC.names],
    ids=lambda each: each if isinstance(each, str) else each.__name__,
)
def test_every_public_name_has_a_docstring_with_its_public_members(
    namespace: ModuleType, name: str
) -> None:
    value = getattr(namespace, name)
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        assert docstring_after_assignment(namespace._PUBLIC.module_of(name), name)
        return
    assert inspect.getdoc(value)
    members = vars(value).items() if inspect.isclass(value) else []
    without = [
        member
        for member, defined in members
        if not member.startswith("_")
        and (isinstance(defined, property | classmethod | staticmethod) or callable(defined))
        and not inspect.getdoc(getattr(value, member))
    ]
    assert without == []


@pytest.mark.parametrize("module", [pylog.errors, pylog.testing], ids=lambda each: each.__name__)
def test_every_class_of_a_public_module_has_a_docstring(module: object) -> None:
    classes = [
        each
        for name, each in vars(module).items()
        if inspect.isclass(each) and each.__module__ == module.__name__ and name[0] != "_"  # type: ignore[attr-defined]
    ]
    assert classes
    assert [each for each in classes if not vars(each).get("__doc__")] == []
