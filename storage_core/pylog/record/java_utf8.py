"""Text as Java's ``new String(bytes, UTF_8)`` decodes it: a malformed sequence becomes one U+FFFD.

A malformed sequence is the longest part of the input that begins as a character does: a lead byte
and those bytes after it that may follow there; a byte that begins nothing is one by itself. Three
bytes that would be a surrogate (U+D800 to U+DFFF) are one malformed sequence as well, also where
the third of them is missing; there Java differs from what Python's ``errors="replace"`` does.

Source: String.decodeUTF8_UTF16 (OpenJDK 17), which Kafka's Utils.utf8 calls.
"""

from __future__ import annotations

import codecs

_REPLACEMENT = "\ufffd"
_CONTINUATION = range(0x80, 0xC0)
_TWO_BYTES = range(0xC2, 0xE0)
_THREE_BYTES = range(0xE0, 0xF0)
_FOUR_BYTES = range(0xF0, 0xF5)
# Where the second byte has a range of its own: what is shorter or larger than UTF-8 allows.
_SECOND_BYTES = {0xE0: range(0xA0, 0xC0), 0xF0: range(0x90, 0xC0), 0xF4: range(0x80, 0x90)}


def malformed_length(data: bytes, at: int) -> int:
    """Return how many bytes from ``at`` on, where no character stands, one U+FFFD replaces."""
    lead = data[at]
    if lead in _TWO_BYTES:
        longest = 2
    elif lead in _THREE_BYTES:
        longest = 3
    elif lead in _FOUR_BYTES:
        longest = 4
    else:
        return 1
    allowed = _SECOND_BYTES.get(lead, _CONTINUATION)
    length = 1
    for byte in data[at + 1 : at + longest]:
        if byte not in allowed:
            break
        allowed = _CONTINUATION
        length += 1
    return length


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return _REPLACEMENT, error.start + malformed_length(error.object, error.start)


_ERRORS = "pylog-java-utf8"
codecs.register_error(_ERRORS, _replace)


def decode_utf8(data: bytes | memoryview) -> str:
    """Return the text of ``data``; never fails."""
    return bytes(data).decode("utf-8", errors=_ERRORS)
