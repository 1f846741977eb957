from __future__ import annotations

from typing import TYPE_CHECKING

from tests.structure.headings import LIST, headings
from tests.unit.structure.made_up import tree_of

if TYPE_CHECKING:
    from pathlib import Path

WITH_HEADING = '"""A file."""\n\nA = 1\n\n\n# Another subject.\n#\n# Its text.\n\n\nB = 2\n'


def problems(root: Path, source: str, listed: str = "") -> list[str]:
    (root / LIST).parent.mkdir(parents=True, exist_ok=True)
    (root / LIST).write_text(listed)
    return list(map(str, headings(root, tree_of({"pylog.a": source}))))


def test_a_heading_below_the_first_definition_is_found(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, WITH_HEADING)
    assert "pylog/a.py:6: a second subject below a heading: Another subject." in found


def test_a_comment_of_what_follows_and_one_at_the_top_are_none(tmp_path: Path) -> None:
    assert problems(tmp_path, WITH_HEADING.replace("Its text.\n\n\n", "Its text.\n")) == []
    assert problems(tmp_path, '"""A file."""\n\n# A note.\n\nA = 1\n') == []


def test_the_list_has_the_beginning_of_a_heading_and_no_stale_line(tmp_path: Path) -> None:
    line = "pylog/a.py | Another | it belongs here\n"
    assert problems(tmp_path, WITH_HEADING, f"# why\n{line}") == []
    (found,) = problems(tmp_path, "A = 1\n", f"# why\n{line}")
    assert f"{LIST}:2: pylog/a.py has no such heading" in found
