from __future__ import annotations

import pytest

from tests.structure.sizes import long_functions
from tests.unit.structure.made_up import tree_of


def function_of(lines: int, docstring: str = "") -> str:
    """Return the source of a function with that many lines, its docstring not counted."""
    return "\n".join(["def f():", *docstring.splitlines(), *["    pass"] * (lines - 1)])


def test_a_function_may_have_80_lines() -> None:
    assert not list(long_functions(tree_of({"pylog.a": function_of(80)})))


@pytest.mark.parametrize("docstring", ["", '    """One line."""', '    """One.\n\n    Two."""'])
def test_a_function_of_81_lines_besides_its_docstring_is_too_long(docstring: str) -> None:
    (problem,) = long_functions(tree_of({"pylog.a": "\n\n" + function_of(81, docstring)}))
    assert (problem.path, problem.line) == ("pylog/a.py", 3)
    assert "f has 81 lines" in problem.what


def test_a_docstring_makes_a_function_no_longer() -> None:
    docstring = '    """First.\n' + "    more\n" * 20 + '    """'
    assert not list(long_functions(tree_of({"pylog.a": function_of(80, docstring)})))


def test_methods_and_coroutines_are_functions() -> None:
    body = "".join(f"    {line}\n" for line in function_of(81).splitlines())
    for source in (f"class A:\n{body}", f"async {function_of(81)}"):
        assert len(list(long_functions(tree_of({"pylog.a": source})))) == 1


def test_kernels_may_be_long() -> None:
    tree = tree_of({"pylog.kernels.a": function_of(401), "pylog.kernels": function_of(401)})
    assert not list(long_functions(tree))
