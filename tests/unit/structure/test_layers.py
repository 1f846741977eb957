from __future__ import annotations

from typing import TYPE_CHECKING

from tests.structure.layers import (
    import_graph,
    imports_that_point_up,
    modules_in_no_layer,
    read_layers,
)
from tests.unit.structure.made_up import tree_of

if TYPE_CHECKING:
    from pathlib import Path

CONTRACTS = """
[[tool.importlinter.contracts]]
type = "layers"
layers = ["connector", "pylog"]

[[tool.importlinter.contracts]]
type = "forbidden"
source_modules = ["pylog"]

[[tool.importlinter.contracts]]
type = "layers"
layers = ["pylog.cli", "pylog.reading | pylog.log", "pylog.files"]

[[tool.importlinter.contracts]]
type = "layers"
containers = ["pylog.reading"]
layers = ["a", "b"]
"""
LAYERS = [("connector",), ("pylog.cli",), ("pylog.reading", "pylog.log"), ("pylog.files",)]
SOURCES = {
    "connector.a": "import pylog",
    "pylog": "import pylog.lazy_modules\nHOMES = ['pylog.reading.a', 'pylog.log.a']",
    "pylog.cli.a": "import pylog\nimport pylog.files.a",
    "pylog.reading.a": "import pylog.files.a",
    "pylog.log.a": "\nimport pylog.files.a",
    "pylog.files.a": "import pylog.files.b",
    "pylog.files.b": "",
    "pylog.lazy_modules": "",
}
SOUND_LAYERS = [*LAYERS, ("pylog.lazy_modules",)]


def test_a_layer_that_has_a_contract_of_its_own_is_replaced_by_its_layers(tmp_path: Path) -> None:
    pyproject = tmp_path / "pyproject.toml"
    pyproject.write_text(CONTRACTS)
    assert read_layers(pyproject) == LAYERS


def test_a_facade_is_below_those_who_import_it() -> None:
    graph = import_graph(tree_of(SOURCES), SOUND_LAYERS)
    assert graph.layers == [*LAYERS[:2], ("pylog",), *LAYERS[2:], ("pylog.lazy_modules",)]


def test_rooms_import_what_their_modules_import() -> None:
    graph = import_graph(tree_of(SOURCES), SOUND_LAYERS)
    assert list(graph.edges) == [
        ("connector", "pylog"),
        ("pylog", "pylog.lazy_modules"),
        ("pylog", "pylog.log"),
        ("pylog", "pylog.reading"),
        ("pylog.cli", "pylog"),
        ("pylog.cli", "pylog.files"),
        ("pylog.log", "pylog.files"),
        ("pylog.reading", "pylog.files"),
    ]


def test_an_import_that_a_chain_of_others_stands_for_is_a_shortcut() -> None:
    graph = import_graph(tree_of(SOURCES), SOUND_LAYERS)
    assert set(graph.edges) - graph.without_shortcuts() == {("pylog.cli", "pylog.files")}


def test_sound_packages_have_no_problem() -> None:
    tree = tree_of(SOURCES)
    assert not list(modules_in_no_layer(tree, SOUND_LAYERS))
    assert not list(imports_that_point_up(tree, SOUND_LAYERS))


def test_a_module_that_the_contract_forgets_is_a_problem() -> None:
    (problem,) = modules_in_no_layer(tree_of(SOURCES), LAYERS)
    assert "pylog.lazy_modules is in no layer" in problem.what
    assert "pyproject.toml" in problem.remedy


def test_an_import_of_a_higher_layer_is_a_problem_also_through_the_loader() -> None:
    for source in ("\nimport pylog.log.a", "import pylog.lazy_modules\nLOG = 'pylog.log.a'"):
        tree = tree_of({**SOURCES, "pylog.files.b": source})
        (problem,) = imports_that_point_up(tree, SOUND_LAYERS)
        assert (problem.path, problem.line) == ("pylog/files/b.py", 2)
        assert "pylog.files imports pylog.log, which is not below it" in problem.what


def test_an_import_of_a_neighbour_is_a_problem() -> None:
    (problem,) = imports_that_point_up(
        tree_of({**SOURCES, "pylog.log.a": "import pylog.reading.a"}), SOUND_LAYERS
    )
    assert "pylog.log imports pylog.reading" in problem.what
