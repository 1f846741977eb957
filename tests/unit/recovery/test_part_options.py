"""The tables of options: what the commands have of them is what the jobs have."""

from __future__ import annotations

import click
import pytest

import pylog
from pylog.cli.main import load_command

TABLES = {
    "merge": pylog.jobs.merge_options(),
    "extract": pylog.jobs.extract_options(),
    "diff": pylog.jobs.diff_options(),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_command_has_the_options_of_the_table_with_their_help(name: str) -> None:
    known = {
        each.opts[0].removeprefix("--"): each
        for each in load_command(name).params
        if isinstance(each, click.Option)
    }
    for option in TABLES[name].values():
        found = known[option.name]
        assert found.help == option.help
        assert found.is_flag == (option.metavar is None and not option.choices)
        assert found.multiple == option.is_repeated
        if option.choices:
            assert isinstance(found.type, click.Choice)
            assert tuple(found.type.choices) == option.choices
            assert found.default == option.choices[0]
