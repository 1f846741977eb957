"""Names of fields as JSON documents have them."""

from __future__ import annotations


def camel_case(name: str) -> str:
    """Return ``first_offset`` as ``firstOffset``."""
    first, *rest = name.split("_")
    return first + "".join(map(str.title, rest))
