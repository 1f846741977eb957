"""The advice about a name that does not exist: the nearest one that does."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest_name_hint(name: str, known: Iterable[str]) -> str:
    """Return the end of the sentence about it: the nearest known name, in any case, or a stop."""
    by_lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    return f"; did you mean {by_lower[near[0]]!r}?" if near else "."
