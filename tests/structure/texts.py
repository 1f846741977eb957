"""Comments and docstrings: lists that were flowed into a paragraph, and names of what is not there.

A list whose lines are joined keeps the spaces of its indentation in the middle of a sentence, and
nobody can tell any more where its second item begins. A name that no longer exists, or that is the
module's own, sends a reader nowhere.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.structure.source_tree import Module, Problem, SourceTree

_INNER_SPACES = re.compile(r"\S {3,}\S")
_RULER = re.compile(r"[=\-~ ]*(?:==|--)[=\-~ ]*$")
_NAMED = re.compile(r"(?<!`)`([A-Za-z_]\w*(?:\.\w+)*)`(?!`)")


def flowed_lists(tree: SourceTree) -> Iterator[Problem]:
    """Find lines with several spaces in the middle, outside tables and examples."""
    for module in tree:
        for block in _blocks(module):
            if any(_RULER.fullmatch(text.strip()) for _, text in block):
                continue
            for line, text in block:
                if _INNER_SPACES.search(text.strip()):
                    yield module.problem(
                        line,
                        "several spaces stand in the middle of a sentence",
                        "Make it a list again, or a table with a ruler.",
                    )


def dead_names(tree: SourceTree) -> Iterator[Problem]:
    """Find names of modules, and of what is in them, that are not there or are the text's own."""
    anywhere = {name for module in tree for name in (*_names_in(module), *module.name.split("."))}
    for module in tree:
        for block in _blocks(module):
            for line, text in block:
                for name in _NAMED.findall(text):
                    if name == module.name and not module.is_package:
                        what, remedy = "is this module itself", "Say where in it."
                    elif not _exists(tree, name, anywhere):
                        what, remedy = "does not exist", "Name what has become of it."
                    else:
                        continue
                    yield module.problem(line, f"{name} {what}", remedy)


def _exists(tree: SourceTree, name: str, anywhere: set[str]) -> bool:
    if not tree.is_ours(name):
        return anywhere.issuperset(name.split("."))
    owner, rest = name, list[str]()
    while owner not in tree.modules and "." in owner:
        owner, _, last = owner.rpartition(".")
        rest.insert(0, last)
    return owner in tree.modules and (not rest or rest[0] in _names_in(tree.modules[owner]))


def _names_in(module: Module) -> set[str]:
    """Return what a module defines, imports or uses, or names in a table of what it loads late."""
    found = set()
    for node in ast.walk(module.syntax):
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
                | ast.alias(name=name)
            ):
                found.add(name.rpartition(".")[2])
            case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name):
                found.add(name)
            case ast.keyword(arg=str() as name):
                found.add(name)
            case ast.Constant(value=str() as name) if name.isidentifier():
                found.add(name)
    return found


def _blocks(module: Module) -> Iterator[Sequence[tuple[int, str]]]:
    """Yield the paragraphs of comments and docstrings: line numbers and texts.

    Examples are left out: what is indented below a line that ends with two colons, and doctests.
    """
    for lines in (*_comments(module), *_docstrings(module)):
        block: list[tuple[int, str]] = []
        example: int | None = None
        for number, text in lines:
            indent = len(text) - len(text.lstrip())
            if example is not None and text.strip() and indent <= example:
                example = None
            if not text.strip():
                yield block
                block = []
            elif example is None and not text.lstrip().startswith((">>>", "...")):
                block.append((number, text))
            if example is None and text.rstrip().endswith("::"):
                example = indent
        yield block


def _comments(module: Module) -> Iterator[Sequence[tuple[int, str]]]:
    run: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(module.source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line = token.start[0]
        stands_alone = not token.line[: token.start[1]].strip()
        if run and (not stands_alone or line != run[-1][0] + 1):
            yield run
            run = []
        if stands_alone:
            run.append((line, token.string[1:]))
    yield run


def _docstrings(module: Module) -> Iterator[Sequence[tuple[int, str]]]:
    for node in ast.walk(module.syntax):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            lines = node.value.value.split("\n")
            yield [(node.lineno + at, text) for at, text in enumerate(lines)]
