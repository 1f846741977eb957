"""The pages that users read, held against the code: names, options and commands that they show."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import pylog
import pyspark_pylog
from pylog.cli.main import COMMANDS, load_command
from pylog.server.messages import APIS
from pylog.server.refusals import refusals
from pyspark_pylog.options import READ_OPTIONS, WRITE_OPTIONS

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
USER_PAGES = [
    ROOT / "README.md",
    *(
        ROOT / f"docs/{page}.md"
        for page in (
            *("browse", "clusters", "compatibility", "cookbook", "guarantees", "how-a-log-works"),
            "index",
            "dead-cluster",
            "diff",
            "extract",
            "erase",
            "mask",
            "merge",
            *("jobs", "operators", "python", "recover", "serving", "spark", "sql"),
            "troubleshooting",
            "typed-values",
            "writing",
        )
    ),
]


def text_of(pages: list[Path]) -> str:
    return "\n".join(page.read_text("utf-8") for page in pages)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def section_of(page: str, heading: str) -> str:
    """Return the text below a heading of a page, up to the next one."""
    text = (ROOT / f"docs/{page}.md").read_text("utf-8")
    section = re.search(rf"^#+ {heading}\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert section is not None
    return section[1]


def options_shown(heading: str) -> list[str]:
    """Return the names in the first column of the table of options below a heading."""
    rows = re.findall(r"^\| (`.*?) \|", section_of("spark", heading), re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


def test_the_tables_of_options_have_every_option_and_no_other() -> None:
    assert sorted(options_shown("Options")) == sorted(READ_OPTIONS)
    assert sorted(options_shown("Options of a write")) == sorted(WRITE_OPTIONS)


def test_every_option_that_a_snippet_sets_exists() -> None:
    set_in_python = set(re.findall(r"\.option\(\"(\w+)\"", text_of(USER_PAGES)))
    views = re.findall(r"OPTIONS \((.*?)\)", text_of(USER_PAGES))
    set_in_sql = {name for view in views for name in re.findall(r"(\w+) '", view)}
    assert {"subscribe", "table"} <= set_in_python
    assert {"path", "table"} <= set_in_sql
    known = {*READ_OPTIONS, *WRITE_OPTIONS, "checkpointLocation"}
    assert set_in_python | set_in_sql <= known


def test_every_public_name_that_a_page_uses_exists() -> None:
    named = set(re.findall(r"\bpylog\.([A-Za-z]\w*)\b(?!\.)", text_of(USER_PAGES)))
    named -= {"py", "zip"}  # files
    assert {"scan", "open_directory", "write_topic"} <= named
    assert named <= {*pylog.__all__, *pylog._PUBLIC.modules}
    inside = set(re.findall(r"\bpylog\.(jobs|logs|results)\.(\w+)", text_of(USER_PAGES)))
    assert ("logs", "LogManager") in inside
    assert [each for each in inside if each[1] not in getattr(pylog, each[0]).__all__] == []
    of_spark = set(re.findall(r"\bpyspark_pylog\.(\w+)", text_of(USER_PAGES)))
    assert [name for name in of_spark if not hasattr(pyspark_pylog, name)] == []


def test_every_command_line_has_a_command_and_its_options() -> None:
    lines = [
        part.split("#")[0]
        for block in re.findall(r"```(?:sh|console)\n(.*?)```", text_of(USER_PAGES), re.DOTALL)
        for line in block.splitlines()
        for part in line.split(" | ")
        if part.startswith("pylog ")
    ]
    assert {line.split()[1] for line in lines} == set(COMMANDS)
    for line in lines:
        parameters = load_command(line.split()[1]).params
        known = {option for parameter in parameters for option in parameter.opts}
        assert set(re.findall(r" (--[\w-]+)", line)) <= known, line


def test_every_make_target_that_a_page_names_exists() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    named = set(re.findall(r"^make ([a-z-]+)|`make ([a-z-]+)", text_of(PAGES), re.MULTILINE))
    for target in {"".join(match) for match in named}:
        assert re.search(rf"^{target}: .*##", makefile, re.MULTILINE), target


def test_the_template_for_bugs_asks_for_versions_and_a_listing_by_commands_that_exist() -> None:
    text = (ROOT / ".github/ISSUE_TEMPLATE/bug.md").read_text("utf-8")
    lines = re.findall(r"`pylog ([a-z-]+)([^`]*)`", text)
    assert ("ls", " --json DIRECTORY") in lines
    for command, rest in lines:
        if command == "--version":
            continue
        known = {option for each in load_command(command).params for option in each.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= known
    assert ("--version", "") in lines
    assert "pylog.show_versions()" in text
    assert "show_versions" in pylog.__all__


def test_make_knows_how_to_make_what_each_target_needs() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = re.findall(r"^([a-z-]+):.*##", makefile, re.MULTILINE)
    assert {"docs", "demo", "test"} <= set(targets)
    for target in targets:  # -n: says what it would do; REV is what bench-against asks for
        tried = subprocess.run(
            ["make", "-n", target, "REV=HEAD"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert tried.returncode == 0, tried.stderr


def test_the_picture_of_the_architecture_has_each_module_at_the_root_and_no_other() -> None:
    page = (ROOT / "docs/architecture.md").read_text("utf-8")
    [picture] = re.findall(
        r"^## Layers of `pylog`\n.*?```\n(.*?)```", page, re.MULTILINE | re.DOTALL
    )
    drawn = re.findall(r"(?:^|  )(\w+(?:/|\.py))(?=\s)", picture, re.MULTILINE)
    root = ROOT / "storage_core/pylog"
    modules = [file.name for file in root.glob("*.py") if file.name != "__init__.py"]
    packages = [f"{file.parent.name}/" for file in root.glob("*/__init__.py")]
    assert sorted(drawn) == sorted([*modules, *packages])


def test_every_source_that_the_architecture_names_exists() -> None:
    page = (ROOT / "docs/architecture.md").read_text("utf-8")
    named = set(re.findall(r"\b(?:\w+/)+\w+\.py\b", page))
    assert "reading/scan.py" in named
    roots = (
        ROOT,
        *(ROOT / each for each in ("storage_core", "storage_core/pylog", "connector", "jobs")),
    )
    assert [name for name in named if not any((root / name).is_file() for root in roots)] == []


def test_no_page_has_marks_of_a_merge() -> None:
    assert re.findall(r"^(?:<{7}|>{7}) .*", text_of(PAGES), re.MULTILINE) == []


def test_every_error_that_the_page_about_trouble_quotes_is_in_the_code() -> None:
    page = (ROOT / "docs/troubleshooting.md").read_text("utf-8")
    quoted = re.findall(r"^### `(.*?)`", page, re.MULTILINE)
    assert len(quoted) > 8
    sources = "\n".join(
        file.read_text("utf-8")
        for folder in ("storage_core", "connector")
        for file in (ROOT / folder).rglob("*.py")
    )
    texts = re.sub(r"\"\s*\n\s*f?\"", "", sources)  # literals that are one
    of_others = {"[DATA_SOURCE_NOT_FOUND]", "ModuleNotFoundError: No module named 'pylog'"}
    quoted = [each.replace("batch CRC", "CRC") for each in quoted]  # two kinds of batches have one
    for error in [each for each in quoted if each not in of_others]:
        for part in re.split(r"…|\. |; |: ", error):  # what is put together of several texts
            assert part.strip(" ':,") in texts, (error, part)


def test_the_properties_of_topics_are_those_that_are_obeyed_shown_and_refused() -> None:
    items = section_of("compatibility", "Properties of topics").split("\n- ")[1:]
    obeyed, shown, refused = (
        set(re.findall(r"`([\w.]+\.[\w.*]+|preallocate)`", each)) for each in items
    )
    assert obeyed == set(pylog.LogConfig.kinds())
    assert refused == set(pylog.LogConfig.removed)
    assert "min.insync.replicas" in shown
    for name in shown:
        with pytest.raises(ValueError, match="is not a property of a topic"):
            pylog.LogConfig.from_properties({name: "1"})


def test_the_requests_that_the_server_answers_are_listed_with_their_versions() -> None:
    section = section_of("compatibility", "Requests that `pylog serve` answers")
    answered, refused = (
        dict(re.findall(r"`(\w+)` ([\d-]+)", each)) for each in section.split("\n- ")[1:]
    )
    declared = {
        api.name: "-".join(map(str, sorted({api.versions[0], api.versions[-1]})))
        for api in APIS.values()
    }
    assert answered | refused == declared
    read_only = {api.name for api in refusals()} - {"DescribeAcls", "DescribeClientQuotas"}
    assert set(refused) == read_only


def test_the_options_of_kafkas_dump_tool_are_options_of_the_command() -> None:
    section = section_of("compatibility", "Kafka's tools")
    [line] = re.findall(
        r"^Options of `kafka-dump-log`: (.*?)\n\n", section, re.MULTILINE | re.DOTALL
    )
    named = set(re.findall(r"`(--[\w-]+)`", line))
    assert "--index-sanity-check" in named
    assert named <= {option for each in load_command("dump").params for option in each.opts}
