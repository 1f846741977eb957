from __future__ import annotations

import pytest

from pylog.cli.table import bar, can_show_blocks, columns_chart


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0, ""), (1e-9, "▏"), (0.5, "██"), (0.53, "██▏"), (1, "████"), (7, "████"), (-1, "")],
)
def test_a_bar_is_as_long_as_its_share(share: float, shown: str) -> None:
    assert bar(share, 4) == shown


def test_bars_without_blocks_are_whole_characters() -> None:
    assert [bar(share, 4, blocks=False) for share in (0, 0.01, 0.5, 1)] == ["", "#", "##", "####"]


def test_columns_are_as_high_as_their_values_and_never_vanish() -> None:
    assert columns_chart([0, 1, 400, 800]) == " ▁▄█"
    assert columns_chart([0, 1, 400, 800], blocks=False) == " .=@"
    assert columns_chart([0, 0]) == "  "
    assert columns_chart([]) == ""


@pytest.mark.parametrize(
    ("encoding", "can"), [("utf-8", True), ("ascii", False), (None, False), ("no such", False)]
)
def test_blocks_are_for_encodings_that_have_them(encoding: str | None, *, can: bool) -> None:
    assert can_show_blocks(encoding) is can
