from __future__ import annotations

import pytest

from pylog.cli.table import aligned_columns, aligned_rows, bar, can_show_blocks, columns_chart

COLUMNS = {
    "TOPIC": ["orders", "a-topic-of-a-long-name"],
    "END": ["7", "1000000"],
    "EPOCH": ["0", "12"],
    "NOTE": ["", "overdue, hanging"],
}
LEFT = {"TOPIC", "NOTE"}


def test_elsewhere_than_in_a_terminal_every_row_is_a_line() -> None:
    assert list(aligned_columns(COLUMNS, LEFT)) == [
        "TOPIC                       END  EPOCH  NOTE",
        "orders                        7      0",
        "a-topic-of-a-long-name  1000000     12  overdue, hanging",
    ]


def test_a_terminal_that_is_wide_enough_changes_nothing() -> None:
    as_they_are = list(aligned_columns(COLUMNS, LEFT))
    assert list(aligned_columns(COLUMNS, LEFT, 56, ["EPOCH"])) == as_they_are


def test_a_narrower_one_does_without_what_is_needed_least() -> None:
    assert list(aligned_columns(COLUMNS, LEFT, 55, ["TOPIC ID", "EPOCH", "END"])) == [
        "TOPIC                       END  NOTE",
        "orders                        7",
        "a-topic-of-a-long-name  1000000  overdue, hanging",
    ]


def test_cells_go_on_in_the_next_line_between_words_first() -> None:
    assert list(aligned_rows(COLUMNS, LEFT, 50)) == [
        ["TOPIC                       END  EPOCH  NOTE"],
        ["orders                        7      0"],
        [
            "a-topic-of-a-long-name  1000000     12  overdue,",
            "                                        hanging",
        ],
    ]


def test_then_names_are_cut_and_numbers_never() -> None:
    assert list(aligned_columns(COLUMNS, LEFT, 40)) == [
        "TOPIC               END  EPOCH  NOTE",
        "orders                7      0",
        "a-topic-of-a-l  1000000     12  overdue,",
        "ong-name                        hanging",
    ]
    assert list(aligned_columns(COLUMNS, LEFT, 34, left_out_last=["EPOCH", "END"])) == [
        "TOPIC           END  NOTE",
        "orders            7",
        "a-topic-of  1000000  overdue,",
        "-a-long-na           hanging",
        "me",
    ]
    narrowest = list(aligned_columns(COLUMNS, LEFT, 10))
    assert narrowest[2].split() == ["a-topic-of", "1000000", "12", "overdue,"]


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
