from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import pylog

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome

RULES = """
[[mask]]
topics = ["users"]
json_path = "$.email"
replace = "***"

[[mask]]
topics = ["other"]
value = true
replace = "x"
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    rows = [{"key": f"k{n}", "value": json.dumps({"email": f"m{n}@x", "n": n})} for n in range(6)]
    for topic in ("users", "other", "third"):
        pylog.write_topic(tmp_path / "logs", topic, rows, key="key", value="value")
    (tmp_path / "rules.toml").write_text(RULES)
    return tmp_path / "logs"


def values_of(lines: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in map(json.loads, lines):
        found.setdefault(each["topic"], []).append(each["value"])
    return found


EXPECTED = {
    "users": [f'{{"email": "***", "n": {n}}}' for n in range(6)],
    "other": ["x"] * 6,
    "third": [f'{{"email": "m{n}@x", "n": {n}}}' for n in range(6)],
}


def test_cat_prints_what_mask_would_write(
    directory: Path, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    rules = ("--mask", tmp_path / "rules.toml")
    assert values_of(pylog_run("cat", directory, *rules).lines) == EXPECTED
    merged = pylog_run("cat", directory, *rules, "--merge")
    assert {topic: sorted(each) for topic, each in values_of(merged.lines).items()} == {
        topic: sorted(each) for topic, each in EXPECTED.items()
    }
    plain = pylog_run("cat", directory, *rules, "--topic", "users", "-f", "%s\n")
    assert plain.lines == EXPECTED["users"]
    followed = pylog_run("cat", directory, *rules, "--follow", "--limit", 18)
    assert values_of(followed.lines) == EXPECTED
    planned = pylog_run("mask", directory, *rules, "--dry-run")
    assert planned.lines[:2] == [
        "other-0: 6 records would be masked, 1 segment written anew",
        "users-0: 6 records would be masked, 1 segment written anew",
    ]
    done = pylog_run("mask", directory, *rules, "--json")
    assert (done.status, json.loads(done.output)["remaining"]) == (0, [])
    assert values_of(pylog_run("cat", directory).lines) == EXPECTED


@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "csv"])
def test_export_writes_what_mask_would_write(
    directory: Path, tmp_path: Path, pylog_run: Callable[..., Outcome], suffix: str
) -> None:
    rules = ("--mask", tmp_path / "rules.toml")
    for name in (f"all.{suffix}", f"{{topic}}.{suffix}"):
        assert pylog_run("export", directory, "--to", tmp_path / name, *rules).status == 0
    for topic, values in EXPECTED.items():
        for path in (tmp_path / f"all.{suffix}", tmp_path / f"{topic}.{suffix}"):
            data = path.read_bytes()
            if suffix == "jsonl":
                assert values_of(data.decode().splitlines())[topic] == values
            else:
                assert (b"m0@x" in data) is (topic == "third" or path.name.startswith("all"))
    columns = ("--columns", "value", "--topic", "users")
    to = tmp_path / f"values.{suffix}"
    if suffix != "jsonl":
        assert pylog_run("export", directory, "--to", to, *rules, *columns).status == 0
        assert b"m0@x" not in to.read_bytes()


def test_values_that_are_not_json_are_told(
    directory: Path, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    pylog.write_topic(directory, "users", [{"value": "no json"}], value="value")
    done = pylog_run("cat", directory, "--topic", "users", "--mask", tmp_path / "rules.toml")
    assert done.status == 0
    assert "1 value is not JSON" in done.error


def test_what_is_no_rule_is_wrong_usage(
    directory: Path, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text("[[mask]]\nvalue = true")
    export = ("export", directory, "--to", tmp_path / "x.csv")
    for arguments in (("cat", directory), ("mask", directory), export):
        done = pylog_run(*arguments, "--mask", rules)
        assert (done.status, "rule 1 has replace = None" in done.error) == (2, True)
