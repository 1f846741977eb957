"""Files beside a log that are named after offsets that it lacks.

Such are ``.deleted`` files, and what people and tools make: ``….log (deleted)`` is how Linux names
a file that a process still has open, ``….log.bak`` a copy.
"""

from __future__ import annotations

import re

from pylog.errors import LogDirectoryError
from pylog.files.storage import list_directory
from pylog.text.words import named

_NAME = re.compile(r"(?P<base>\d{20})\.log.+", re.ASCII | re.DOTALL)
_MOST_NAMED = 3


def may_hold(directory: str, start: int, end: int) -> str:
    """Return which files may hold the offsets ``[start, end)``, as the end of a sentence."""
    try:
        names = [entry.name for entry in list_directory(directory) if not entry.is_dir()]
    except LogDirectoryError:
        return ""  # a finding
    matches = map(_NAME.fullmatch, names)
    found = [each[0] for each in matches if each and start <= int(each["base"]) < end]
    if not found:
        return ""
    return f"; {named(found, _MOST_NAMED)} may hold what is missing"
