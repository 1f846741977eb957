"""What every ``--json`` prints has in common: the number of its shape, and how names are spelt.

The members of each are held by the tests of its command and by ``docs/json.md``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.cli.main import COMMANDS, load_command
from tests.support.adopted_disks import formatted
from tests.support.registry_records import ORDER, of_subject, schema, write_registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.golden import GoldenRoot
    from tests.unit.cli.conftest import Outcome

PAGE = (Path(__file__).parents[3] / "docs" / "json.md").read_text("utf-8")
ORDERS = ("--topic", "orders")
FIRST = (*ORDERS, "--partition", "0", "--offset")
READING = {
    "ls": ("LOGS",),
    "doctor": ("LOGS", *ORDERS),
    "stats": ("LOGS", *ORDERS, "--full"),
    "groups": ("LOGS",),
    "transactions": ("LOGS", "--all"),
    "info": ("LOGS",),
    "schemas": ("REGISTRY", "--usage"),
    "first-aid": ("LOGS", "--to", "OWN/first-aid", "--voters", "1"),
    "adopt": ("LOGS", "--into", "NEW"),
    "topics": ("LOGS",),
    "export": ("LOGS", *ORDERS, "--to", "OWN/orders.jsonl"),
    "diff": ("LOGS", "LOGS", *ORDERS),
    "search": ("LOGS", "--key", "user-186", "--count"),
}
# In this order: each finds what the one before it has left.
WRITING = {
    "create-topic": ("OWN", *ORDERS),
    "append": ("OWN", *ORDERS, "--format", "text", "LINES"),
    "alter-topic": ("OWN", *ORDERS, "--config", "cleanup.policy=compact,delete"),
    "retention": ("OWN",),
    "compact": ("OWN",),
    "delete-records": ("OWN", *FIRST, "1", "--dry-run"),
    "truncate": ("OWN", *FIRST, "0", "--dry-run"),
    "merge": ("LOGS", "--to", "OWN-merged", "--dry-run"),
    "restore-groups": ("LOGS", "--to", "OWN", "--dry-run"),
    "extract": ("LOGS", "--to", "OWN-part", *ORDERS, "--dry-run"),
    "erase": ("OWN", *ORDERS, "--key", "a", "--dry-run"),
    "mask": ("OWN", *ORDERS, "--mask", "RULES", "--dry-run"),
}
REGISTRY = [
    schema("a", 1, 1, ORDER, references=[("n", "b", 1)]),
    of_subject("CONFIG", None, {"compatibilityLevel": "FULL"}),
]
RULES = '[[mask]]\njson_path = ["$.a"]\n'
DOCUMENTS = {**READING, **WRITING}
LINES = {
    "dump": ("--deep-iteration", "LOGS/orders-0"),
    "sql": ("LOGS", "SELECT topic, size_in_bytes FROM segments"),
}
# Members whose own members are names of somebody else's.
OPEN = {"config", "configs", "entity", "features", "limits", "topicIds"}


def members(value: object) -> Iterator[str]:
    """Yield the names of members, on every level."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            if name not in OPEN:
                yield from members(inner)
    elif isinstance(value, list):
        for each in value:
            yield from members(each)


@pytest.fixture
def printed(
    pylog_run: Callable[..., Outcome],
    golden_root: GoldenRoot,
    tmp_path: Path,
) -> Callable[[str], list[str]]:
    """Return the lines that a command prints with ``--json``."""
    (tmp_path / "own").mkdir()
    (tmp_path / "lines").write_text("a\tb\n" * 3)
    (tmp_path / "rules").write_text(RULES)
    write_registry(tmp_path / "registry", REGISTRY)
    places = {
        "REGISTRY": str(tmp_path / "registry"),
        "LOGS": str(golden_root.case("4.3.0/internal-logdir")),
        "OWN": str(tmp_path / "own"),
        "NEW": str(formatted(tmp_path / "new")),
        "LINES": str(tmp_path / "lines"),
        "RULES": str(tmp_path / "rules"),
    }

    def run(command: str) -> list[str]:
        arguments = [
            re.sub("LOGS|OWN|NEW|LINES|RULES|REGISTRY", lambda match: places[match[0]], each)
            for each in (DOCUMENTS | LINES)[command]
        ]
        done = pylog_run(command, *arguments, "--json")
        assert done.status in (0, 1), done.error
        return done.lines

    return run


def assert_is_document(lines: list[str]) -> None:
    document = json.loads("\n".join(lines))
    names = list(members(document))
    assert names[0] == "schemaVersion"
    assert names.count("schemaVersion") == 1
    assert document["schemaVersion"] == 1
    assert_spelt_well(names)


def assert_spelt_well(names: list[str]) -> None:
    assert [name for name in names if not re.fullmatch("[a-z]+(64)?([A-Z][a-z]+)*", name)] == []
    columns = {words(column): column for column in column_names()}
    spelt = {name: columns[words(name)] for name in names if words(name) in columns}
    assert {name: pylog.jobs.json_name(column) for name, column in spelt.items()} == {
        name: name for name in spelt
    }


def words(name: str) -> frozenset[str]:
    """Return what a name says, in whichever spelling."""
    parts = re.findall("[A-Z]?[a-z]+", name)
    return frozenset(part.lower() for part in parts) - {"in", "is"}


def column_names() -> set[str]:
    return {
        column
        for name in pylog.TABLE_NAMES
        if name != "latest"  # whose columns are those of records, as of Spark's kafka source
        for column in pylog.jobs.metadata_table(name).schema.names
    }


def test_every_command_with_json_is_among_these() -> None:
    with_json = {
        name
        for name in COMMANDS
        if any("--json" in parameter.opts for parameter in load_command(name).params)
    }
    # `serve` runs until it is stopped: tests/e2e/test_serve.py has its first line.
    assert with_json == {*DOCUMENTS, *LINES, "serve"}


@pytest.mark.parametrize("command", READING)
def test_a_document_begins_with_the_number_of_its_shape(
    command: str, printed: Callable[[str], list[str]]
) -> None:
    assert_is_document(printed(command))


def test_so_do_those_of_commands_that_write(printed: Callable[[str], list[str]]) -> None:
    for command in WRITING:
        assert_is_document(printed(command))


@pytest.mark.parametrize("command", LINES)
def test_lines_do_not_repeat_it(command: str, printed: Callable[[str], list[str]]) -> None:
    lines = printed(command)
    assert lines
    for line in lines:
        assert "schemaVersion" not in json.loads(line)


def test_the_summary_of_a_search_has_it_and_the_records_have_not(
    pylog_run: Callable[..., Outcome], golden_root: GoldenRoot
) -> None:
    logs = golden_root.case("4.3.0/internal-logdir")
    *records, summary = pylog_run("search", logs, "--key", "user-186", "--json").lines
    assert records
    assert not any("schemaVersion" in json.loads(line) for line in records)
    assert_is_document([summary])


def test_columns_of_tables_are_in_snake_case() -> None:
    names = column_names()
    assert "size_in_bytes" in names
    assert [name for name in names if not re.fullmatch("[a-z]+(_[a-z]+)*", name)] == []


@pytest.mark.parametrize(
    ("column", "member"),
    [("topic", "topic"), ("size_in_bytes", "sizeInBytes"), ("is_control", "isControl")],
)
def test_a_member_has_the_words_of_its_column(column: str, member: str) -> None:
    assert pylog.jobs.json_name(column) == member


def test_the_page_names_the_number() -> None:
    assert "One number, now 1, counts" in PAGE
    assert pylog.jobs.JSON_SCHEMA_VERSION == 1
    in_blocks = set(re.findall(r'"schemaVersion": (\d+)', PAGE))
    assert in_blocks == {"1"}
