from __future__ import annotations

import pytest

from tests.release_check.__main__ import Report
from tests.release_check.problem import Problem

ADDRESS = Problem("no address", "set it", is_warning=True)
LICENCE = Problem("no licence", "add it")


@pytest.mark.parametrize(
    ("is_strict", "errors", "warnings", "word"), [(False, 1, 1, "warning"), (True, 2, 0, "FAILED")]
)
def test_a_warning_is_an_error_where_a_release_is_meant(
    capsys: pytest.CaptureFixture[str], *, is_strict: bool, errors: int, warnings: int, word: str
) -> None:
    report = Report(is_strict=is_strict)
    report.add("content", [])
    report.add("metadata", [ADDRESS, LICENCE])
    assert (report.errors, report.warnings) == (errors, warnings)
    assert capsys.readouterr().out.splitlines() == [
        "ok: content",
        f"{word}: no address",
        "  set it",
        "FAILED: no licence",
        "  add it",
    ]
