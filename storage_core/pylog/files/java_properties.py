r"""Java properties files: a key and a value a line, both text.

A line whose first visible character is ``#`` or ``!`` is a comment. A key ends at the first
unescaped ``=``, ``:`` or blank. A backslash escapes the next character (``\t \n \r \f`` and
``\uXXXX`` mean what they mean in Java), at a line's end it joins the next line, whose leading
blanks are dropped. Files are in ISO 8859-1.

Source: java.util.Properties.load.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from pylog.files.checkpoint_file import split_lines
from pylog.files.java_numbers import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator


ENCODING = "iso-8859-1"

_BLANKS = " \t\f"
_COMMENT_MARKS = ("#", "!")
_KEY_AND_VALUE = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*(?:[=:][ \t\f]*)?(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class JavaProperty(NamedTuple):
    """The value of a key, and the line where it stands."""

    value: str
    line: int  # the number of the line that it begins in, from 1


def parse_java_properties(text: str) -> dict[str, JavaProperty]:
    r"""Return the properties in ``text``; of a key that occurs twice, the last one."""
    properties: dict[str, JavaProperty] = {}
    for number, line in _logical_lines(text):
        match = _KEY_AND_VALUE.fullmatch(line)
        if match is not None:  # always: every part may be empty
            try:
                properties[_unescape(match[1])] = JavaProperty(_unescape(match[2]), number)
            except ValueError as error:
                msg = f"line {number}: {error}"
                raise ValueError(msg) from error
    return properties


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line that holds a property, continuation lines joined to it, with its number."""
    parts: list[str] = []
    first = 0
    for number, natural_line in enumerate(split_lines(text), start=1):
        line = natural_line.lstrip(_BLANKS)
        is_begun = any(parts)  # a backslash alone begins nothing
        if not is_begun and (not line or line.startswith(_COMMENT_MARKS)):
            parts = []
            continue
        first = first if is_begun else number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            parts.append(line[:-1])
            continue
        yield first, "".join([*parts, line])
        parts = []
    if any(parts):
        yield first, "".join(parts)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    unescaped = _ESCAPE.sub(_replace_escape, text)
    # Two \u escapes can be the halves of one character; a single half becomes U+FFFD.
    return unescaped.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _replace_escape(match: re.Match[str]) -> str:
    escaped = match[1]
    if escaped == "u":
        msg = f"{shorten(match.string)} has a \\u without four hexadecimal digits"
        raise ValueError(msg)
    if len(escaped) > 1:
        return chr(int(escaped[1:], 16))
    return _ESCAPED.get(escaped, escaped)
