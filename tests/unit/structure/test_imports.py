from __future__ import annotations

import pytest

from tests.structure.imports import (
    circles,
    find_circles,
    imports_inside_functions,
    private_imports,
    unannounced_loading,
)
from tests.unit.structure.made_up import tree_of

FOR_TYPE_CHECKERS = "if TYPE_CHECKING:\n    from pylog.a import A\n"


def test_imports_in_one_direction_are_not_a_circle() -> None:
    sources = {"pylog.a": "import pylog.b\nimport pylog.c", "pylog.b": "import pylog.c"}
    assert not list(circles(tree_of({**sources, "pylog.c": "import numpy"})))


@pytest.mark.parametrize(
    "back",
    [
        "import pylog.a",
        FOR_TYPE_CHECKERS,
        "def f():\n    import pylog.a\n",
        "import pylog.lazy_modules\nA = 'pylog.a'\n",
        "import pylog.lazy_modules\nA = f'{__package__}.a'\n",
        "import pylog.lazy_modules\ndef f(x):\n    return f'pylog.{x}'\n",
    ],
)
def test_two_modules_that_import_each_other_are_a_circle_however_they_do_it(back: str) -> None:
    sources = {"pylog.a": "\nimport pylog.b", "pylog.b": back, "pylog.lazy_modules": ""}
    (problem,) = circles(tree_of(sources))
    assert (problem.path, problem.line) == ("pylog/a.py", 2)
    assert "pylog.a → pylog.b → pylog.a" in problem.what


def test_a_package_and_a_module_in_it_can_be_a_circle() -> None:
    sources = {"pylog.rooms": "from pylog.rooms.a import A", "pylog.rooms.a": "import pylog.rooms"}
    assert len(list(circles(tree_of(sources)))) == 1


def test_a_shortest_circle_stands_for_all_through_the_same_nodes() -> None:
    graph = {"a": ["b"], "b": ["c"], "c": ["d", "b"], "d": ["a"], "e": ["a", "f"], "f": []}
    assert find_circles(graph) == [["b", "c"]]


def test_circles_that_share_nothing_are_all_shown() -> None:
    graph = {"a": ["b"], "b": ["a"], "c": ["d", "a"], "d": ["e"], "e": ["c"]}
    assert find_circles(graph) == [["a", "b"], ["c", "d", "e"]]


def test_an_import_of_ours_inside_a_function_is_a_problem() -> None:
    sources = {"pylog.a": "def f():\n    from pylog.b import g\n    return g()\n", "pylog.b": ""}
    (problem,) = imports_inside_functions(tree_of(sources))
    assert (problem.path, problem.line) == ("pylog/a.py", 2)
    assert "pylog.b is imported inside a function" in problem.what
    assert "pylog.lazy_modules" in problem.remedy


def test_an_import_of_other_peoples_code_inside_a_function_is_allowed() -> None:
    assert not list(imports_inside_functions(tree_of({"pylog.a": "def f():\n    import pandas\n"})))


def test_the_loader_may_import_inside_its_functions() -> None:
    source = "import importlib\ndef load(name):\n    import pylog.b\n    import_module(name)\n"
    tree = tree_of({"pylog.lazy_modules": source, "pylog.b": ""})
    assert not list(imports_inside_functions(tree))
    assert not list(unannounced_loading(tree))


@pytest.mark.parametrize(
    "source",
    ["import importlib", "import importlib.util", "def f():\n    from importlib import resources"],
)
def test_the_connector_may_not_use_importlib(source: str) -> None:
    (problem,) = unannounced_loading(tree_of({"pyspark_pylog.a": source}))
    assert "the connector uses importlib" in problem.what
    assert not list(unannounced_loading(tree_of({"pylog_jobs.a": source})))


@pytest.mark.parametrize(
    "call",
    [
        "importlib.import_module('pylog.b')",
        "import_module(name)",
        "import_module('.b', 'pylog')",
        "importlib.import_module(f'pylog.{name}')",
        "__import__('pylog.b')",
        "import_module(name='pylog.b')",
    ],
)
def test_only_the_loader_imports_our_modules_by_name(call: str) -> None:
    (problem,) = unannounced_loading(tree_of({"pylog.a": f"\nB = {call}\n", "pylog.b": ""}))
    assert (problem.path, problem.line) == ("pylog/a.py", 2)


@pytest.mark.parametrize("name", ["name", "'pylog' + name", "'pylog.{}'.format(name)", ""])
def test_the_loader_is_given_names_that_stand_there(name: str) -> None:
    for function in ("load_name", "LazyModule"):
        (problem,) = unannounced_loading(tree_of({"pylog.a": f"\nB = {function}({name})\n"}))
        assert (problem.path, problem.line) == ("pylog/a.py", 2)
    for sound in ("'pylog.b'", "f'{__package__}.b'"):
        assert not list(unannounced_loading(tree_of({"pylog.a": f"B = LazyModule({sound})"})))


def test_modules_of_other_people_may_be_imported_by_name() -> None:
    assert not list(unannounced_loading(tree_of({"pylog.a": "import_module('crc32c')"})))


@pytest.mark.parametrize("user", ["pyspark_pylog.a", "pylog_jobs", "pylog.cli.a"])
@pytest.mark.parametrize(
    "source",
    [
        "from pylog.log.b import B",
        "import pylog.log",
        "from pylog import log",
        "if TYPE_CHECKING:\n    from pylog.log.b import B\n",
    ],
)
def test_connector_jobs_and_command_line_may_not_import_the_inside(user: str, source: str) -> None:
    (problem,) = private_imports(tree_of({user: source, "pylog.log.b": ""}))
    assert f"{user} imports pylog.log" in problem.what
    assert "pylog.__all__" in problem.remedy


@pytest.mark.parametrize("user", ["pyspark_pylog.a", "pylog_jobs.a", "pylog.cli.a"])
def test_public_names_errors_and_their_own_modules_are_theirs_to_import(user: str) -> None:
    package = user.rpartition(".")[0]
    source = f"import pylog\nfrom pylog import scan\nimport pylog.errors\nimport {package}.b\n"
    assert not list(
        private_imports(tree_of({user: source, f"{package}.b": "", "pylog.errors": ""}))
    )


def test_jobs_import_the_public_face_of_the_connector_alone() -> None:
    others = {"pyspark_pylog": "", "pyspark_pylog.jobs": "", "pyspark_pylog.a": ""}
    public = "import pyspark_pylog\nfrom pyspark_pylog.jobs import stage_rows\n"
    assert not list(private_imports(tree_of({"pylog_jobs.a": public, **others})))
    (problem,) = private_imports(
        tree_of({"pylog_jobs.a": "\nfrom pyspark_pylog.a import A", **others})
    )
    assert (problem.path, problem.line) == ("pylog_jobs/a.py", 2)
    assert "pyspark_pylog.jobs" in problem.remedy


def test_the_command_line_may_use_the_loader_but_the_connector_may_not() -> None:
    source = "from pylog.lazy_modules import load"
    for user, count in (("pylog.cli.a", 0), ("pyspark_pylog.a", 1)):
        tree = tree_of({user: source, "pylog.lazy_modules": ""})
        assert len(list(private_imports(tree))) == count


def test_a_package_with_a_name_that_only_begins_like_theirs_is_not_held_to_it() -> None:
    assert not list(
        private_imports(tree_of({"pylog.client": "import pylog.log.b", "pylog.log.b": ""}))
    )
