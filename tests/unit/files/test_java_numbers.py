from __future__ import annotations

import pytest

from pylog.files.java_numbers import find_offset_of, parse_integer

ARABIC_INDIC_12 = "\u0661\u0662"
MATHEMATICAL_BOLD_1 = "\U0001d7cf"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("+5", 5),
        ("-0", 0),
        ("007", 7),
        ("0" * 30 + "7", 7),
        (ARABIC_INDIC_12, 12),
        (f"-{ARABIC_INDIC_12}", -12),
        ("2147483647", 2**31 - 1),
        ("-2147483648", -(2**31)),
    ],
)
def test_what_java_takes_for_a_number_is_one(text: str, value: int) -> None:
    assert parse_integer(text, 32) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not an integer"),
        ("+", "not an integer"),
        ("+-5", "not an integer"),
        (" 5", "not an integer"),
        ("5 ", "not an integer"),
        ("5\n", "not an integer"),
        ("5_0", "not an integer"),
        ("5.0", "not an integer"),
        ("0x5", "not an integer"),
        ("\u00b2", "not an integer"),  # a superscript 2 is no decimal digit
        (MATHEMATICAL_BOLD_1, "not an integer"),  # two characters to Java
        ("2147483648", "'2147483648' does not fit into int32"),
        ("-2147483649", "does not fit into int32"),
        ("9" * 5000, "does not fit into int32"),
    ],
)
def test_what_java_refuses_is_none(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_integer(text, 32)


@pytest.mark.parametrize(
    ("name", "offset"),
    [
        ("00000000000000000060.log", 60),
        ("60.copy.log", 60),
        ("-1.index", -1),
        ("09223372036854775807.log", 2**63 - 1),
        ("09223372036854775808.log", None),
        ("99999999999999999999.log.swap", None),
        (".log", None),
        ("60", None),
        ("60 .log", None),
        ("leader-epoch-checkpoint", None),
    ],
)
def test_an_offset_is_what_stands_before_the_first_dot(name: str, offset: int | None) -> None:
    assert find_offset_of(name) == offset
