"""``python -m tests.structure``: check the shape of the packages; with ``--write``, draw it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.summary import published_files
from tests.structure.cli_page import PAGE as COMMAND_PAGE
from tests.structure.cli_page import command_page
from tests.structure.finding_kinds import finding_codes
from tests.structure.finding_page import PAGE as FINDING_PAGE
from tests.structure.finding_page import finding_page
from tests.structure.headings import headings
from tests.structure.imports import (
    circles,
    imports_inside_functions,
    private_imports,
    unannounced_loading,
)
from tests.structure.json_page import PAGE as JSON_PAGE
from tests.structure.json_page import json_page
from tests.structure.layers import (
    import_graph,
    imports_that_point_up,
    modules_in_no_layer,
    read_layers,
)
from tests.structure.man_pages import man_pages
from tests.structure.mirrored_tests import mirrored_tests
from tests.structure.names import rebound_names, repeated_classes
from tests.structure.page import generated_files, stale_files
from tests.structure.sizes import long_functions
from tests.structure.source_tree import SourceTree
from tests.structure.stubs import stubs
from tests.structure.support import read_support, shared_code
from tests.structure.table_page import PAGE as TABLE_PAGE
from tests.structure.table_page import table_page
from tests.structure.texts import dead_names, flowed_lists

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.structure.layers import Layer
    from tests.structure.source_tree import Problem

ROOT = Path(__file__).parents[2]

_RULES = (
    long_functions,
    rebound_names,
    repeated_classes,
    circles,
    imports_inside_functions,
    unannounced_loading,
    private_imports,
    flowed_lists,
    dead_names,
    finding_codes,
)


def problems_of(root: Path, tree: SourceTree, layers: Sequence[Layer]) -> Iterator[Problem]:
    """Check every rule."""
    for rule in _RULES:
        yield from rule(tree)
    yield from modules_in_no_layer(tree, layers)
    yield from imports_that_point_up(tree, layers)
    yield from headings(root, tree)
    yield from mirrored_tests(root, tree)
    yield from shared_code(read_support(root))
    yield from stale_files(root, generated_files(import_graph(tree, layers)))


def made_from_the_program() -> dict[str, str]:
    """Return what is made by running the program: a file's text by its path."""
    return {
        COMMAND_PAGE: command_page(),
        FINDING_PAGE: finding_page(),
        JSON_PAGE: json_page(),
        TABLE_PAGE: table_page(),
        **man_pages(),
        **stubs(),
        **published_files(Path(__file__).parents[2]),
    }


def main() -> int:
    """Print what is wrong, or write the picture and its page; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.structure", description=__doc__)
    parser.add_argument(
        "--write",
        action="store_true",
        help="write the pages that are made from the code to docs/ and man/",
    )
    arguments = parser.parse_args()
    tree, layers = SourceTree.read(ROOT), read_layers(ROOT / "pyproject.toml")
    if arguments.write:
        made = generated_files(import_graph(tree, layers)) | made_from_the_program()
        for path, text in made.items():
            (ROOT / path).write_text(text, encoding="utf-8")
        return 0
    problems = list(problems_of(ROOT, tree, layers))
    problems += stale_files(ROOT, made_from_the_program())
    sys.stdout.writelines(f"{problem}\n" for problem in problems)
    summary = f"{len(problems)} problems in" if problems else "No problem in"
    sys.stdout.write(f"{summary} the shape of {len(tree.modules)} modules.\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
