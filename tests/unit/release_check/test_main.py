from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from pylog.kernel_compilation import this_platform
from tests.release_check import __main__ as program
from tests.release_check.problem import Problem, StepFailedError

if TYPE_CHECKING:
    from pathlib import Path

WHEELS = {this_platform(): program.WORK / "s.whl", "other": program.WORK / "o.whl"}
BUILT = program.Built(program.WORK / "s.tar.gz", WHEELS, WHEELS)


@pytest.fixture(autouse=True)
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what takes long: building, looking, trying."""
    monkeypatch.setattr(program, "WORK", tmp_path / "work")
    monkeypatch.setattr(program, "changelog_problems", lambda *_: ())
    monkeypatch.setattr(program, "uncommitted_problems", lambda _: ())
    monkeypatch.setattr(program, "build", lambda _: BUILT)
    monkeypatch.setattr(program, "look_at", lambda *_: None)
    monkeypatch.setattr(program, "try_out", lambda *_: None)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["release_check", *arguments])
    return program.main()


def test_the_last_line_names_what_is_to_be_uploaded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--strict") == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.endswith(
        f"could be released: {BUILT.sdist}, {WHEELS[this_platform()]}, {WHEELS['other']}"
    )


def test_a_warning_stops_a_release_and_not_a_dry_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = Problem("no section", "write it", is_warning=True)
    monkeypatch.setattr(program, "changelog_problems", lambda *_: [problem])
    assert run(monkeypatch) == 0
    assert "could be released but for 1 warning," in capsys.readouterr().out
    assert run(monkeypatch, "--strict") == 1
    assert capsys.readouterr().out.splitlines()[-1] == "No release: 1 thing failed."


def test_a_build_that_fails_ends_it_with_what_it_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: Path) -> None:
        msg = "python -m build ended with status 1:\n  no hatchling"
        raise StepFailedError(msg)

    monkeypatch.setattr(program, "build", fail)
    assert run(monkeypatch) == 1
    assert "FAILED: python -m build ended with status 1:\n  no hatchling\n" in (
        capsys.readouterr().out
    )
