from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.cli.main import COMMANDS, load_command, run
from tests.structure.__main__ import ROOT
from tests.structure.cli_page import PAGE, command_page

if TYPE_CHECKING:
    import pytest


def test_every_command_and_every_option_is_on_the_page() -> None:
    page = command_page()
    for name in COMMANDS:
        [section] = [part for part in page.split("\n## ") if part.startswith(f"pylog {name}\n")]
        for parameter in load_command(name).params:
            for option in parameter.opts:
                assert option in section or not option.startswith("-")


def test_the_page_is_what_the_program_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["search", "--help"]) == 0
    for line in capsys.readouterr().out.splitlines():
        assert line.rstrip() in command_page().splitlines()


def test_the_page_in_docs_is_up_to_date() -> None:
    assert (ROOT / PAGE).read_text("utf-8") == command_page(), "run: make import-graph"
