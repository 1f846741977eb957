"""Files that are named after missing offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from tests.unit.checks.examined import remove_segment

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "is_named"),
    [
        ("00000000000000000010.log (deleted)", True),
        ("00000000000000000010.log.bak", True),
        ("00000000000000000015.log.deleted", True),
        ("00000000000000000020.log (deleted)", False),
        ("00000000000000000010.index (deleted)", False),
        ("10.log (deleted)", False),
    ],
)
def test_a_file_that_is_named_after_missing_offsets_is_told(
    directory: Path, name: str, *, is_named: bool
) -> None:
    remove_segment(directory, 10)
    (directory / name).write_bytes(b"")
    [finding] = [
        each for each in pylog.doctor(directory.parent).findings if each.code == "missing_segment"
    ]
    assert finding.message.endswith(f"; {name} may hold what is missing") is is_named
