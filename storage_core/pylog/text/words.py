"""Sizes, times, durations and counts as people read them."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING

from pylog.text.instants import LAST_MS

if TYPE_CHECKING:
    from collections.abc import Sequence

_EPOCH = dt.datetime.fromtimestamp(0, dt.UTC)
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def format_bytes(size_bytes: float, blank: str = "") -> str:
    """Return ``512B``, ``1.5KiB``, ``120MiB``: three digits, powers of 1024.

    Examples
    --------
    >>> pylog.jobs.format_bytes(1_536)
    '1.5KiB'
    """
    size = float(size_bytes)
    for unit in _UNITS:
        if size < 1023.5 or unit == _UNITS[-1]:
            break
        size /= 1024
    digits = 0 if unit == "B" or size >= 99.95 else 1
    return f"{size:.{digits}f}{blank}{unit}"


def counted(number: int, thing: str, plural: str | None = None, *, digits: str = "") -> str:
    """Return ``1 record``, ``2 records``; ``plural`` where an ``s`` does not make it.

    ``digits`` formats the number: ``,`` makes ``1,234 records``.

    Examples
    --------
    >>> pylog.jobs.counted(1, "record"), pylog.jobs.counted(2, "batch", "batches")
    ('1 record', '2 batches')
    """
    return f"{number:{digits}} {thing if number == 1 else plural or thing + 's'}"


def offsets_text(start: int, end: int | None) -> str:
    """Return ``offsets 15 to 27`` of a range whose end is exclusive; None where it has none.

    Examples
    --------
    >>> pylog.jobs.offsets_text(15, 28)
    'offsets 15 to 27'
    """
    if end is None:
        return f"offsets from {start} on"
    if end <= start:
        return f"offset {start}"
    return f"offset {start}" if end == start + 1 else f"offsets {start} to {end - 1}"


def named(names: Sequence[str], most: int = 3) -> str:
    """Return the first names, and how many more there are: ``a, b, c and 3 more``."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


_UNITS_MS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000))


def time_text(milliseconds: int | None) -> str:
    """Return a time in UTC to the second, ``2026-11-23T04:00:00Z``; ``-`` if it is not known."""
    if milliseconds is None:
        return "-"
    if not 0 <= milliseconds <= LAST_MS:
        return f"{milliseconds} ms"
    return dt.datetime.fromtimestamp(milliseconds // 1000, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def duration_text(milliseconds: int | None) -> str:
    """Return a duration in its two largest units, ``2h 5m``; ``-`` if it is not known.

    Of a hundred days and more, hours say nothing.
    """
    if milliseconds is None:
        return "-"
    sign, rest = ("-", -milliseconds) if milliseconds < 0 else ("", milliseconds)
    parts: list[str] = []
    for unit, length in _UNITS_MS:
        count, rest = divmod(rest, length)
        if count or parts:
            parts.append(f"{count}{unit}")
    if len(parts) > 1 and len(parts[0]) > len("99d"):
        parts = parts[:1]
    return sign + " ".join(parts[:2] or ["0s"])


def minute_text(milliseconds: int) -> str:
    """Return a time in UTC to the minute, ``2026-11-23 04:00``."""
    try:
        return f"{_EPOCH + dt.timedelta(milliseconds=milliseconds):%Y-%m-%d %H:%M}"
    except OverflowError:  # Kafka stores any 64-bit number
        return f"{milliseconds} ms"


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
    r"""Return ``text`` with such characters as ``\t``, ``\n``, ``\x1b``, ``\u0085``, ``\u202e``.

    Examples
    --------
    >>> print(pylog.jobs.printable("two\nlines"))
    two\nlines
    """
    return _UNPRINTABLE.sub(_escaped, text)


def printable_in_json(text: str) -> str:
    r"""Return a JSON string with such characters as ``\u0085``; JSON escapes those below U+0020."""
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
