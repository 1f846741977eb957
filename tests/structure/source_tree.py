"""The sources of the packages as modules with imports, and what can be wrong with them."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

LOADER_MODULE = "pylog.lazy_modules"
"""The one module that imports other modules of ours when they are needed."""

PACKAGE_FOLDERS = {"pylog": "storage_core", "pyspark_pylog": "connector", "pylog_jobs": "jobs"}


class Problem(NamedTuple):
    """A rule that a source breaks: where, what it is, and how to mend it."""

    path: str
    line: int
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}\n    {self.remedy}"


class Import(NamedTuple):
    """One module imported by another one.

    Attributes
    ----------
    target
        The module's full name. ``from a import b`` is an import of ``a.b`` if that is a module.
    line
        Of the import statement, from 1.
    is_in_function
        Whether the statement stands inside a function.
    is_lazy
        Whether there is no statement, but a string that names the module for the loader.
    """

    target: str
    line: int
    is_in_function: bool = False
    is_lazy: bool = False


@dataclass(frozen=True)
class Module:
    """One source file. ``path`` is relative to the project's root."""

    name: str
    path: str
    source: str

    @cached_property
    def syntax(self) -> ast.Module:
        return ast.parse(self.source, self.path)

    @property
    def is_package(self) -> bool:
        return self.path.endswith("__init__.py")

    @property
    def summary(self) -> str:
        """The first sentence of the docstring, on one line and without its backquotes."""
        text = " ".join((ast.get_docstring(self.syntax) or "").split())
        return text.split(". ")[0].rstrip(".").replace("`", "")

    def problem(self, line: int, what: str, remedy: str) -> Problem:
        return Problem(self.path, line, what, remedy)


class SourceTree:
    """All modules of the packages by name, with what they import of each other."""

    def __init__(self, modules: Mapping[str, Module]) -> None:
        self.modules = dict(sorted(modules.items()))
        self._packages = {name.split(".")[0] for name in modules}

    @classmethod
    def read(cls, root: Path, folders: Mapping[str, str] = PACKAGE_FOLDERS) -> SourceTree:
        """Return the packages below ``root``; ``folders`` says in which folder each one lies."""
        modules = {}
        for package, folder in folders.items():
            for file in sorted((root / folder / package).rglob("*.py")):
                name = module_name(file.relative_to(root / folder))
                source = file.read_text(encoding="utf-8")
                modules[name] = Module(name, file.relative_to(root).as_posix(), source)
        return cls(modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self.modules.values())

    def imports_of(self, module: Module) -> list[Import]:
        """Return what a module imports of the packages, also for type checkers, in file order."""
        return self._own_imports[module.name]

    def is_ours(self, name: str) -> bool:
        return name.partition(".")[0] in self._packages

    @cached_property
    def _own_imports(self) -> dict[str, list[Import]]:
        return {module.name: self._find_own_imports(module) for module in self}

    def _find_own_imports(self, module: Module) -> list[Import]:
        named = [each for each in import_statements(module) if self.is_ours(each.target)]
        resolved = dict.fromkeys(map(self._resolved, named))  # two names of one module: once
        imports = [each for each in resolved if each.target != module.name]
        if LOADER_MODULE in {module.name, *(each.target for each in imports)}:
            imports += [
                Import(name, node.lineno, is_lazy=True)
                for node in ast.walk(module.syntax)
                if isinstance(node, ast.Constant | ast.JoinedStr)
                for name in self._modules_named(node, module)
            ]
        return imports

    def _modules_named(self, node: ast.Constant | ast.JoinedStr, module: Module) -> Iterator[str]:
        """Yield the other modules that a string names; a top-level package's name is just a word.

        Of an f-string, all that it may come to name.
        """
        named: Iterable[str] = []
        if isinstance(node, ast.JoinedStr):
            start, pattern = _pattern_of(node, module)
            if "." in start and self.is_ours(start):
                named = filter(pattern.fullmatch, self.modules)
        elif isinstance(node.value, str) and node.value in self.modules:
            named = [node.value]
        yield from (each for each in named if "." in each and each != module.name)

    def _resolved(self, statement: Import) -> Import:
        """Return the import with the longest name of it that is a module of ours."""
        name = statement.target
        while name not in self.modules and "." in name:
            name = name.rpartition(".")[0]
        return statement._replace(target=name)


def _pattern_of(text: ast.JoinedStr, module: Module) -> tuple[str, re.Pattern[str]]:
    """Return how an f-string begins, and what it may come to, as far as names of modules go."""
    package = module.name if module.is_package else module.name.rpartition(".")[0]
    known = {"__package__": package, "__name__": module.name}
    parts: list[str | None] = []
    for each in text.values:
        if isinstance(each, ast.Constant):
            parts.append(str(each.value))
        elif isinstance(each, ast.FormattedValue) and isinstance(each.value, ast.Name):
            parts.append(known.get(each.value.id))
        else:
            parts.append(None)
    start = "".join(cast("str", each) for each in takewhile(lambda each: each is not None, parts))
    pattern = "".join(r"[\w.]+" if each is None else re.escape(each) for each in parts)
    return start, re.compile(pattern)


def module_name(file: Path) -> str:
    """Return the module that a file is, from its path below the folder of its package."""
    parts = file.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def import_statements(module: Module) -> list[Import]:
    """Return all that a module's statements import; of ``from a import b`` that is ``a.b``."""
    imports: list[Import] = []

    def visit(node: ast.AST, *, is_in_function: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import | ast.ImportFrom):
                prefix = ""
                if isinstance(child, ast.ImportFrom):
                    prefix = f"{_origin(module, child)}."
                names = [f"{prefix}{alias.name}" for alias in child.names]
                imports.extend(Import(name, child.lineno, is_in_function) for name in names)
            else:
                is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
                visit(child, is_in_function=is_in_function or is_function)

    visit(module.syntax, is_in_function=False)
    return imports


def _origin(module: Module, statement: ast.ImportFrom) -> str:
    """Return the full name of what ``from … import`` imports from, also where it is relative."""
    if not statement.level:
        return statement.module or ""
    package = module.name.split(".")
    if not module.is_package:
        package = package[:-1]
    package = package[: len(package) - statement.level + 1]
    return ".".join([*package, *([statement.module] if statement.module else [])])
