"""Who may import whom, and how: no circles, one loader, a public surface."""

from __future__ import annotations

import ast
from collections import deque
from typing import TYPE_CHECKING

from tests.structure.source_tree import LOADER_MODULE, import_statements

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.structure.source_tree import Problem, SourceTree

PUBLIC_MODULES = frozenset({"pylog", "pylog.errors", "pylog.jobs", "pylog.logs", "pylog.results"})
"""What of pylog the connector, the jobs and the command line may import; that also `pylog.text`."""

PUBLIC_OF_CONNECTOR = frozenset({"pyspark_pylog", "pyspark_pylog.jobs"})
"""What of the connector the jobs may import."""

USERS = ("pyspark_pylog", "pylog_jobs", "pylog.cli")
"""The packages that are held to the public modules, as users are."""


def circles(tree: SourceTree) -> Iterator[Problem]:
    """Find modules that import each other in a circle.

    Imports for type checkers count, and so do those through the loader.
    """
    lines: dict[str, dict[str, int]] = {}
    for module in tree:
        targets = lines.setdefault(module.name, {})
        for each in tree.imports_of(module):
            targets.setdefault(each.target, each.line)
    for circle in find_circles({name: list(targets) for name, targets in lines.items()}):
        first, second = circle[0], circle[1 % len(circle)]
        yield tree.modules[first].problem(
            lines[first][second],
            f"a circle of imports: {' → '.join([*circle, first])}",
            "Move what both sides need below them, or pass it in as an argument.",
        )


def find_circles(graph: Mapping[str, list[str]]) -> list[list[str]]:
    """Return a shortest circle for each set of nodes that all reach each other, sorted.

    Parameters
    ----------
    graph
        The nodes that each node has an edge to. None has one to itself.
    """
    reachable = {node: _ways_from(node, graph) for node in graph}
    circles = []
    done: set[str] = set()
    for node in sorted(graph):
        if node in done or node not in reachable[node]:
            continue
        circle_mates = {other for other in reachable[node] if node in reachable.get(other, {})}
        done |= circle_mates
        circles.append(min((_way(each, reachable[each]) for each in sorted(circle_mates)), key=len))
    return circles


def _ways_from(start: str, graph: Mapping[str, list[str]]) -> dict[str, str]:
    """Return each node that can be reached with the node before it on a shortest way."""
    before: dict[str, str] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for target in graph.get(node, ()):
            if target not in before:
                before[target] = node
                queue.append(target)
    return before


def _way(start: str, before: Mapping[str, str]) -> list[str]:
    """Return the circle from ``start`` back to it, which is named once."""
    way = [before[start]]
    while way[-1] != start:
        way.append(before[way[-1]])
    return way[::-1]


def imports_inside_functions(tree: SourceTree) -> Iterator[Problem]:
    """Find imports of ours that run when a function is called, but for those by the loader."""
    for module in tree:
        if module.name == LOADER_MODULE:
            continue
        for each in tree.imports_of(module):
            if each.is_in_function:
                yield module.problem(
                    each.line,
                    f"{each.target} is imported inside a function",
                    f"Import it at the module's head, or, if it is heavy, through {LOADER_MODULE}.",
                )


def unannounced_loading(tree: SourceTree) -> Iterator[Problem]:
    """Find modules of ours that are imported by name without the loader.

    The connector may not use `importlib` for anything. Elsewhere other people's modules may be
    imported by name, if the name stands there. The loader is told names, in strings and f-strings:
    what is computed in another way hides who imports whom.
    """
    for module in tree:
        if module.name == LOADER_MODULE:
            continue
        if module.name.split(".")[0] == "pyspark_pylog":
            for each in import_statements(module):
                if each.target.split(".")[0] == "importlib":
                    yield module.problem(
                        each.line,
                        "the connector uses importlib",
                        "Import public names of pylog at the module's head: they load light.",
                    )
        for node in ast.walk(module.syntax):
            if isinstance(node, ast.Call) and _loads_by_name(node) and not _is_foreign(node, tree):
                yield module.problem(
                    node.lineno,
                    "a module is imported by a name that is ours or computed",
                    f"Ask {LOADER_MODULE} for it, the one place that loads modules late.",
                )
            if isinstance(node, ast.Call) and _hides_name(node):
                yield module.problem(
                    node.lineno,
                    "the loader is given a name that does not stand there",
                    "Write the module's name as a string, or as an f-string with its package.",
                )


def _hides_name(call: ast.Call) -> bool:
    """Whether a call of the loader names its module neither in a string nor in an f-string."""
    if not isinstance(call.func, ast.Name) or call.func.id not in {"load_name", "LazyModule"}:
        return False
    return not (call.args and _is_text(call.args[0]))


def _is_text(node: ast.expr) -> bool:
    is_constant = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_constant or isinstance(node, ast.JoinedStr)


def _loads_by_name(call: ast.Call) -> bool:
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in {"import_module", "__import__"}


def _is_foreign(call: ast.Call, tree: SourceTree) -> bool:
    """Return whether what a call loads is written there, and not ours."""
    name = call.args[0] if call.args else None
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        return False
    return not name.value.startswith(".") and not tree.is_ours(name.value)


def private_imports(tree: SourceTree) -> Iterator[Problem]:
    """Find what the connector, the jobs and the command line import of others' insides."""
    for module in tree:
        user = next((each for each in USERS if f"{module.name}.".startswith(f"{each}.")), None)
        if user is None:
            continue
        for each in tree.imports_of(module):
            package = each.target.split(".")[0]
            is_inside = package == "pyspark_pylog" and each.target not in PUBLIC_OF_CONNECTOR
            if is_inside and user == "pylog_jobs":
                yield module.problem(
                    each.line,
                    f"{module.name} imports {each.target}, which is not for jobs",
                    "Hand on what it needs in pyspark_pylog.jobs.",
                )
            if package == "pylog" and not _is_allowed(each.target, user):
                yield module.problem(
                    each.line,
                    f"{module.name} imports {each.target}, which is not public",
                    "Export what it needs in pylog.__all__; "
                    f"public are {' and '.join(sorted(PUBLIC_MODULES))} alone.",
                )


def _is_allowed(target: str, user: str) -> bool:
    is_own = target == user or target.startswith(f"{user}.")
    is_loader = target == LOADER_MODULE and user == "pylog.cli"
    is_text = target.startswith("pylog.text.") and user == "pylog.cli"
    return is_own or is_loader or is_text or target in PUBLIC_MODULES
