from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import parquet

from tests.support.registry_records import ORDER
from tests.unit.reading.typed_logs import FIRST, OF_USER, SECOND, write_orders, write_values

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome

    Run = Callable[..., Outcome]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return write_orders(tmp_path / "logs")


def values_of(outcome: Outcome, field: str = "value") -> list[Any]:
    lines = [json.loads(line) for line in outcome.lines]
    assert {each["values"] for each in lines} <= {"typed"}
    return [each[field] for each in lines]


def test_values_are_json_by_the_schemas_in_the_same_directory(logs: Path, pylog_run: Run) -> None:
    outcome = pylog_run("cat", logs, "-t", "orders", "--value-format", "auto", "--format", "jsonl")
    assert (outcome.status, outcome.error) == (0, "")
    assert values_of(outcome) == [{"id": 1, "note": ""}, None, {"id": 2, "note": "x"}]
    both = pylog_run("cat", logs, "-t", "orders", "--value-format", "avro", "--key-format", "auto")
    assert values_of(both, "key") == [{"name": "ab"}] * 3
    keys = pylog_run("cat", logs, "-t", "orders", "--key-format", "auto", "--limit", 1)
    assert values_of(keys) == ["\0\0\0\0\x01\x02"]


def test_a_registry_that_does_not_answer_is_told_without_its_password(
    logs: Path, pylog_run: Run
) -> None:
    url = "http://me:secret@127.0.0.1:1"
    outcome = pylog_run("cat", logs, "-t", "orders", "--value-format", "auto", "--schemas", url)
    assert (outcome.status, outcome.lines) == (2, [])
    expected = "pylog: error: http://127.0.0.1:1: the registry does not answer: "
    assert outcome.error.startswith(expected)


def test_schemas_are_named_in_several_ways(logs: Path, tmp_path: Path, pylog_run: Run) -> None:
    alone, file = tmp_path / "alone", tmp_path / "order.avsc"
    write_values(alone, "orders-0", [FIRST])
    write_values(alone, "bare-0", [FIRST[5:]])
    file.write_text(ORDER)
    options = ("--value-format", "auto", "-t", "orders")
    assert "no topic '_schemas' here" in pylog_run("cat", alone, *options).error
    assert values_of(pylog_run("cat", alone, *options, "--schemas", logs)) == [
        {"id": 1, "note": ""}
    ]
    first = pylog_run("cat", logs, *options, "--subject", "orders-value", "--subject-version", 1)
    assert values_of(first) == [{"id": 1}, None, {"id": 2}]
    union = pylog_run("cat", logs, *options, "--subject-version", "union")
    assert values_of(union)[0] == {"id": 1, "note": None}
    assert "is no version" in pylog_run("cat", logs, *options, "--subject-version", "x").error
    assert values_of(pylog_run("cat", alone, *options, "--schema", f"1={file}")) == [{"id": 1}]
    bare = pylog_run("cat", alone, "-t", "bare", "--value-format", "avro", "--schema", file)
    assert values_of(bare) == [{"id": 1}]


def test_what_cannot_be_decoded(logs: Path, pylog_run: Run) -> None:
    write_values(logs, "orders-1", [FIRST, b"text", SECOND])
    options = ("cat", logs, "-t", "orders", "-p", 1, "--value-format", "auto")
    reason = "orders-1, offset 1: the value cannot be decoded: it starts with 74 65 78 74"
    failed = pylog_run(*options)
    assert failed.status == 1
    assert len(failed.lines) == 1
    assert f"error: {reason}" in failed.error
    assert "--mode PERMISSIVE prints null with the reason and the bytes" in failed.error
    dropped = pylog_run(*options, "--mode", "DROPMALFORMED")
    assert (dropped.status, len(dropped.lines)) == (1, 2)
    assert f"warning: {reason}" in dropped.error
    assert "warning: not decoded: 1 value of orders\n" in dropped.error
    shown = pylog_run(*options, "--mode", "PERMISSIVE")
    assert (shown.status, len(shown.lines)) == (1, 3)
    line = json.loads(shown.lines[1])
    assert line["value"] is None
    assert line["undecodable"]["value"] == "dGV4dA=="
    assert line["undecodable"]["reason"].startswith(reason)


def test_subjects_have_to_be_chosen(logs: Path, pylog_run: Run) -> None:
    write_values(logs, "mixed-0", [FIRST, OF_USER])
    outcome = pylog_run("cat", logs, "-t", "mixed", "--value-format", "auto")
    assert outcome.status == 2
    assert "several subjects: User, orders-value" in outcome.error


def test_merged_and_last_records_are_typed(logs: Path, pylog_run: Run) -> None:
    write_values(logs, "orders-1", [SECOND])
    options = ("cat", logs, "-t", "orders", "--value-format", "auto")
    assert len(values_of(pylog_run(*options, "--merge"))) == 4
    assert values_of(pylog_run(*options, "--last", 1)) == [{"id": 2, "note": "x"}] * 2
    followed = pylog_run(*options, "--follow", "--limit", 2)
    assert values_of(followed) == [{"id": 1, "note": ""}, None]
    write_values(logs, "orders-2", [b"text", FIRST])
    with_text = ("-p", 2, "--follow", "--limit", 1, "--mode", "DROPMALFORMED")
    assert pylog_run(*options, *with_text).status == 1


def test_protobuf_and_json_are_printed(tmp_path: Path, pylog_run: Run) -> None:
    logs, proto, ddl = tmp_path / "logs", tmp_path / "a.proto", tmp_path / "b.ddl"
    proto.write_text(
        """
        syntax = "proto3"; import "google/protobuf/duration.proto";
        message A { message B { map<int32, bytes> m = 1; google.protobuf.Duration d = 2; } }
        """
    )
    ddl.write_text("n DECIMAL(20, 3), m MAP<STRING, DATE>, v VARIANT")
    in_b = b"\x0a\x05\x08\x07\x12\x01\xff\x12\x04\x08\x01\x10\x05"
    write_values(logs, "p-0", [b"\0\0\0\0\x09\x04\0\0" + in_b])
    write_values(logs, "q-0", [b"\0\0\0\0\x09\x02\0\0" + in_b])
    write_values(logs, "j-0", [b'{"n": 12345678901234567.8, "m": {"a": "2024-02-29"}, "v": [1]}'])
    options = ("--value-format", "protobuf", "--schema", f"9={proto}")
    first = pylog_run("cat", logs, "-t", "p", *options)
    assert values_of(first) == [{"m": {"7": "/w=="}, "d": "1.000000005s"}]
    plain = ("--message", "A.B", "--message-indexes", "plain")
    outcome = pylog_run("cat", logs, "-t", "q", *options, *plain)
    assert values_of(outcome) == [{"m": {"7": "/w=="}, "d": "1.000000005s"}]
    outcome = pylog_run("cat", logs, "-t", "j", "--value-format", "json", "--schema", ddl)
    assert '"n":12345678901234567.800' in outcome.lines[0]
    assert values_of(outcome)[0]["m"] == {"a": "2024-02-29"}
    assert values_of(outcome)[0]["v"] == "[1]"


def test_sql_has_typed_values_in_the_views_of_topics(
    logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    query = "SELECT value.id FROM orders WHERE value IS NOT NULL ORDER BY ALL"
    done = pylog_run("sql", logs, query, "--value-format", "auto", "--csv")
    assert (done.status, done.output) == (0, b"id\n1\n2\n")
    write_values(logs, "orders-1", [FIRST, b"text", SECOND + b"!", SECOND])
    options = ("--value-format", "auto", "--csv", "--mode", "DROPMALFORMED")
    done = pylog_run("sql", logs, query, *options)
    assert (done.status, done.output) == (1, b"id\n1\n1\n2\n2\n")
    assert "not decoded: 2 values of orders" in done.error


def test_exported_values_are_typed(logs: Path, pylog_run: Callable[..., Outcome]) -> None:
    to = logs / "orders.jsonl"
    done = pylog_run("export", logs, "-t", "orders", "--to", to, "--value-format", "auto")
    assert done.status == 0
    lines = [json.loads(line) for line in to.read_text("utf-8").splitlines()]
    assert next(each["value"] for each in lines) == {"id": 1, "note": ""}
    options = ("--value-format", "auto", "--values", "text", "--overwrite")
    done = pylog_run("export", logs, "-t", "orders", "--to", to, *options)
    assert (done.status, "are without --mask and --values" in done.error) == (2, True)


def test_keys_are_compared_as_bytes_or_decoded(
    logs: Path, pylog_run: Callable[..., Outcome]
) -> None:
    done = pylog_run("cat", logs, "-t", "orders", "--key-format", "auto", "--key", "ab")
    assert done.status == 2
    assert "--key compares keys as they lie in the log: leave --key-format out" in done.error


def test_search_finds_fields_and_prints_json(logs: Path, pylog_run: Run) -> None:
    search = ("search", logs, "-t", "orders", "--value-format", "auto", "--where")
    text = pylog_run(*search, "value.id = 2 AND value.note != ''")
    assert text.status == 0
    [line] = text.lines
    assert line.split("\t")[3:] == [r"\x00\x00\x00\x00\x03\x04ab", '{"id":2,"note":"x"}']
    assert "1 match in 3 records" in text.error
    [null] = pylog_run(*search, "value IS NULL").lines
    assert null.endswith("\t\\N")
    *records, summary = pylog_run(*search, "value.id < 2.5", "--json").lines
    assert [json.loads(each)["value"] for each in records] == [
        {"id": 1, "note": ""},
        {"id": 2, "note": "x"},
    ]
    assert json.loads(summary)["summary"]["undecodable"] == []
    assert pylog_run(*search, "value.id = 2", "--not", "--count").lines == ["2"]
    both = pylog_run(*search, "key.name = 'ab'", "--key-format", "auto", "-f", "%o %k %s\\n")
    assert both.lines == [
        '0 {"name":"ab"} {"id":1,"note":""}',
        '1 {"name":"ab"} ',
        '2 {"name":"ab"} {"id":2,"note":"x"}',
    ]


def test_a_search_says_what_it_could_not_decode(logs: Path, pylog_run: Run) -> None:
    write_values(logs, "orders-1", [FIRST, b"text"])
    outcome = pylog_run(
        *("search", logs, "-t", "orders", "--value-format", "auto", "--where", "value.id = 1")
    )
    assert (outcome.status, len(outcome.lines)) == (1, 2)
    assert "warning: orders-1, offset 1: the value cannot be decoded" in outcome.error
    assert outcome.error.endswith("warning: not decoded: 1 value of orders\n")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--where", "value.nr = 1"), "value has no field 'nr': it has id, note"),
        (("--where", "value.id = 'x'"), "value.id is a number (int64), and 'x' is text"),
        (("--where", "key.name = 'ab'"), "keys are bytes here: give --key-format"),
        (("--json-path", "$.id=1"), "use --where, or leave --value-format out"),
        (("--key", "ab", "--key-format", "auto"), "use --where, or leave --key-format out"),
        ((), "give what to search for"),
    ],
)
def test_searches_that_could_find_nothing_are_errors(
    logs: Path, pylog_run: Run, options: tuple[str, ...], error: str
) -> None:
    outcome = pylog_run("search", logs, "-t", "orders", "--value-format", "auto", *options)
    assert outcome.status == 2
    assert error in outcome.error


@pytest.fixture
def mixed(logs: Path) -> Path:
    """Return a directory that has topics of two schemas and of none, and the registry's."""
    write_values(logs, "people-0", [OF_USER])
    write_values(logs, "notes-0", [b'{"id": 7}', None])
    return logs


@pytest.mark.parametrize("more", [(), ("--merge",), ("--mode", "PERMISSIVE"), ("--reverse",)])
def test_cat_of_a_whole_directory_prints_each_topic_as_it_is(
    mixed: Path, pylog_run: Run, more: tuple[str, ...]
) -> None:
    more = ("--merge", *more) if "--reverse" in more else more
    outcome = pylog_run("cat", mixed, "--value-format", "auto", *more)
    assert outcome.status == 0
    assert "no schema, so that values are bytes: _schemas, notes\n" in outcome.error
    lines = [json.loads(line) for line in outcome.lines]
    plain = pylog_run("cat", mixed, *more)
    expected = {(each["topic"], each["offset"]): each for each in map(json.loads, plain.lines)}
    assert len(lines) == len(expected)
    found = {}
    for each in lines:
        place = each["topic"], each["offset"]
        if each["values"] == "text":
            assert each == expected[place]
        else:
            found[place] = each["value"]
    assert found == {
        ("orders", 0): {"id": 1, "note": ""},
        ("orders", 1): None,
        ("orders", 2): {"id": 2, "note": "x"},
        ("people", 0): {"name": "ab"},
    }


def test_search_says_where_a_condition_finds_nothing(mixed: Path, pylog_run: Run) -> None:
    options = ("--value-format", "auto", "--where", "value.id = 2")
    outcome = pylog_run("search", mixed, *options)
    assert [line.split("\t")[0] for line in outcome.lines] == ["orders-0"]
    assert "--where finds nothing in them: _schemas, notes\n" in outcome.error


def test_export_of_a_whole_directory_writes_each_topic_as_it_is(
    mixed: Path, tmp_path: Path, pylog_run: Run
) -> None:
    options = ("--value-format", "auto", "--to")
    done = pylog_run("export", mixed, *options, tmp_path / "{topic}.parquet")
    assert (done.status, done.error.count("no schema, so that")) == (0, 1)
    orders = parquet.read_table(tmp_path / "orders.parquet")
    assert [value and value["id"] for value in orders.column("value").to_pylist()] == [1, None, 2]
    notes = parquet.read_table(tmp_path / "notes.parquet")
    assert notes.column("value").to_pylist() == [b'{"id": 7}', None]
    lines = pylog_run("export", mixed, *options, tmp_path / "all.jsonl")
    assert lines.status == 0
    printed = pylog_run("cat", mixed, "--value-format", "auto").lines
    assert (tmp_path / "all.jsonl").read_text().splitlines() == printed
    refused = pylog_run("export", mixed, *options, tmp_path / "all.parquet")
    assert (refused.status, "schemas with other fields" in refused.error) == (2, True)
    shutil.rmtree(mixed / "people-0")
    one = pylog_run("export", mixed, *options, tmp_path / "all.parquet")
    assert (one.status, "not read, for there is no schema: _schemas" in one.error) == (0, True)
    assert parquet.read_table(tmp_path / "all.parquet").num_rows == 3


def test_topics_without_a_schema_alone_are_an_error(mixed: Path, pylog_run: Run) -> None:
    outcome = pylog_run("cat", mixed, "-t", "notes", "--value-format", "auto")
    assert (outcome.status, outcome.lines) == (2, [])
    assert "no subject 'notes-value' here" in outcome.error
