from __future__ import annotations

import pytest

from tests.structure.texts import dead_names, flowed_lists
from tests.unit.structure.made_up import tree_of

FLOWED = "1. one thing, and some    more of it 2. another"
RULED = "name      meaning\n========  =======\none       the first"


@pytest.mark.parametrize(
    "source",
    [
        f"# {FLOWED}",
        f"a = 1\n# Something.\n#\n# {FLOWED}\n",
        f'"""Something.\n\n{FLOWED}\n"""',
        f'def a():\n    """{FLOWED}"""',
    ],
)
def test_a_list_that_was_flowed_into_a_paragraph_is_found(source: str) -> None:
    (problem,) = flowed_lists(tree_of({"pylog.a": source}))
    assert problem.line == 1 + source[: source.index(FLOWED)].count("\n")


@pytest.mark.parametrize(
    "source",
    [
        f'"""Something.\n\n{RULED}\n"""',
        "# " + RULED.replace("\n", "\n# "),
        '"""Laid out so::\n\n    width    field\n    8        offset\n\nThat is all.\n"""',
        '"""Something.\n\n>>> a = 1    # one\n"""',
        "a = 1    # a number",
        "a = 'one    two'",
    ],
)
def test_tables_and_examples_may_have_columns(source: str) -> None:
    assert not list(flowed_lists(tree_of({"pylog.a": source})))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("`pylog.a` has it", "pylog.a is this module itself"),
        ("`pylog.c` has it", "pylog.c does not exist"),
        ("`pylog.b.gone` has it", "pylog.b.gone does not exist"),
        ("`gone` has it", "gone does not exist"),
        ("`found.gone` has it", "found.gone does not exist"),
    ],
)
def test_a_name_that_leads_nowhere_is_found(text: str, what: str) -> None:
    source = f'"""Something.\n\n{text}.\n"""'
    for made in (source, f"# Something.\n#\n# {text}.\n"):
        (problem,) = dead_names(tree_of({"pylog.a": made, "pylog.b": "def found(): pass"}))
        assert (problem.line, what in str(problem)) == (3, True)


@pytest.mark.parametrize("name", ["pylog.b", "pylog.b.found", "found", "b", "found.attribute"])
def test_a_name_that_is_there_is_none(name: str) -> None:
    tree = tree_of(
        {"pylog.a": f'"""See `{name}`, not ``gone``."""', "pylog.b": "def found(): a.attribute"}
    )
    assert not list(dead_names(tree))
