"""Names at the top of a module: each is bound once.

When two files are merged, the second binding of a private name replaces the first one in silence:
with two tables ``LAYOUT`` in one module, one index would be read by the layout of the other.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.structure.source_tree import Problem, SourceTree


def rebound_names(tree: SourceTree) -> Iterator[Problem]:
    """Find top-level names that a module binds twice; branches of one statement count as one.

    A default with a type may be replaced in a ``try`` that looks for a package.
    """
    for module in tree:
        first: dict[str, ast.stmt] = {}
        for statement in module.syntax.body:
            for name in dict.fromkeys(_bound([statement])):
                before = first.setdefault(name, statement)
                is_default = isinstance(before, ast.AnnAssign) and isinstance(statement, ast.Try)
                if before is not statement and not is_default:
                    yield module.problem(
                        statement.lineno,
                        f"{name} is bound again, first on line {before.lineno}",
                        "Give one of them another name.",
                    )


def _bound(statements: Sequence[ast.stmt]) -> Iterator[str]:
    for statement in statements:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if _is_overload(statement):
                pass
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name
            case ast.Import(names=aliases):
                yield from (each.asname or each.name.partition(".")[0] for each in aliases)
            case ast.ImportFrom(names=aliases):
                yield from (each.asname or each.name for each in aliases)
            case ast.Assign(targets=targets):
                yield from (name for target in targets for name in _names(target))
            case ast.AnnAssign(target=target) if statement.value is not None:
                yield from _names(target)
            case ast.For(target=target, body=body, orelse=orelse):
                yield from _names(target)
                yield from _bound([*body, *orelse])
            case ast.If(body=body, orelse=orelse):
                yield from _bound([*body, *orelse])
            case ast.With(body=body):
                yield from _bound(body)
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
                yield from _bound([*body, *orelse, *final])
                for handler in handlers:
                    yield from _bound(handler.body)


def _is_overload(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(each).endswith("overload") for each in function.decorator_list)


def _names(target: ast.expr) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
