from __future__ import annotations

from pylog.cli.table import aligned_columns, aligned_rows

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
    narrowest = list(aligned_columns(COLUMNS, LEFT, 10))
    assert narrowest[2].split() == ["a-topic-of", "1000000", "12", "overdue,"]
