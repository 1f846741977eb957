"""Text that may go to a terminal: nothing in it moves the cursor or breaks the line."""

from __future__ import annotations

import re

# C0, DEL, C1, the line and paragraph separators, and what is left of undecodable file names.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_NAMED = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}")


def printable(text: str) -> str:
    r"""Return ``text`` with control characters written as ``\t``, ``\n``, ``\x1b``, ``\u0085``."""
    return _UNPRINTABLE.sub(_escaped, text)
