"""The layers contract of ``pyproject.toml``, and the imports between its layers.

import-linter holds the contract for import statements. Here what the loader imports late is held
to it, too, and a package that is in no layer is a problem.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.structure.source_tree import Module, Problem, SourceTree

Layer = tuple[str, ...]
Edge = tuple[str, str]
"""Who imports, and what is imported: names of rooms."""


class Place(NamedTuple):
    """Where an import stands."""

    module: Module
    line: int


def read_layers(pyproject: Path) -> list[Layer]:
    """Return the layers of all layers contracts in one list, the highest first.

    A layer that another contract is about is replaced by the layers of that one. Contracts about
    the inside of a package, which have ``containers``, and those about no layer are left out.
    """
    settings = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    contracts = [
        [tuple(re.split(r"\s*[|:]\s*", layer)) for layer in contract["layers"]]
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers" and "containers" not in contract
    ]
    layers, *parts = contracts
    for part in parts:
        whole = {name.rpartition(".")[0] for layer in part for name in layer}
        at = next((at for at, layer in enumerate(layers) if set(layer) == whole), None)
        if at is not None:
            layers = [*layers[:at], *part, *layers[at + 1 :]]
    return layers


@dataclass(frozen=True)
class ImportGraph:
    """What the rooms of the packages import of each other.

    A room is a package or a module that the layers name. The façade is the package whose parts are
    rooms: its own ``__init__.py`` has a layer for itself, below the lowest room that imports it.

    Attributes
    ----------
    layers
        The highest first.
    rooms
        The module or the package's ``__init__.py`` that each room is, by name.
    edges
        Where a room first imports another one.
    """

    layers: Sequence[Layer]
    rooms: Mapping[str, Module]
    edges: Mapping[Edge, Place]

    @cached_property
    def depths(self) -> dict[str, int]:
        """How many layers are above each room."""
        return {name: depth for depth, layer in enumerate(self.layers) for name in layer}

    def points_down(self, edge: Edge) -> bool:
        importer, imported = edge
        return self.depths[importer] < self.depths[imported]

    def without_shortcuts(self) -> frozenset[Edge]:
        """Return the edges that point down, but for those that a chain of others stands for."""
        down = set(filter(self.points_down, self.edges))
        below: dict[str, set[str]] = {}
        for layer in reversed(self.layers):
            for name in layer:
                direct = {imported for importer, imported in down if importer == name}
                below[name] = direct.union(*(below[each] for each in direct))
        return frozenset(
            (importer, imported)
            for importer, imported in down
            if not any(
                (importer, middle) in down and imported in below[middle] for middle in self.depths
            )
        )


def import_graph(tree: SourceTree, layers: Sequence[Layer]) -> ImportGraph:
    """Return the graph of the rooms in ``layers``; a module that is in none is left out."""
    layered = {name for layer in layers for name in layer}
    edges: dict[Edge, Place] = {}
    for module in tree:
        importer = room_of(module.name, layered)
        for each in tree.imports_of(module):
            imported = room_of(each.target, layered)
            if importer is not None and imported is not None and importer != imported:
                edges.setdefault((importer, imported), Place(module, each.line))
    facades = {name for edge in edges for name in edge} - layered
    for facade in sorted(facades):
        layers = _with_layer(layers, facade, edges)
    there = [tuple(name for name in layer if name in tree.modules) for layer in layers]
    rooms = {name: tree.modules[name] for layer in there for name in layer}
    return ImportGraph(list(filter(None, there)), rooms, dict(sorted(edges.items())))


def room_of(name: str, layered: set[str]) -> str | None:
    """Return the room that a module is in, which is itself for a façade; None: it is in none."""
    if any(each.startswith(f"{name}.") for each in layered - {name}):
        return name
    while name and name not in layered:
        name = name.rpartition(".")[0]
    return name or None


def _with_layer(
    layers: Sequence[Layer], facade: str, edges: Mapping[Edge, Place]
) -> Sequence[Layer]:
    importers = {importer for importer, imported in edges if imported == facade}
    depths = [depth for depth, layer in enumerate(layers) if importers.intersection(layer)]
    at = 1 + max(depths, default=-1)
    return [*layers[:at], (facade,), *layers[at:]]


def modules_in_no_layer(tree: SourceTree, layers: Sequence[Layer]) -> Iterator[Problem]:
    """Find modules that the layers contract forgets."""
    layered = {name for layer in layers for name in layer}
    for module in tree:
        if room_of(module.name, layered) is None:
            yield module.problem(
                1,
                f"{module.name} is in no layer",
                "Name it, or its package, in the layers contract of pyproject.toml.",
            )


def imports_that_point_up(tree: SourceTree, layers: Sequence[Layer]) -> Iterator[Problem]:
    """Find imports of a higher layer or of a neighbour, those through the loader included."""
    graph = import_graph(tree, layers)
    for edge, place in graph.edges.items():
        if not graph.points_down(edge):
            importer, imported = edge
            yield place.module.problem(
                place.line,
                f"{importer} imports {imported}, which is not below it",
                "Move what is needed further down, or pass it in as an argument.",
            )
