"""Kinds of findings: each is declared once, under its code in capitals, and named by that alone."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.structure.source_tree import Module, Problem, SourceTree

KINDS_MODULE = "pylog.findings.kinds"
_OTHER_MEANINGS = {
    "pylog.record_search": {"unreadable"},
    "pylog.cli.commands.doctor": {"unreadable"},
}
"""Texts that are codes, too: keys of JSON."""


def finding_codes(tree: SourceTree) -> Iterator[Problem]:
    """Find kinds whose constant has another name than their code, and codes as text elsewhere."""
    codes = set()
    for module in tree:
        if module.name == KINDS_MODULE:
            for node, name, code in _declared(module):
                codes.add(code)
                if name != code.upper():
                    remedy = f"Name it {code.upper()}."
                    yield module.problem(node.lineno, f"{name} is of code {code}", remedy)
    for module in tree:
        known = codes - _OTHER_MEANINGS.get(module.name, set())
        for text in ast.walk(module.syntax) if module.name != KINDS_MODULE else ():
            if isinstance(text, ast.Constant) and text.value in known:
                yield module.problem(
                    text.lineno,
                    f"the code of a finding is written out: {text.value}",
                    f"Take the kind from {KINDS_MODULE}.",
                )


def _declared(module: Module) -> Iterator[tuple[ast.Assign, str, str]]:
    for node in module.syntax.body:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(
                    func=ast.Name(id="FindingKind"), args=[ast.Constant(value=str(code)), *_]
                ),
            ):
                yield node, name, code
