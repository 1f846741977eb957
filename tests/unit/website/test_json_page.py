"""``docs/json.md`` against what the commands print: the same members, on every level."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pylog import kernel_compilation
from pylog.cli.main import run
from tests.unit.native.sample_kernels import clear
from tests.unit.native.test_kernel import only_images

if TYPE_CHECKING:
    from tests.support.golden import GoldenRoot

PAGE = (Path(__file__).parents[3] / "docs" / "json.md").read_text("utf-8")
# Members whose own members are names of properties, or counts of what there is.
OPEN = {"config", "configs", "totals"}


def blocks(heading: str) -> list[object]:
    """Return the JSON of the blocks below a heading, or below a line that names a command."""
    begin = rf"(?:^## {heading}\n|^`{heading}`:\n)"
    [section] = re.findall(rf"{begin}(.*?)(?=^## |^`pylog|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    found = re.findall(r"^```json\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return [json.loads(block) for block in found]


def shape(value: object, name: str = "") -> Any:  # noqa: ANN401 - as JSON is
    """Return the names of members, of all elements of a list together; None for other values."""
    if isinstance(value, dict):
        if name in OPEN:
            return "properties"
        return {each: shape(inner, each) for each, inner in value.items()}
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        together: dict[str, object] = {}
        for each in value:
            inner = shape(each)
            together |= inner if isinstance(inner, dict) else {}
        return [together]
    return None


def assert_same_members(shown: object, printed: object, path: str = "$") -> None:
    """Compare shapes; an empty list or null on one side says nothing about members."""
    if isinstance(shown, dict) and isinstance(printed, dict):
        assert sorted(shown) == sorted(printed), path
        for name in shown:
            assert_same_members(shown[name], printed[name], f"{path}.{name}")
    elif isinstance(shown, list) and isinstance(printed, list):
        assert_same_members(shown[0], printed[0], f"{path}[]")


def printed_by(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert run([str(each) for each in arguments]) in (0, 1)
    return capsys.readouterr().out


@pytest.fixture
def logs(golden_root: GoldenRoot) -> Path:
    return golden_root.case("4.3.0/internal-logdir")


@pytest.mark.parametrize("command", ["ls", "groups", "transactions", "topics"])
def test_what_a_command_prints_has_the_members_that_the_page_shows(
    capsys: pytest.CaptureFixture[str], logs: Path, command: str
) -> None:
    topics = () if command in ("groups", "transactions") else ("--topic", "orders")
    printed = json.loads(printed_by(capsys, command, logs, "--json", *topics))
    [shown] = blocks(f"pylog {command}")
    assert_same_members(drop_counts(shape(shown)), drop_counts(shape(printed)))


def drop_counts(shapes: object) -> object:
    """Leave out how many transactions of which state a partition has."""
    if isinstance(shapes, dict) and "hasCoordinators" in shapes:
        shapes["partitions"][0]["transactions"] = None
    return shapes


def test_statistics(capsys: pytest.CaptureFixture[str], logs: Path) -> None:
    text = printed_by(capsys, "stats", logs, "--topic", "orders", "--full", "--json")
    [shown] = blocks("pylog stats")
    assert_same_members(shape(shown), shape(json.loads(text)))


def test_records_and_the_summary_of_a_search(
    capsys: pytest.CaptureFixture[str], logs: Path
) -> None:
    encoded, text = blocks("Records")
    line = printed_by(capsys, "cat", logs, "--topic", "orders", "--last", 1).splitlines()[0]
    assert_same_members(shape(encoded), shape(json.loads(line)))
    *lines, last = printed_by(capsys, "search", logs, "--key", "user-186", "--json").splitlines()
    assert_same_members(shape(text), shape(json.loads(lines[0])))
    [summary] = blocks("pylog search")
    assert_same_members(shape(summary), shape(json.loads(last)))


def test_the_doctors_report_and_that_of_a_copy(
    capsys: pytest.CaptureFixture[str], golden_root: GoldenRoot, tmp_path: Path
) -> None:
    damaged = golden_root.case("4.3.0/crash-corrupt-byte") / "before"
    report, copy = blocks("pylog doctor")
    printed = json.loads(
        printed_by(capsys, "doctor", damaged, "--json", "--repair-to", tmp_path / "copy")
    )
    copied = printed.pop("copy")
    assert_same_members(shape(report), shape(printed))
    del report["schemaVersion"]  # type: ignore[attr-defined]
    assert sorted(copied.pop("report")) == sorted(report)  # type: ignore[call-overload]
    copy.pop("report")  # type: ignore[attr-defined]
    assert_same_members(shape(copy), shape(copied))


def test_lines_of_a_dump(capsys: pytest.CaptureFixture[str], logs: Path) -> None:
    file = logs / "orders-0" / "00000000000000000000.log"
    lines = printed_by(capsys, "dump", "--json", "--print-data-log", file).splitlines()
    printed = {json.loads(line)["type"]: json.loads(line) for line in lines}
    for shown in blocks("pylog dump"):
        assert isinstance(shown, dict)
        assert_same_members(shape(shown), shape(printed[shown["type"]]))


def test_summaries_of_commands_that_write(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, topic = tmp_path / "logs", ("--topic", "orders")
    place = (*topic, "--partition", 0, "--offset")
    (tmp_path / "lines").write_text("a\tb\n" * 3)
    for command, arguments in {
        "create-topic": topic,
        "append": (*topic, "--format", "text"),  # from stdin
        "alter-topic": (*topic, "--config", "retention.ms=1000000000000"),
        "retention": topic,
        "compact": (*topic, "--config", "cleanup.policy=compact"),
        "delete-records": (*place, 1),
        "truncate": (*place, 3),
    }.items():
        with (tmp_path / "lines").open() as lines, monkeypatch.context() as patch:
            patch.setattr("sys.stdin", lines)
            printed = json.loads(printed_by(capsys, command, directory, *arguments, "--json"))
        shown, *dry_run = blocks(f"pylog {command}")
        assert_same_members(shape(shown), shape(printed))
        if dry_run:
            printed = printed_by(capsys, command, directory, *place, 2, "--json", "--dry-run")
            assert_same_members(shape(shown | dry_run[0]), shape(json.loads(printed)))  # type: ignore[operator]


def test_the_summary_of_an_export(
    capsys: pytest.CaptureFixture[str], logs: Path, tmp_path: Path
) -> None:
    target = ("--topic", "orders", "--to", tmp_path / "orders.jsonl")
    [shown] = blocks("pylog export")
    printed = json.loads(printed_by(capsys, "export", logs, *target, "--json"))
    assert_same_members(shape(shown), shape(printed))


@only_images
def test_the_kernels_that_are_kept(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kernel_compilation, "KERNELS", (clear,))
    [shown] = blocks("pylog compile")
    assert_same_members(shape(shown), shape(json.loads(printed_by(capsys, "compile", "--json"))))


def test_the_rows_of_a_query(capsys: pytest.CaptureFixture[str], logs: Path) -> None:
    query = "SELECT topic, count(*) AS records FROM records WHERE topic = 'orders' GROUP BY topic"
    [shown] = blocks("pylog sql")
    assert json.loads(printed_by(capsys, "sql", logs, query, "--json")) == shown
