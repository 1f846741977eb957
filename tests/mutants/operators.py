"""The small changes: where a source can be mutated, and what its text is then.

Comparisons, arithmetic, boolean operators, numbers, ``min`` and ``max``, ``break`` and
``continue``, calls and raises that are left out. Left alone is what no test should hold: messages,
logging, annotations, decorators, ``__repr__`` and ``__str__``, what only type checkers read, and
``strict`` of ``zip``, which guards against mistakes of ours.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_SWAPS: dict[type[ast.AST], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "//",
    ast.FloorDiv: "*",
    ast.Mod: "//",
    ast.LShift: ">>",
    ast.RShift: "<<",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.And: "or",
    ast.Or: "and",
}
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
_SILENT_METHODS = frozenset(("__repr__", "__str__"))
_MESSAGE_NAMES = frozenset(("msg", "reason", "message", "hint", "text"))
_LOGGERS = frozenset(("_LOGGER", "logging", "warnings"))


class Mutant(NamedTuple):
    """One change: ``source[start:end]`` becomes ``text``.

    Attributes
    ----------
    line
        Of the first changed character, counted from 1.
    start, end
        Byte positions in the source's UTF-8.
    text
        What stands there instead.
    """

    line: int
    start: int
    end: int
    text: str

    def applied(self, source: bytes) -> bytes:
        """Return the source with the change."""
        return source[: self.start] + self.text.encode() + source[self.end :]


class _Finder(ast.NodeVisitor):
    """Collects the mutants of one module."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self.found: list[Mutant] = []

    def _position(self, line: int, column: int) -> int:
        return self._lines[line - 1] + column

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self._position(node.lineno, node.col_offset), self._position(end_line, end_column)

    def _add(self, line: int, start: int, end: int, text: str) -> None:
        self.found.append(Mutant(line, start, end, text))

    def _replace(self, node: ast.expr | ast.stmt, text: str) -> None:
        self._add(node.lineno, *self._span(node), text)

    def _swap_between(self, left: ast.expr, right: ast.expr, operator: ast.AST) -> None:
        """Swap an operator, which stands between its operands together with parentheses."""
        text = _SWAPS.get(type(operator))
        start, end = self._span(left)[1], self._span(right)[0]
        between = self._source[start:end]
        core = between.strip(b" \t\n\\()")
        if text is None or not core or b"#" in between:
            return
        at = start + between.index(core)
        line = left.end_lineno or left.lineno
        self._add(line + between[: at - start].count(b"\n"), at, at + len(core), text)

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            self._swap_between(left, right, operator)
            left = right
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if not _is_text(node.left) and not _is_text(node.right):
            self._swap_between(node.left, node.right, node.op)
            if isinstance(node.op, (ast.Add, ast.Sub)) and _is_one(node.right):
                left = self._span(node.left)
                self._add(node.lineno, left[1], self._span(node)[1], "")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._swap_between(left, right, node.op)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            start, _ = self._span(node)
            self._add(node.lineno, start, self._span(node.operand)[0], "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._replace(node, str(not node.value))
        elif isinstance(node.value, int):
            self._replace(node, str(node.value + 1))

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and node.id in _NAMES:
            self._replace(node, _NAMES[node.id])

    def visit_Break(self, node: ast.Break) -> None:
        self._replace(node, "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace(node, "break")

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call) and not _is_logging(node.value):
            self._replace(node, "pass")
            self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._replace(node, "pass")  # its arguments are a message

    def visit_Return(self, node: ast.Return) -> None:
        self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave out a message."""

    def visit_Assign(self, node: ast.Assign) -> None:
        names = {target.id for target in node.targets if isinstance(target, ast.Name)}
        if not names & {*_MESSAGE_NAMES, "__all__", "__slots__"}:
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_arg(self, node: ast.arg) -> None:
        """Leave out an annotation."""

    def visit_If(self, node: ast.If) -> None:
        if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg != "strict":
            self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:
            self.visit(statement)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name not in _SILENT_METHODS and not _is_overload(node):
            self.visit(node.args)
            for statement in node.body:
                self.visit(statement)


def _is_text(node: ast.expr) -> bool:
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    return is_text or isinstance(node, ast.JoinedStr)


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def _is_logging(call: ast.Call) -> bool:
    function = call.func
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id in _LOGGERS
    )


def _is_overload(node: ast.FunctionDef) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "overload" for each in node.decorator_list)


def possible_mutants(source: bytes) -> list[Mutant]:
    """Return the changes of a module, also those that do not compile, in the order of the text."""
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    return sorted(set(finder.found))


def is_change(source: bytes, mutant: Mutant) -> bool:
    """Whether the module still compiles with the change, and means something else."""
    try:
        return ast.dump(ast.parse(mutant.applied(source))) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


def find_mutants(source: bytes) -> Iterator[Mutant]:
    """Yield every change of a module that still compiles and that means something else."""
    return (mutant for mutant in possible_mutants(source) if is_change(source, mutant))
