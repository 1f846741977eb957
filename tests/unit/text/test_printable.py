from __future__ import annotations

import pytest

from pylog.text.words import printable


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
