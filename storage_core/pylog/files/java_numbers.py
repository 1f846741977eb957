"""Whole numbers as Java reads them, in names of files and in texts.

A sign, also a plus, zeros in front, and the decimal digits of any script are taken; blanks are not,
nor is a number that does not fit.

Source: Integer.parseInt, Long.parseLong, Character.digit (Java 17).
"""

from __future__ import annotations

import re

_SHOWN_CHARACTERS = 80
# Of the characters that are one UTF-16 unit: Java looks at the units.
_INTEGER = re.compile(r"[+-]?(?:(?![\U00010000-\U0010FFFF])\d)+")


def parse_integer(text: str, bits: int) -> int:
    """Return the signed decimal integer that ``text`` is."""
    if _INTEGER.fullmatch(text) is None:
        msg = f"{shorten(text)} is not an integer"
        raise ValueError(msg)
    digits = text.lstrip("+-0")
    # No number of so many digits fits, and Python refuses to read one of thousands.
    value = int(text) if len(digits) <= bits else None
    if value is None or not -(1 << bits - 1) <= value < 1 << bits - 1:
        msg = f"{shorten(text)} does not fit into int{bits}"
        raise ValueError(msg)
    return value


def find_offset_of(file_name: str) -> int | None:
    """Return the offset that a file's name begins with, None where Java finds none.

    Source: LogFileUtils.offsetFromFileName (Kafka 4.4).
    """
    number, dot, _ = file_name.partition(".")
    try:
        return parse_integer(number, 64) if dot else None
    except ValueError:
        return None


def shorten(text: str) -> str:
    """Return ``text`` in quotes, escaped and cut, so that it fits into an error's line."""
    excerpt = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
    return repr(excerpt)
