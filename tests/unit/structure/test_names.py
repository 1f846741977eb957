from __future__ import annotations

import pytest

from tests.structure.names import rebound_names, repeated_classes
from tests.unit.structure.made_up import tree_of


@pytest.mark.parametrize(
    "again",
    [
        "LAYOUT = 2",
        "LAYOUT: int = 2",
        "def LAYOUT(): pass",
        "class LAYOUT: pass",
        "import x as LAYOUT",
        "from x import LAYOUT",
        "a, LAYOUT = 1, 2",
        "if a:\n    LAYOUT = 2",
        "try:\n    a = 1\nexcept E:\n    LAYOUT = 2",
        "for LAYOUT in a: pass",
        "with a:\n    LAYOUT = 2",
    ],
)
def test_a_name_that_is_bound_again_is_found(again: str) -> None:
    (problem,) = rebound_names(tree_of({"pylog.a": f"LAYOUT = 1\n\n{again}\n"}))
    assert (problem.path, problem.line) == ("pylog/a.py", 3)
    assert "LAYOUT is bound again, first on line 1" in str(problem)


@pytest.mark.parametrize(
    "source",
    [
        "if a:\n    b = 1\nelse:\n    b = 2",
        "try:\n    import b\nexcept E:\n    b = None",
        "b: int\nb = 1",
        "@overload\ndef b(): ...\n@typing.overload\ndef b(): ...\ndef b(): pass",
        "b = 1\ndef c():\n    b = 2",
        "class C:\n    b = 1\nb = 2",
        "b = []\nb += [1]",
        "b = {}\nb.c = 1\nb[1] = 2",
        "b: int = 1\ntry:\n    import c\nexcept E:\n    pass\nelse:\n    b = 2",
    ],
)
def test_branches_overloads_other_scopes_and_defaults_bind_no_name_again(
    source: str,
) -> None:
    assert not list(rebound_names(tree_of({"pylog.a": source})))


def test_a_public_class_of_the_same_name_elsewhere_is_found() -> None:
    sources = {"pylog.a": "class A: pass\nclass _B: pass", "pylog.b": "\nclass A: pass"}
    (problem,) = repeated_classes(tree_of({**sources, "pylog_jobs.c": "class _B: pass"}))
    assert (problem.path, problem.line) == ("pylog/b.py", 2)
    assert "a class A is in pylog.a, too" in str(problem)


def test_classes_inside_of_others_and_imported_ones_are_no_second_ones() -> None:
    sources = {
        "pylog.a": "class A: pass",
        "pylog.b": "from pylog.a import A\nclass B:\n  class A: ...",
    }
    assert not list(repeated_classes(tree_of(sources)))
