from __future__ import annotations

import pytest

from pylog.cli.rendering.printable import printable


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
    ],
)
def test_only_what_could_move_the_cursor_is_escaped(text: str, printed: str) -> None:
    assert printable(text) == printed
