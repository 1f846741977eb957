"""Options that jobs and commands read from one table."""

from __future__ import annotations

import argparse

import pytest

from pylog.jobs import CleanupOption
from pylog_jobs.shared_options import add_options, passed_on

OPTIONS = {
    each.name: each
    for each in (
        CleanupOption("to", "DIR", "Where to."),
        CleanupOption("only-new", None, "At most 5% of all.", parameter="takes_new"),
        CleanupOption("level", None, "How much.", ("low", "high"), parameter="level"),
        CleanupOption("producer", "ID", "Of these.", is_repeated=True, parameter="producers"),
        CleanupOption("name", "TEXT", "So called.", is_repeated=True),
    )
}


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(exit_on_error=False)
    add_options(made, OPTIONS)
    return made


def test_what_is_declared_with_a_parameter_is_passed_on_as_it_is() -> None:
    line = "--to x --only-new --level high --producer 3 --producer 4 --name n"
    found = passed_on(parser().parse_args(line.split()), OPTIONS)
    assert found == {"takes_new": True, "level": "high", "producers": [3, 4]}


def test_what_is_not_given_has_the_default_of_the_table() -> None:
    found = passed_on(parser().parse_args(["--to", "x"]), OPTIONS)
    assert found == {"takes_new": False, "level": "low", "producers": []}


def test_values_of_one_line_are_not_there_in_the_next_one() -> None:
    made = parser()
    made.parse_args(["--to", "x", "--producer", "3"])
    assert passed_on(made.parse_args(["--to", "x"]), OPTIONS)["producers"] == []


@pytest.mark.parametrize(
    "line", ["", "--to x --level middle", "--to x --producer -1", "--to x --producer ٣"]
)
def test_what_the_table_does_not_allow_is_refused(line: str) -> None:
    with pytest.raises((argparse.ArgumentError, SystemExit)):
        parser().parse_args(line.split())


def test_a_per_cent_sign_is_a_part_of_the_help() -> None:
    assert "At most 5% of all." in parser().format_help()
