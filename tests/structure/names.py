"""Names at the top of a module: each is bound once, and a public class's is that of no other.

When two files are merged, the second binding of a private name replaces the first one in silence:
with two tables ``LAYOUT`` in one module, one index would be read by the layout of the other.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.structure.source_tree import Problem, SourceTree


def rebound_names(tree: SourceTree) -> Iterator[Problem]:
    """Find top-level names that a module binds twice; branches of one statement count as one.

    A default with a type may be replaced in a ``try`` that looks for a package.
    """
    for module in tree:
        first: dict[str, ast.stmt] = {}
        for statement in module.syntax.body:
            for name in dict.fromkeys(_bound(statement)):
                before = first.setdefault(name, statement)
                is_default = isinstance(before, ast.AnnAssign) and isinstance(statement, ast.Try)
                if before is not statement and not is_default:
                    yield module.problem(
                        statement.lineno,
                        f"{name} is bound again, first on line {before.lineno}",
                        "Give one of them another name.",
                    )


def repeated_classes(tree: SourceTree) -> Iterator[Problem]:
    """Find public classes of one name in two modules: nobody can say which one is meant."""
    first: dict[str, str] = {}
    for module in tree:
        for node in module.syntax.body:
            if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
                continue
            if node.name in first:
                yield module.problem(
                    node.lineno,
                    f"a class {node.name} is in {first[node.name]}, too",
                    "Give one of them another name, or have one class serve both.",
                )
            first.setdefault(node.name, module.name)


def _bound(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() if _is_overload(node):
            pass
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            yield from (each.asname or each.name.partition(".")[0] for each in aliases)
        case ast.Assign(targets=targets):
            yield from (name for target in targets for name in _names(target))
        case ast.AnnAssign(target=target, value=value):
            yield from _names(target) if value is not None else ()
        case ast.For(target=target):
            yield from _names(target)
            yield from _bound_inside(node)
        case ast.stmt() | ast.ExceptHandler():
            yield from _bound_inside(node)


def _bound_inside(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        yield from _bound(child)


def _is_overload(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(each).endswith("overload") for each in function.decorator_list)


def _names(target: ast.expr) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
