from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.registry_records import ORDER, ORDER_2

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome

    Run = Callable[..., Outcome]

FIRST = {"key": "a", "value": {"id": 1}}


@pytest.fixture
def order(tmp_path: Path) -> Path:
    path = tmp_path / "order.avsc"
    path.write_text(ORDER)
    return path


def lines(tmp_path: Path, *given: object) -> Path:
    path = tmp_path / "lines.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in given))
    return path


def printed(outcome: Outcome) -> list[object]:
    return [json.loads(line)["value"] for line in outcome.lines]


def test_values_are_encoded_and_read_back(tmp_path: Path, order: Path, pylog_run: Run) -> None:
    logs = tmp_path / "logs"
    file = lines(tmp_path, FIRST, {"value": None})

    done = pylog_run("append", logs, file, "-t", "orders", "--value-schema", order)

    assert (done.status, done.error) == (0, "")
    read = pylog_run("cat", logs, "-t", "orders", "--value-format", "auto")
    assert printed(read) == [{"id": 1}, None]


def test_what_cat_prints_is_encoded_again(tmp_path: Path, order: Path, pylog_run: Run) -> None:
    logs, copy = tmp_path / "logs", tmp_path / "copy.jsonl"
    key = ("--key-schema", order)
    file = lines(tmp_path, {"key": {"id": 5}, "value": "plain", "headers": [["h", "x"]]})
    pylog_run("append", logs, file, "-t", "orders", *key, "--framing", "header")
    shown = pylog_run("cat", logs, "-t", "orders", "--key-format", "auto").lines
    copy.write_text("".join(f"{line}\n" for line in shown))
    latest = ("--key-schema", "latest", "--subject", "orders-key")

    done = pylog_run("append", logs, copy, "-t", "copies", *latest)

    assert (done.status, done.error) == (0, "")
    again = pylog_run(
        "cat", logs, "-t", "copies", "--key-format", "auto", "--subject", "orders-key"
    )
    (line,) = map(json.loads, again.lines)
    assert (line["key"], line["value"], line["headers"]) == ({"id": 5}, "plain", [["h", "x"]])


def test_a_value_that_cannot_be_encoded_is_a_malformed_line(
    tmp_path: Path, order: Path, pylog_run: Run
) -> None:
    logs = tmp_path / "logs"
    file = lines(tmp_path, {"value": {"id": "x"}})

    done = pylog_run("append", logs, file, "-t", "orders", "--value-schema", order)

    assert done.status == 2
    assert "line 1: the value cannot be encoded by schema 1: id: 'x' is not long" in done.error
    assert not logs.exists()


def test_a_schema_that_is_not_compatible_is_refused(
    tmp_path: Path, order: Path, pylog_run: Run
) -> None:
    logs, other = tmp_path / "logs", tmp_path / "other.avsc"
    other.write_text(ORDER_2.replace(',"default":""', ""))
    pylog_run("append", logs, lines(tmp_path, FIRST), "-t", "orders", "--value-schema", order)
    command = ("append", logs, lines(tmp_path, FIRST), "-t", "orders", "--value-schema", other)

    refused = pylog_run(*command)

    assert refused.status == 2
    assert "subject orders-value: the schema is not compatible (BACKWARD)" in refused.error
    forward = pylog_run(*command, "--compatibility", "FORWARD")
    assert "note: it is missing, and has no default" in forward.error
