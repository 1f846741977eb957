from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pylog.cli.main import COMMANDS, load_command, run
from pylog.cli.options import SHARED
from tests.structure.cli_page import command_page

if TYPE_CHECKING:
    import pytest


def test_every_command_and_every_option_is_on_the_page() -> None:
    sections = {
        part.splitlines()[0]: part for part in command_page().split("\n## ") if part.strip()
    }
    for name in COMMANDS:
        for parameter in load_command(name).params:
            for option in parameter.opts:
                is_shared = parameter.opts[0] in SHARED
                title = "Options of many commands" if is_shared else f"pylog {name}"
                assert option in sections[title] or not option.startswith("-")


def test_the_page_is_what_the_program_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["search", "--help"]) == 0
    own, _, shared = capsys.readouterr().out.partition("Options of many commands:\n")
    for line in own.splitlines():
        assert line.rstrip() in command_page().splitlines()
    words = " ".join(command_page().split())
    options = re.split(r"\n  (?=-)", "\n" + shared.partition("\n\n")[0])[1:]
    assert len(options) > 3
    for option in options:
        assert " ".join(option.split()) in words
