"""Numbers of things in words."""

from __future__ import annotations


def counted(number: int, thing: str, plural: str | None = None) -> str:
    """Return ``1 record``, ``2 records``; ``plural`` where an ``s`` does not make it."""
    return f"{number} {thing if number == 1 else plural or thing + 's'}"
