"""Text that may go to a terminal: nothing in it moves the cursor, breaks or reorders the line."""

from __future__ import annotations

import re

# C0, DEL, C1, the line and paragraph separators; then the marks, embeddings, overrides and isolates
# of bidirectional text, which can make a name or a value look like another one.
UNPRINTABLE = "[\x00-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
"""A regular expression, of Python and of Arrow, that finds such characters in UTF-8."""

# Surrogates are what is left of undecodable file names.
_UNPRINTABLE = re.compile(f"{UNPRINTABLE}|[\ud800-\udfff]")
_NAMED = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}")


def printable(text: str) -> str:
    r"""Return ``text`` with such characters as ``\t``, ``\n``, ``\x1b``, ``\u0085``, ``\u202e``."""
    return _UNPRINTABLE.sub(_escaped, text)


def printable_in_json(text: str) -> str:
    r"""Return a JSON string with such characters as ``\u0085``; JSON escapes those below U+0020."""
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
