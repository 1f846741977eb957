from __future__ import annotations

import pytest

from pylog.text.words import counted, format_bytes, named, printable


@pytest.mark.parametrize(
    ("names", "most", "expected"),
    [
        ([], 3, ""),
        (["a"], 3, "a"),
        (["a", "b", "c"], 3, "a, b, c"),
        (["a", "b", "c", "d"], 3, "a, b, c and 1 more"),
        (["a", "b", "c"], 1, "a and 2 more"),
    ],
)
def test_the_first_names_are_listed_and_the_others_counted(
    names: list[str], most: int, expected: str
) -> None:
    assert named(names, most) == expected


def test_a_count_agrees_with_its_noun() -> None:
    assert [counted(number, "record") for number in (0, 1, 2)] == [
        "0 records",
        "1 record",
        "2 records",
    ]
    assert counted(1, "batch", "batches") == "1 batch"
    assert counted(12_345, "batch", "batches", digits=",") == "12,345 batches"


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0B"),
        (1023, "1023B"),
        (1024, "1.0KiB"),
        (1536, "1.5KiB"),
        (102_297, "99.9KiB"),
        (102_400, "100KiB"),
        (1024**2 - 1, "1.0MiB"),
        (1024**2, "1.0MiB"),
        (236_900_000, "226MiB"),
        (5 * 1024**4, "5.0TiB"),
        (2**63 - 1, "8.0EiB"),
    ],
)
def test_sizes_have_three_digits_and_a_binary_unit(size_bytes: int, text: str) -> None:
    assert format_bytes(size_bytes) == text


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("orders-0", "orders-0"),
        ("größe 注文 🎈", "größe 注文 🎈"),
        ("a\tb\nc\rd", r"a\tb\nc\rd"),
        ("\x1b[31mred\x00\x7f", r"\x1b[31mred\x00\x7f"),
        ("\x85\x9b\u2028\u2029", r"\u0085\u009b\u2028\u2029"),
        ("name\udcff", r"name\udcff"),
        (r"a\b", r"a\b"),
        ("abc\u202egpj\u202c", r"abc\u202egpj\u202c"),
        ("\u061c\u200e\u200f\u202a\u202b\u202d", r"\u061c\u200e\u200f\u202a\u202b\u202d"),
        ("\u2066\u2067\u2068\u2069", r"\u2066\u2067\u2068\u2069"),
        ("שלום\u200d", "שלום\u200d"),
    ],
)
def test_only_what_could_move_the_cursor_or_reorder_text_is_escaped(
    text: str, printed: str
) -> None:
    assert printable(text) == printed
