from __future__ import annotations

import pytest

from tests.structure.sizes import crowded_packages, long_files, long_functions
from tests.unit.structure.made_up import tree_of


def function_of(lines: int, docstring: str = "") -> str:
    """Return the source of a function with that many lines, its docstring not counted."""
    return "\n".join(["def f():", *docstring.splitlines(), *["    pass"] * (lines - 1)])


def test_a_file_may_have_400_lines() -> None:
    assert not list(long_files(tree_of({"pylog.a": "x = 1\n" * 400})))


def test_a_file_of_401_lines_is_too_long() -> None:
    (problem,) = long_files(tree_of({"pylog.a": "x = 1\n" * 401}))
    assert (problem.path, problem.line) == ("pylog/a.py", 1)
    assert "401 lines, allowed are 400" in str(problem)


def test_a_function_may_have_60_lines() -> None:
    assert not list(long_functions(tree_of({"pylog.a": function_of(60)})))


@pytest.mark.parametrize("docstring", ["", '    """One line."""', '    """One.\n\n    Two."""'])
def test_a_function_of_61_lines_besides_its_docstring_is_too_long(docstring: str) -> None:
    (problem,) = long_functions(tree_of({"pylog.a": "\n\n" + function_of(61, docstring)}))
    assert (problem.path, problem.line) == ("pylog/a.py", 3)
    assert "f has 61 lines" in problem.what


def test_a_docstring_makes_a_function_no_longer() -> None:
    docstring = '    """First.\n' + "    more\n" * 20 + '    """'
    assert not list(long_functions(tree_of({"pylog.a": function_of(60, docstring)})))


def test_methods_and_coroutines_are_functions() -> None:
    body = "".join(f"    {line}\n" for line in function_of(61).splitlines())
    for source in (f"class A:\n{body}", f"async {function_of(61)}"):
        assert len(list(long_functions(tree_of({"pylog.a": source})))) == 1


def test_kernels_may_be_long() -> None:
    tree = tree_of({"pylog.kernels.a": function_of(401), "pylog.kernels": function_of(401)})
    assert not list(long_files(tree))
    assert not list(long_functions(tree))


def test_log_may_have_26_files_and_others_more() -> None:
    names = [f"pylog.log.a{number}" for number in range(25)]
    others = [f"pylog.logs.a{number}" for number in range(40)]
    assert not list(crowded_packages(tree_of(dict.fromkeys([*names, *others], ""))))
    (problem,) = crowded_packages(tree_of(dict.fromkeys([*names, "pylog.log.deep.b"], "")))
    assert problem.path == "pylog/log/__init__.py"
    assert "28 files, allowed are 26" in problem.what
