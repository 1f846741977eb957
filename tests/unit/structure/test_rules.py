"""Each rule finds what it is against, however that is written.

A rule that is too strict shows itself when the packages are checked; one that is too lax does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.structure.finding_kinds import KINDS_MODULE, finding_codes
from tests.structure.imports import (
    circles,
    imports_inside_functions,
    private_imports,
    unannounced_loading,
)
from tests.structure.names import rebound_names, repeated_classes
from tests.structure.source_tree import SourceTree
from tests.structure.support import shared_code
from tests.structure.texts import dead_names, flowed_lists
from tests.unit.structure.made_up import tree_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.structure.source_tree import Problem

    Rule = Callable[[SourceTree], Iterator[Problem]]

FLOWED = "1. one thing, and some    more of it 2. another"
OTHERS = {
    "pylog.b": "def found(): pass",
    "pylog.lazy_modules": "",
    "pylog.log.c": "import pylog.log.a",
    "pyspark_pylog.b": "",
    "tests.support.driver": "import pylog",
    KINDS_MODULE: 'A_GAP = FindingKind("a_gap", "Something is missing.")\n',
}


def support_code(tree: SourceTree) -> Iterator[Problem]:
    of_support = {each.name: each for each in tree if each.name.startswith("tests.")}
    return shared_code(SourceTree(of_support), {"driver": frozenset({"pylog"})})


@pytest.mark.parametrize(
    ("rule", "module", "source", "problem"),
    [
        (circles, "pylog.log.a", "\nimport pylog.log.c", "pylog.log.a → pylog.log.c → pylog.log.a"),
        (circles, "pylog.log.a", "\nfrom . import c", "a circle"),
        (circles, "pylog.log.a", "\nif TYPE_CHECKING: from pylog.log.c import A", "a circle"),
        (circles, "pylog.log.a", "\ndef f(): import pylog.log.c", "a circle"),
        (circles, "pylog.log.a", "import pylog.lazy_modules\nA = 'pylog.log.c'", "a circle"),
        (circles, "pylog.log.a", "import pylog.lazy_modules\nA = f'{__package__}.c'", "a circle"),
        (circles, "pylog.log.a", "import pylog.lazy_modules\nA = f'pylog.{a}'", "a circle"),
        (imports_inside_functions, "pylog.a", "def f():\n    import pylog.b", "inside a function"),
        (imports_inside_functions, "pylog.a", "async def f():\n    import pylog.b", "a function"),
        (unannounced_loading, "pyspark_pylog.a", "\nimport importlib.util", "uses importlib"),
        (unannounced_loading, "pyspark_pylog.a", "\nfrom importlib import a", "uses importlib"),
        (unannounced_loading, "pylog.a", "\nimport_module('.b', 'pylog')", ""),
        (unannounced_loading, "pylog.a", "\nimportlib.import_module(f'pylog.{a}')", ""),
        (unannounced_loading, "pylog.a", "\nimport_module(name='pylog.b')", ""),
        (unannounced_loading, "pylog.a", "\n__import__('pylog.b')", ""),
        (unannounced_loading, "pylog.a", "\nload_name('pylog' + name)", ""),
        (unannounced_loading, "pylog.a", "\nLazyModule('pylog.{}'.format(name))", ""),
        (unannounced_loading, "pylog.a", "\nLazyModule()", ""),
        (private_imports, "pyspark_pylog.a", "\nfrom pylog.log.c import B", "imports pylog.log"),
        (private_imports, "pylog_jobs", "\nfrom pylog import log", "imports pylog.log"),
        (private_imports, "pylog.cli.a", "\nimport pylog.log", "imports pylog.log"),
        (private_imports, "pylog_jobs.a", "\nimport pyspark_pylog.b", "imports pyspark_pylog.b"),
        (rebound_names, "pylog.a", "A = 1\nA: int = 2", "A is bound again, first on line 1"),
        (rebound_names, "pylog.a", "A = 1\ndef A(): pass", "A is bound again"),
        (rebound_names, "pylog.a", "A = 1\nfrom x import A", "A is bound again"),
        (rebound_names, "pylog.a", "A = 1\na, A = 1, 2", "A is bound again"),
        (rebound_names, "pylog.a", "A = 1\nif a: A = 2", "A is bound again"),
        (rebound_names, "pylog.a", "A = 1\nfor A in a: pass", "A is bound again"),
        (rebound_names, "pylog.a", "A = 1\nwith a: A = 2", "A is bound again"),
        (repeated_classes, "pylog_jobs.a", "\nclass Kind: pass", "a class Kind is in pylog"),
        (finding_codes, "pylog.a", "\nif found.code == 'a_gap': pass", "is written out: a_gap"),
        (flowed_lists, "pylog.a", f"\n# {FLOWED}", ""),
        (flowed_lists, "pylog.a", f'def a():\n    """{FLOWED}"""', ""),
        (dead_names, "pylog.a", "# Of\n# `pylog.a`.", "pylog.a is this module itself"),
        (dead_names, "pylog.a", "# Of\n# `pylog.c`.", "pylog.c does not exist"),
        (dead_names, "pylog.a", '"""Of\n`pylog.b.gone`."""', "pylog.b.gone does not exist"),
        (dead_names, "pylog.a", '"""Of\n`found.gone`."""', "found.gone does not exist"),
        (support_code, "tests.support.a", "\nfrom pylog.b import found", ""),
        (support_code, "tests.support.a", "\nfrom tests.support import driver", "a driver of the"),
        (support_code, "tests.support.driver", "\nimport pyspark_pylog", ""),
    ],
)
def test_what_breaks_a_rule_is_found(rule: Rule, module: str, source: str, problem: str) -> None:
    tree = tree_of({"pylog.kind": "class Kind: pass", **OTHERS, module: source})
    (found,) = rule(tree)
    assert (found.path, found.line) == (tree.modules[module].path, 2)
    assert problem in found.what


def test_a_kind_of_finding_is_named_as_its_code() -> None:
    source = OTHERS[KINDS_MODULE].replace("A_GAP", "GAP")
    (problem,) = finding_codes(tree_of({KINDS_MODULE: source}))
    assert "Name it A_GAP." in str(problem)
